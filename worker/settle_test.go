package worker

import (
	"context"
	"errors"
	"testing"

	"sluice/queue"
)

// cut is a queue or a store whose calls get lost: before they are made, or after, so that only the answer is.
type cut struct {
	*market
	*Store
	before, after map[string]int // by call: how many are lost
}

var errCut = errors.New("the connection is cut")

func (c *cut) call(name string, do func() error) error {
	if c.before[name]--; c.before[name] >= 0 {
		return errCut
	}
	if err := do(); err != nil {
		return err
	}
	if c.after[name]--; c.after[name] >= 0 {
		return errCut
	}
	return nil
}

func (c *cut) Adopt(ctx context.Context, sale string, orders []queue.Order) (a []queue.Adoption, err error) {
	return a, c.call("adopt", func() error { a, err = c.market.Adopt(ctx, sale, orders); return err })
}

func (c *cut) Release(ctx context.Context, sale string, orders []queue.Order) (released []bool, err error) {
	return released, c.call("release", func() error { released, err = c.market.Release(ctx, sale, orders); return err })
}

func (c *cut) MoveDone(ctx context.Context, ids []string) error {
	return c.call("done", func() error { return c.Store.MoveDone(ctx, ids) })
}

// The stock of an order that ended returns once, wherever its return was cut off and however often it is begun again.
func TestStockReturnsOnceWhereverItsReturnIsCutOff(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		for _, loss := range []struct {
			name          string
			before, after map[string]int
		}{
			{"before Redis is told", map[string]int{"release": 2}, nil},
			{"after Redis was told", nil, map[string]int{"release": 2}},
			{"before the move is done", map[string]int{"done": 2}, nil},
			{"after the move was done", nil, map[string]int{"done": 2}},
		} {
			m := newMarket(t, redisURL(t), s, 10, 10, false)
			order := *m.buy("ann")
			write(t, s, order)
			if _, err := s.Transition(t.Context(), order.ID, queue.Confirmed, queue.Cancelled, 0); err != nil {
				t.Fatal(err)
			}
			c := &cut{market: m, Store: s, before: loss.before, after: loss.after}
			if c.before == nil {
				c.before = map[string]int{}
			}
			if c.after == nil {
				c.after = map[string]int{}
			}
			tries := 0
			for done := false; !done; tries++ {
				moves, err := s.Moves(t.Context(), 0, 100)
				if err != nil {
					t.Fatal(err)
				}
				done = true
				for _, move := range moves {
					if move.Order.ID == order.ID {
						done = false
						_ = settle(t.Context(), c, c, m.sale, []queue.Order{move.Order})
					}
				}
			}
			if tries < 2 {
				t.Errorf("%s: nothing was cut off", loss.name)
			}
			balance, err := m.Balance(t.Context(), m.sale)
			if err != nil || balance.Items[0].Stock != 10 || balance.Items[0].Winners != 0 {
				t.Errorf("%s: %+v, %v", loss.name, balance, err)
			}
			wantSold(t, s, m.sale, 0)
		}
	})
}
