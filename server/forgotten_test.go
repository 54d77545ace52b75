package server

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"sluice/queue"
)

// orderIDAt is an order id made for a user at a moment.
func (f *fair) orderIDAt(at time.Time, user string) string {
	id := uuid.Must(uuid.NewV7())
	for i := range 6 {
		id[i] = byte(at.UnixMilli() >> (40 - 8*i))
	}
	sign(f.main.server.current().identities.orders[0], &id, f.sale, user)
	return id.String()
}

func TestAForgottenSuccessIsToldRejected(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var forgotten []queue.Order
	f := newFair(t, saleOf(5, `line: { order: fifo, active: 1 }`), change{server: func(o *Options) {
		o.Forget = func(_ context.Context, order queue.Order) (queue.Order, error) {
			mu.Lock()
			defer mu.Unlock()
			forgotten = append(forgotten, order)
			order.Status = queue.Rejected
			return order, nil
		}
	}})
	ann, bob := f.shopper("ann"), f.shopper("bob")
	at, _, _ := ann.called(f.main)
	at.grab("r")
	bought := at.expect("success").order(t)
	f.rowOf(bought, "ann", queue.Confirmed)
	lost := f.orderIDAt(time.Now().Add(-time.Minute+10*time.Second), "bob") // the sale opened a minute ago at most
	madeUp := uuid.MustParse(lost)
	madeUp[15] ^= 1
	by := f.main.server.current().identities
	if id := uuid.MustParse(bought.ID); !by.wasTold(id, f.sale, "ann") || by.wasTold(id, f.sale, "bob") || by.wasTold(id, "another", "ann") {
		t.Errorf("the order %s of ann does not say whose it is", id)
	}
	names := func(s *shopper, order string) *tab {
		t.Helper()
		tab := s.dial(f.main, nil)
		tab.say(fmt.Sprintf(`{"type":"hello","token":%q,"order":%q}`, s.token, order))
		tab.await("welcome")
		tab.next()
		return tab
	}
	for name, tc := range map[string]struct {
		shopper *shopper
		order   string
		told    bool
	}{
		"one that is nowhere":      {bob, lost, true},
		"somebody else's":          {bob, bought.ID, false},
		"one's own":                {ann, bought.ID, false},
		"one that is too young":    {bob, f.orderIDAt(time.Now(), "bob"), false},
		"one from before the sale": {bob, f.orderIDAt(time.Now().Add(-time.Hour), "bob"), false},
		"one made for another":     {bob, f.orderIDAt(time.Now().Add(-30*time.Second), "ann"), false},
		"one that is made up":      {bob, madeUp.String(), false},
		"no id of ours":            {bob, uuid.NewString(), false},
		"no id":                    {bob, "x", false},
	} {
		tab := names(tc.shopper, tc.order)
		if !tc.told {
			tab.quiet()
			continue
		}
		if told := tab.expect("order").order(t); told.ID != tc.order || told.Status != queue.Rejected {
			t.Errorf("%s: told %+v", name, told)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(forgotten) != 1 || forgotten[0].ID != lost || forgotten[0].User != "bob" || forgotten[0].Sale != f.sale {
		t.Errorf("forgotten: %+v", forgotten)
	}
}
