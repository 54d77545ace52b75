package queue

import (
	"context"
	"fmt"
)

// Adoption says what adopting an order did.
type Adoption int

// The outcomes of adopting.
const (
	Marked    Adoption = iota // the mark was there
	Taken                     // the mark was missing: it is set now, and the stock taken
	NoStock                   // the mark is missing and the stock does not suffice
	Released                  // the order was released before
	OtherMark                 // the user holds another order
)

// Adopt makes sure that orders which the database accepted have their marks in Redis, and tells their shoppers that they
// are confirmed. It is idempotent. The adoptions come in the order of the orders, which are all of one sale. Errors:
// Unavailable.
func (q *Queue) Adopt(ctx context.Context, sale string, orders []Order) ([]Adoption, error) {
	return q.adopt(ctx, sale, orders, Confirmed)
}

func (q *Queue) adopt(ctx context.Context, sale string, orders []Order, status OrderStatus) ([]Adoption, error) {
	const page = 500
	k := keysOf(sale)
	adoptions := make([]Adoption, 0, len(orders))
	for start := 0; start < len(orders); start += page {
		part := orders[start:min(start+page, len(orders))]
		args := make([]any, 0, 1+7*len(part))
		args = append(args, string(status))
		for _, o := range part {
			args = append(args, o.User, o.ID, o.Item, o.Qty, o.CreatedAt, o.PayBy, o.RequestID)
		}
		v, err := q.run(ctx, "adopt", []string{k.meta, k.stock, k.winners, k.past, k.news}, args)
		if err != nil {
			return nil, err
		}
		r := &reply{script: "adopt"}
		if len(r.list(v, 0)) == 0 {
			return nil, errNotHere(sale)
		}
		for _, code := range r.list(v, len(part)) {
			adoptions = append(adoptions, Adoption(r.int(code)))
		}
		if r.err != nil {
			return nil, r.err
		}
	}
	return adoptions, nil
}

// Release gives the stock of an order back, once, and tells its shopper the status that ended it. It says whether stock
// was given back now. Errors: Unavailable.
func (q *Queue) Release(ctx context.Context, order Order, status OrderStatus) (bool, error) {
	return q.release(ctx, order, status)
}

func (q *Queue) release(ctx context.Context, o Order, status OrderStatus) (bool, error) {
	k := keysOf(o.Sale)
	v, err := q.run(ctx, "release", []string{k.meta, k.stock, k.winners, k.past, k.news},
		[]any{string(status), o.User, o.ID, o.Item, o.Qty, o.CreatedAt, o.PayBy, o.RequestID})
	if err != nil {
		return false, fmt.Errorf("release order %s: %w", o.ID, err)
	}
	r := &reply{script: "release"}
	n := r.int(v)
	if n < 0 {
		return false, errNotHere(o.Sale)
	}
	return n == 1, r.err
}
