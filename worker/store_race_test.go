package worker

import (
	"sync"
	"testing"

	"sluice/queue"
)

// Of a payment and an expiry at the same moment one wins, whoever it is, ten thousand times.
func TestStorePayVersusExpireHasOneWinnerEach(t *testing.T) {
	t.Parallel()
	const count = 10_000
	s := openTest(t, serverDatabase(t, "SLUICE_TEST_MYSQL", "mysql"))
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	save(t, s, sellOut("phone", 1, count))
	orders := make([]queue.Order, count)
	for i := range orders {
		orders[i] = held("phone", i, opening+int64(i))
	}
	for start := 0; start < count; start += 1000 {
		write(t, s, orders[start:start+1000]...)
	}
	var mu sync.Mutex
	paid, expired := map[string]bool{}, map[string]bool{}
	together(12, func(n int) {
		if n < 2 { // the sweepers follow the payers closely: both work on the same few orders
			for at := int64(0); at <= count; at += 5 {
				page, err := s.Expire(t.Context(), opening+at, 500)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, order := range page {
					if expired[order.ID] {
						t.Errorf("order %s expired twice", order.ID)
					}
					expired[order.ID] = true
				}
				mu.Unlock()
			}
			return
		}
		for i := n - 2; i < count; i += 10 {
			order, err := s.Payment(t.Context(), Payment{Event: "pay " + orders[i].ID, Order: orders[i].ID, Status: PaymentPaid, At: opening})
			switch {
			case err == nil && order.Status == queue.Paid:
				mu.Lock()
				paid[order.ID] = true
				mu.Unlock()
			case queue.CodeOf(err) != queue.Conflict || order.Status != queue.Expired:
				t.Errorf("paying order %d: %+v, %v", i, order, err)
			}
		}
	})
	for _, order := range orders {
		if paid[order.ID] == expired[order.ID] {
			t.Errorf("order %s: paid %v, expired %v", order.ID, paid[order.ID], expired[order.ID])
		}
	}
	if len(paid) == 0 || len(expired) == 0 {
		t.Errorf("%d were paid and %d expired: nothing raced", len(paid), len(expired))
	}
	wantSold(t, s, "phone", int64(len(paid)))
	t.Logf("%d paid, %d expired", len(paid), len(expired))
}
