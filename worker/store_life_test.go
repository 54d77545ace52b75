package worker

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/queue"
)

func TestStorePayingKeepsTheUnits(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 5))
		want := write(t, s, grab("phone", 1))[0].Order
		want.Status, want.PaidAt = queue.Paid, opening+5003
		paid, err := s.Transition(t.Context(), want.ID, queue.Confirmed, queue.Paid, opening+5003)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "the paid order", paid, want)
		again, err := s.Transition(t.Context(), want.ID, queue.Confirmed, queue.Paid, opening+9000)
		wantCode(t, err, queue.Conflict)
		wantSame(t, "the order paid again", again, want)
		wantSold(t, s, "phone", 1)
		moves, err := s.Moves(t.Context(), 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(moves) != 1 || moves[0].Kind != "paid" {
			t.Fatalf("Redis would be told %+v", moves)
		}
		wantSame(t, "the order that Redis is told of", moves[0].Order, want)
	})
}

func TestStoreOfPayingExpiringAndCancellingOneWins(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		const count = 20
		save(t, s, sellOut("phone", 1, count))
		var kept atomic.Int64
		for _, w := range write(t, s, grabs("phone", 0, count)...) {
			var winners atomic.Int64
			together(6, func(i int) {
				to := []queue.OrderStatus{queue.Paid, queue.Expired, queue.Cancelled}[i%3]
				_, err := s.Transition(t.Context(), w.Order.ID, queue.Confirmed, to, opening)
				switch {
				case err == nil:
					winners.Add(1)
					if to == queue.Paid {
						kept.Add(1)
					}
				case queue.CodeOf(err) != queue.Conflict:
					t.Error(err)
				}
			})
			if winners.Load() != 1 {
				t.Errorf("order %s was moved %d times", w.Order.ID, winners.Load())
			}
		}
		wantSold(t, s, "phone", kept.Load())
		moves, err := s.Moves(t.Context(), 0, 2*count)
		if err != nil {
			t.Fatal(err)
		}
		if len(moves) != count {
			t.Errorf("%d orders were moved and left %d moves", count, len(moves))
		}
	})
}

func TestStoreMovesArePendingUntilTheyAreDone(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 4))
		write(t, s, grabs("phone", 0, 6)...)
		cancelled, err := s.Transition(t.Context(), grab("phone", 2).ID, queue.Confirmed, queue.Cancelled, opening)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		var after int64
		for {
			moves, err := s.Moves(t.Context(), after, 2)
			if err != nil {
				t.Fatal(err)
			}
			if len(moves) == 0 {
				break
			}
			for _, move := range moves {
				kinds, after = append(kinds, move.Kind), move.ID
			}
		}
		wantSame(t, "the kinds of moves", kinds, []string{"reject", "reject", "cancelled"})
		for range 2 {
			if err := s.MoveDone(t.Context(), []string{grab("phone", 4).ID, grab("phone", 5).ID, grab("phone", 0).ID, "nobody"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.MoveDone(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		moves, err := s.Moves(t.Context(), 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(moves) != 1 {
			t.Fatalf("pending moves: %+v", moves)
		}
		wantSame(t, "the order of the pending move", moves[0].Order, cancelled)
	})
}

// held is a grab whose order has to be paid until a moment.
func held(sale string, i int, until int64) queue.Order {
	order := grab(sale, i)
	order.PayBy = until
	return order
}

func TestStoreExpiresWhatIsDueAndNothingElse(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 20))
		free := grab("phone", 0)
		free.PayBy = 0
		write(t, s, free)
		for i := 1; i <= 10; i++ {
			write(t, s, held("phone", i, opening+int64(i)))
		}
		if _, err := s.Transition(t.Context(), grab("phone", 2).ID, queue.Confirmed, queue.Paid, opening); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Overdue(t.Context(), opening+5); err != nil || n != 4 {
			t.Fatalf("%d overdue, %v", n, err)
		}
		var got []string
		for range 4 {
			page, err := s.Expire(t.Context(), opening+5, 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, order := range page {
				if order.Status != queue.Expired {
					t.Errorf("got %+v", order)
				}
				got = append(got, order.ID)
			}
		}
		wantSame(t, "the expired orders", got, []string{
			grab("phone", 1).ID, grab("phone", 3).ID, grab("phone", 4).ID, grab("phone", 5).ID,
		})
		wantSold(t, s, "phone", 7)
		// Whose order expired may buy again.
		again := held("phone", 30, opening+100)
		again.User = grab("phone", 1).User
		wantSame(t, "why the next order is refused", reasons(write(t, s, again)), []string{""})
		moves, err := s.Moves(t.Context(), 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(moves) != 5 {
			t.Errorf("%d moves for one paid order and four that expired", len(moves))
		}
	})
}

func TestStoreExpiryRunTenTimesAtOnceReturnsStockOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		const count = 200
		save(t, s, sellOut("phone", 1, count))
		orders := make([]queue.Order, count)
		for i := range orders {
			orders[i] = held("phone", i, opening+1)
		}
		write(t, s, orders...)
		var mu sync.Mutex
		var got []string
		together(10, func(int) {
			for {
				page, err := s.Expire(t.Context(), opening+1, 30)
				if err != nil {
					t.Error(err)
					return
				}
				if len(page) == 0 {
					return
				}
				mu.Lock()
				for _, order := range page {
					got = append(got, order.ID)
				}
				mu.Unlock()
			}
		})
		slices.Sort(got)
		if n := len(got); n != count || len(slices.Compact(got)) != count {
			t.Errorf("%d orders were expired %d times", count, n)
		}
		wantSold(t, s, "phone", 0)
	})
}

func TestStorePaymentCountsOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 20))
		due := held("phone", 1, opening+10)
		free := grab("phone", 2)
		free.PayBy = 0
		late := held("phone", 3, opening+1)
		write(t, s, due, free, late)
		if _, err := s.Expire(t.Context(), opening+1, 10); err != nil {
			t.Fatal(err)
		}
		pay := func(event, order, status string) (queue.OrderStatus, queue.Code) {
			t.Helper()
			got, err := s.Payment(t.Context(), Payment{Event: event, Order: order, Status: status, At: opening + 7})
			if err != nil && queue.CodeOf(err) == queue.Unavailable {
				t.Fatal(err)
			}
			return got.Status, queue.CodeOf(err)
		}
		refunds := func() (events []string) {
			t.Helper()
			if err := s.db.SelectContext(t.Context(), &events, "SELECT event_id FROM payments WHERE refund_due = 1 ORDER BY event_id"); err != nil {
				t.Fatal(err)
			}
			return events
		}
		for i, test := range []struct {
			event, order, says string
			status             queue.OrderStatus
			code               queue.Code
			refunds            []string
		}{
			{"e1", due.ID, PaymentFailed, queue.Confirmed, "", nil},
			{"e2", due.ID, PaymentPaid, queue.Paid, "", nil},
			{"e2", due.ID, PaymentPaid, queue.Paid, "", nil},
			{"e1", due.ID, PaymentPaid, queue.Paid, "", nil},
			{"e3", due.ID, PaymentPaid, queue.Paid, "", []string{"e3"}}, // paid twice
			{"e4", free.ID, PaymentPaid, queue.Confirmed, queue.Conflict, []string{"e3", "e4"}},
			{"e5", late.ID, PaymentPaid, queue.Expired, queue.Conflict, []string{"e3", "e4", "e5"}},
			{"e5", late.ID, PaymentPaid, queue.Expired, queue.Conflict, []string{"e3", "e4", "e5"}},
			{"e5", due.ID, PaymentPaid, "", queue.Conflict, []string{"e3", "e4", "e5"}}, // the event was about another order
			{"e6", late.ID, PaymentRefunded, queue.Expired, "", []string{"e3", "e4"}},
			{"e7", "nothing", PaymentPaid, "", queue.NoSuchOrder, []string{"e3", "e4"}},
		} {
			status, code := pay(test.event, test.order, test.says)
			if status != test.status || code != test.code || !slices.Equal(refunds(), test.refunds) {
				t.Errorf("step %d: the order is %q (%s), refunds %v; want %+v", i, status, code, refunds(), test)
			}
		}
		if order, err := s.Order(t.Context(), due.ID); err != nil || order.PaidAt != opening+7 {
			t.Errorf("got %+v, %v", order, err)
		}
	})
}

func TestStoreSamePaymentEventAtOnceCountsOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 20))
		order := held("phone", 1, opening+10)
		write(t, s, order)
		together(8, func(int) {
			got, err := s.Payment(t.Context(), Payment{Event: "e", Order: order.ID, Status: PaymentPaid, At: opening})
			if err != nil || got.Status != queue.Paid {
				t.Errorf("got %+v, %v", got, err)
			}
		})
		var n int
		if err := s.db.GetContext(t.Context(), &n, "SELECT COUNT(*) FROM payments WHERE refund_due = 0"); err != nil || n != 1 {
			t.Errorf("%d payments recorded, %v", n, err)
		}
	})
}
