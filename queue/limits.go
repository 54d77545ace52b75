package queue

import (
	"fmt"
	"time"
)

// Limits bound what one user, one address and one outbox may ask of Redis. A Queue reads them once for each call of a script, so
// that its keys, its arguments and what is made of its reply fit together whenever they change.
type Limits struct {
	User    Rate  // joins and grabs of one user in one sale, and what Allow counts of one user
	Address Rate  // joins and grabs from one address in one sale, and what Allow counts of one address
	Outbox  int64 // orders in the outbox of a sale beyond which no turn is given and nothing is sold without one; 0 = any number
}

// SetLimits puts other limits in force, for whatever is asked of Redis from now on. Requests of before count against the new ones
// as long as Redis remembers them, which is as long as the windows of then; of a limit that crosses shortLimit it forgets them.
// It may be called at any time and blocks on nothing.
func (q *Queue) SetLimits(limits Limits) { q.limits.Store(&limits) }

// shortLimit is the longest limit that scripts keep as a string, and longer ones as a list: SHORT in lua/window.lua.
const shortLimit = 64

// args are the first arguments of every script that checks limits.
func (l *Limits) args() []any {
	return []any{l.User.N, l.User.Per.Microseconds(), l.Address.N, l.Address.Per.Microseconds()}
}

// keys adds those of one entry of such a script. A string is never looked for where a list is: nodes may differ in their limits
// for a while, and limits change.
func (l *Limits) keys(names []string, k keys, user, address string) []string {
	if l.User.On() {
		names = append(names, k.userLimit(user, l.User.N > shortLimit))
	}
	if l.Address.On() {
		names = append(names, k.addressLimit(address, l.Address.N > shortLimit))
	}
	return names
}

// refusal reads an entry that was refused by a limit.
func (l *Limits) refusal(r *reply, row []any) error {
	row = r.list(row, 3)
	limit, by, who := l.User, "user", "you"
	if r.int(row[1]) == byAddress {
		limit, by, who = l.Address, "address", "your address"
	}
	wait := time.Duration(r.int(row[2])) * time.Microsecond
	return &Error{
		Code:       Limited,
		Message:    fmt.Sprintf("it is crowded: %s may ask %s; you keep your place, try again in a moment", who, limit),
		RetryAfter: wait,
		By:         by,
		Limit:      limit.N,
		Reset:      time.Now().Add(wait),
	}
}
