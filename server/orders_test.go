package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/queue"
)

const (
	annsPaid = "01938f3e-0000-7000-8000-000000000001"
	bobsPaid = "01938f3e-0000-7000-8000-000000000002"
	annsMark = "01938f3e-0000-7000-8000-000000000003"
	nobodys  = "01938f3e-0000-7000-8000-000000000004"
)

// ordersBench has an order of ann and one of bob in the database, and one of ann in phone-x which is only a mark yet.
func ordersBench(t *testing.T) *bench {
	b := newBench(t, nil)
	b.store.orders = []queue.Order{
		{ID: annsPaid, Sale: "solo", Item: queue.MainItem, User: "ann", Qty: 1, Status: queue.Paid, CreatedAt: 1000, PayBy: 2000, PaidAt: 1500},
		{ID: bobsPaid, Sale: "solo", Item: queue.MainItem, User: "bob", Qty: 1, Status: queue.Confirmed, CreatedAt: 1100},
	}
	b.line.look = func(sale, user string) (queue.Seat, error) {
		seat := queue.Seat{User: user}
		if sale == "phone-x" && user == "ann" {
			seat.Status = queue.Buyer
			seat.Order = &queue.Order{ID: annsMark, Sale: sale, Item: "black", User: user, Qty: 2, Status: queue.Reserved, CreatedAt: 3000}
		}
		return seat, nil
	}
	return b
}

func TestAnOrderIsShownToItsOwnerAndToNobodyElse(t *testing.T) {
	t.Parallel()
	b := ordersBench(t)
	for name, tc := range map[string]struct {
		user, path string
		status     queue.OrderStatus // "" = there is no such order
	}{
		"one's own":                                  {"ann", annsPaid, queue.Paid},
		"one which is only a mark":                   {"ann", annsMark, queue.Reserved},
		"one which is only a mark, by its sale":      {"ann", annsMark + "?sale=phone-x", queue.Reserved},
		"one which is only a mark, by another sale":  {"ann", annsMark + "?sale=solo", ""},
		"somebody else's":                            {"ann", bobsPaid, ""},
		"somebody else's mark":                       {"bob", annsMark, ""},
		"one that does not exist":                    {"ann", nobodys, ""},
		"an id in another form":                      {"ann", "urn:uuid:" + annsPaid, ""},
		"an id which is none":                        {"ann", "1", ""},
		"an id which is none and asks for much more": {"ann", "%27%20or%201=1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := b.send(http.MethodGet, "/api/v1/orders/"+tc.path, "", b.as(tc.user)...)
			if tc.status == "" {
				b.mustFail(a, http.StatusNotFound, queue.NoSuchOrder)
			} else if a.status != http.StatusOK || a.field(t, "status") != string(tc.status) {
				t.Errorf("got %d %s, want %s", a.status, a.body, tc.status)
			}
		})
	}
	b.mustFail(b.send(http.MethodGet, "/api/v1/orders/"+nobodys+"?sale=nowhere", "", b.as("ann")...), http.StatusNotFound, queue.NoSuchSale)
}

func TestTheListHasRowsAndMarksTheNewestFirst(t *testing.T) {
	t.Parallel()
	b := ordersBench(t)
	list := func(user, query string) []string {
		var got struct {
			Orders []orderView `json:"orders"`
		}
		a := b.send(http.MethodGet, "/api/v1/orders"+query, "", b.as(user)...)
		if err := json.Unmarshal(a.body, &got); err != nil || a.status != http.StatusOK || got.Orders == nil {
			t.Fatalf("got %d %s", a.status, a.body)
		}
		ids := []string{}
		for _, order := range got.Orders {
			ids = append(ids, order.ID)
		}
		return ids
	}
	for _, tc := range []struct {
		user, query string
		want        []string
	}{
		{"ann", "", []string{annsMark, annsPaid}},
		{"ann", "?sale=phone-x", []string{annsMark}},
		{"ann", "?sale=solo", []string{annsPaid}},
		{"bob", "", []string{bobsPaid}},
		{"cat", "", []string{}},
	} {
		if diff := cmp.Diff(tc.want, list(tc.user, tc.query)); diff != "" {
			t.Errorf("%s%s (-want +got):\n%s", tc.user, tc.query, diff)
		}
	}
	// Once the row is there, the order is not listed twice.
	b.store.orders = append(b.store.orders, queue.Order{ID: annsMark, Sale: "phone-x", Item: "black", User: "ann", Qty: 1, Status: queue.Confirmed, CreatedAt: 3000})
	if diff := cmp.Diff([]string{annsMark, annsPaid}, list("ann", "")); diff != "" {
		t.Errorf("with the row (-want +got):\n%s", diff)
	}
}

func TestAnOrderThatCannotBeLookedUpIsNotCalledMissing(t *testing.T) {
	t.Parallel()
	b := ordersBench(t)
	b.store.fail = errors.New("dial tcp: refused")
	b.mustFail(b.send(http.MethodGet, "/api/v1/orders/"+annsPaid, "", b.as("ann")...), http.StatusServiceUnavailable, queue.Unavailable)
	b.mustFail(b.send(http.MethodGet, "/api/v1/orders", "", b.as("ann")...), http.StatusServiceUnavailable, queue.Unavailable)
	b.store.fail = nil
	b.line.look = func(string, string) (queue.Seat, error) { return queue.Seat{}, errDown }
	b.mustFail(b.send(http.MethodGet, "/api/v1/orders/"+nobodys, "", b.as("ann")...), http.StatusServiceUnavailable, queue.Unavailable)
	b.mustFail(b.send(http.MethodGet, "/api/v1/orders", "", b.as("ann")...), http.StatusServiceUnavailable, queue.Unavailable)
	if a := b.send(http.MethodGet, "/api/v1/orders/"+annsPaid, "", b.as("ann")...); a.status != http.StatusOK {
		t.Errorf("with a row, and without Redis: got %d %s", a.status, a.body)
	}
}

func TestARepeatedRequestGetsItsOrderInItsPresentStatus(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		row   queue.OrderStatus // "" = no row
		ended bool
		down  bool
		want  queue.OrderStatus // "" = unavailable
	}{
		"no row yet":                           {"", false, false, queue.Reserved},
		"paid":                                 {queue.Paid, false, false, queue.Paid},
		"cancelled":                            {queue.Cancelled, true, false, queue.Cancelled},
		"released, and no row came of it":      {"", true, false, queue.Rejected},
		"live, while the database is down":     {queue.Paid, false, true, queue.Reserved},
		"released, while the database is down": {queue.Expired, true, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(o *Options) {
				o.AwaitRow = func(context.Context, queue.Order) error {
					if tc.ended {
						t.Error("waits for the row of an order that ended")
					}
					return nil
				}
			})
			b.line.grab = func(queue.GrabRequest) (queue.Grabbed, error) {
				order := queue.Order{ID: anOrder, Sale: "solo", Item: "main", User: "ann", Qty: 1, Status: queue.Reserved}
				return queue.Grabbed{Result: queue.Success, Replay: true, Ended: tc.ended, Order: &order}, nil
			}
			if tc.row != "" {
				b.store.orders = []queue.Order{{ID: anOrder, Sale: "solo", Item: "main", User: "ann", Qty: 1, Status: tc.row}}
			}
			if tc.down {
				b.store.fail = errors.New("dial tcp: refused")
			}
			a := b.send(http.MethodPost, "/api/v1/seckill/solo", `{"request_id":"r"}`, b.as("ann")...)
			if tc.want == "" {
				b.mustFail(a, http.StatusServiceUnavailable, queue.Unavailable)
				return
			}
			order, _ := a.field(t, "order").(map[string]any)
			if a.status != http.StatusOK || order["status"] != string(tc.want) {
				t.Errorf("got %d %s, want %s", a.status, a.body, tc.want)
			}
		})
	}
}
