package queue

import (
	"context"
	"fmt"
	"time"
)

// Allowance is what the limits leave to who asked, as the script found it that counted the request. Where there are two limits
// it is of the one that has less left.
type Allowance struct {
	Limit     int64     // requests in a window
	Remaining int64     // how many more may pass now
	Reset     time.Time // when it is one more
}

// By which limit a request was judged, as scripts say it.
const (
	byUser    = 1
	byAddress = 2
)

// allowance reads the figures of an entry; nothing for one that was refused.
func (l *Limits) allowance(r *reply, row []any, now time.Time) Allowance {
	left := Allowance{Remaining: r.int(row[1]), Reset: now.Add(time.Duration(r.int(row[2])) * time.Microsecond)}
	switch by := r.int(row[0]); by {
	case 0:
		return Allowance{}
	case byUser:
		left.Limit = l.User.N
	case byAddress:
		left.Limit = l.Address.N
	default:
		r.fail("a limit was expected", by)
	}
	return left
}

// allowances are those of the entries of a call; none when no limit is on.
type allowances []Allowance

// of is the allowance of entry i; nil for one that was refused.
func (a allowances) of(i int) *Allowance {
	if a == nil || a[i].Limit == 0 {
		return nil
	}
	return &a[i]
}

// allowances reads the figures behind the replies of n entries.
func (l *Limits) allowances(r *reply, rows []any, n int) allowances {
	if !l.User.On() && !l.Address.On() {
		return nil
	}
	figures, now := r.list(r.list(rows, n+2)[n+1], 3*n), time.Now()
	left := make(allowances, n)
	for i := range left {
		left[i] = l.allowance(r, figures[3*i:3*i+3], now)
	}
	return left
}

// Allow counts a request that is of no one sale, like a look at one's orders, against the limits of its user and its address: a
// Limited error when it is beyond one. These windows are beside those of the joins and grabs of each sale. user "" = nobody is
// known yet, so that the address alone counts; the Allowance is nil when no limit is on for it. It blocks on Redis; any other
// error leaves open whether the request was counted.
func (q *Queue) Allow(ctx context.Context, user, address string) (*Allowance, error) {
	limits := q.limits.Load()
	if user == "" && limits.User.On() {
		limits = &Limits{Address: limits.Address}
	}
	names, args := limits.keys(nil, keysOf(noSale), user, address), limits.args()
	if len(names) == 0 {
		return nil, nil
	}
	v, err := q.run(ctx, "limit", names, args)
	if err != nil {
		return nil, fmt.Errorf("count a request: %w", err)
	}
	r := &reply{script: "limit"}
	row := r.list(v, 1)
	if r.int(row[0]) == codeLimited {
		return nil, limits.refusal(r, row)
	}
	row = r.list(row, 4)
	left := allowances{limits.allowance(r, row[1:4], time.Now())}
	if r.err != nil {
		return nil, r.err
	}
	return left.of(0), nil
}
