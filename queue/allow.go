package queue

import (
	"context"
	"fmt"
)

// Allow counts a request that is of no one sale, like a look at one's orders, against the limits of its user and its address: a
// Limited error when it is beyond one. These windows are beside those of the joins and grabs of each sale. user "" = nobody is
// known yet, so that the address alone counts. It blocks on Redis; any other error leaves open whether the request was counted.
func (q *Queue) Allow(ctx context.Context, user, address string) error {
	k, args := keysOf(noSale), q.limitArgs()
	var names []string
	if q.opts.UserLimit.On() && user != "" {
		names = append(names, k.userLimit(user))
	} else {
		args[0] = 0
	}
	if q.opts.AddressLimit.On() {
		names = append(names, k.addressLimit(address))
	}
	if len(names) == 0 {
		return nil
	}
	v, err := q.run(ctx, "limit", names, args)
	if err != nil {
		return fmt.Errorf("count a request: %w", err)
	}
	r := &reply{script: "limit"}
	row := r.list(v, 1)
	if r.int(row[0]) == codeLimited {
		return q.limitError(r, row)
	}
	return r.err
}
