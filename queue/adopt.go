package queue

import (
	"context"
	"fmt"
	"time"

	"sluice/words"
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

// decidedPage is how many orders one call of a script handles: short enough that grabs in between wait for
// milliseconds.
const decidedPage = 200

// Adopt makes sure that orders which are live in the database have their marks in Redis, and tells their shoppers in
// what status they are. It is idempotent. The adoptions come in the order of the orders, which are all of one sale.
// Errors: Unavailable.
func (q *Queue) Adopt(ctx context.Context, sale string, orders []Order) ([]Adoption, error) {
	return q.adopt(ctx, sale, orders, "1")
}

func (q *Queue) adopt(ctx context.Context, sale string, orders []Order, announce string) ([]Adoption, error) {
	codes, err := q.decided(ctx, "adopt", sale, announce, orders)
	adoptions := make([]Adoption, len(codes))
	for i, code := range codes {
		adoptions[i] = Adoption(code)
	}
	return adoptions, err
}

// Release gives the stock of orders that ended back, each once, and tells their shoppers the status that ended them. It
// says for each, all of one sale, whether stock was given back now. While the sale recovers it does nothing. Errors:
// Unavailable.
func (q *Queue) Release(ctx context.Context, sale string, orders []Order) (released []bool, err error) {
	return q.release(ctx, sale, orders, "ended")
}

func (q *Queue) release(ctx context.Context, sale string, orders []Order, why string) ([]bool, error) {
	codes, err := q.decided(ctx, "release", sale, why, orders)
	released := make([]bool, len(codes))
	for i, code := range codes {
		released[i] = code == 1
	}
	return released, err
}

// decided brings what the database decided about orders to Redis, by a script that answers with a number for each. Where
// it fails, the orders before were handled.
func (q *Queue) decided(ctx context.Context, script, sale, mode string, orders []Order) ([]int64, error) {
	k := keysOf(sale)
	names := []string{k.meta, k.stock, k.winners, k.past, k.news}
	codes := make([]int64, 0, len(orders))
	for start := 0; start < len(orders); start += decidedPage {
		part := orders[start:min(start+decidedPage, len(orders))]
		args := make([]any, 0, 2+8*len(part))
		args = append(args, mode, contexts(len(part), func(i int) string { return part[i].Trace }))
		for _, o := range part {
			payBy := o.PayBy
			if o.Status == Paid {
				payBy = 0 // nothing waits for its units any more
			}
			args = append(args, o.User, o.ID, o.Item, o.Qty, o.CreatedAt, payBy, o.RequestID, string(o.Status))
		}
		v, err := q.run(ctx, script, names, args)
		if err != nil {
			return codes, fmt.Errorf("%s %s of sale %s: %w", script, words.Count(len(part), "order"), sale, err)
		}
		r := &reply{script: script}
		if len(r.list(v, 0)) == 0 {
			return codes, q.absent(ctx, sale)
		}
		for _, code := range r.list(v, len(part)) {
			codes = append(codes, r.int(code))
		}
		if r.err != nil {
			return codes, r.err
		}
	}
	return codes, nil
}

// Time is the clock of Redis, ms since the epoch: the only one that decides anything. Errors: Unavailable.
func (q *Queue) Time(ctx context.Context) (int64, error) {
	at, err := q.rdb.Time(ctx).Result()
	if err != nil {
		return 0, fmt.Errorf("read the clock of redis: %w", err)
	}
	return at.UnixNano() / int64(time.Millisecond), nil
}
