package queue

import (
	"context"
	"fmt"
)

// Balance is a sale added up in Redis at one moment: for each item, Stock + Winners = Total, always.
type Balance struct {
	At    int64 // Redis time, ms since the epoch
	News  int64 // counts what was told so far; whenever stock is given back, something is
	Items []ItemBalance
}

// ItemBalance is one item of a Balance, in units.
type ItemBalance struct {
	Item    string
	Total   int64
	Stock   int64 // left
	Winners int64 // of all marks, as counted along with them
}

// Balance adds a sale up, in one script that writes nothing. Errors: Unavailable.
func (q *Queue) Balance(ctx context.Context, sale string) (Balance, error) {
	k := keysOf(sale)
	v, err := q.run(ctx, "balance", []string{k.meta, k.stock}, nil)
	if err != nil {
		return Balance{}, err
	}
	r := &reply{script: "balance"}
	rows := r.list(v, 0)
	if len(rows) == 0 {
		return Balance{}, q.absent(ctx, sale)
	}
	head := r.list(rows[0], 2)
	b := Balance{At: r.int(head[0]), News: r.int(head[1])}
	for _, row := range rows[1:] {
		f := r.list(row, 4)
		b.Items = append(b.Items, ItemBalance{
			Item: r.text(f[0]), Total: r.int(f[1]), Stock: r.int(f[2]), Winners: r.int(f[3]),
		})
	}
	return b, r.err
}

// Mark is a user's live order as Redis keeps it.
type Mark struct {
	User  string
	Order Order
}

// Marks calls fn with all marks of a sale, in pages. Marks that come or go meanwhile may be missed or repeated. Errors:
// that of fn, Unavailable.
func (q *Queue) Marks(ctx context.Context, sale string, fn func([]Mark) error) error {
	key := keysOf(sale).winners
	r := &reply{script: "marks"}
	for cursor := uint64(0); ; {
		pairs, next, err := q.rdb.HScan(ctx, key, cursor, "", 1000).Result()
		if err != nil {
			return fmt.Errorf("read the marks of sale %s: %w", sale, err)
		}
		marks := make([]Mark, 0, len(pairs)/2)
		for i := 0; i+1 < len(pairs); i += 2 {
			order := r.mark(sale, pairs[i], pairs[i+1])
			if r.err != nil {
				return r.err
			}
			marks = append(marks, Mark{User: pairs[i], Order: *order})
		}
		if err := fn(marks); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
