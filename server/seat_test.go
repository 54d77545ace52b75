package server

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sluice/queue"
)

func TestJoiningReturnsTheStateAndATokenOfTheSeat(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	seat := queue.Seat{User: "ann", Ticket: 15, Number: 15, Epoch: 2, Status: queue.Waiting}
	var asked []queue.JoinRequest
	b.line.join = func(req queue.JoinRequest) (queue.Seat, error) {
		asked = append(asked, req)
		return seat, nil
	}
	a := b.send(http.MethodPost, "/api/v1/sales/phone-x/seat", "", b.as("ann")...)
	if a.status != http.StatusOK || a.field(t, "type") != "queued" || a.field(t, "ahead") != 4.0 || a.field(t, "poll_after_ms") != 1000.0 {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	token, _ := a.field(t, "seat").(string)
	got, err := b.server.Identities().ParseSeat(token)
	if want := (SeatToken{Sale: "phone-x", User: "ann", Ticket: 15, Epoch: 2}); err != nil || got != want {
		t.Errorf("the token is of %v, %v; want %v", got, err, want)
	}
	if a := b.send(http.MethodPost, "/api/v1/sales/phone-x/seat", `{"seat":"`+token+`","code":"c","challenge":"d"}`, b.as("ann")...); a.status != http.StatusOK {
		t.Errorf("with the token: got %d %s", a.status, a.body)
	}
	want := []queue.JoinRequest{
		{Sale: "phone-x", User: "ann", Address: "192.0.2.1", Poll: 20 * time.Second, Peer: netip.MustParseAddr("192.0.2.1")},
		{Sale: "phone-x", User: "ann", Address: "192.0.2.1", Resume: 15, Epoch: 2, Poll: 20 * time.Second, Peer: netip.MustParseAddr("192.0.2.1")},
	}
	if diff := cmp.Diff(want, asked, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASeatTokenServesNobodyElseAndNoOtherSale(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.line.join = func(req queue.JoinRequest) (queue.Seat, error) {
		t.Errorf("the line was asked for %v", req)
		return queue.Seat{}, nil
	}
	token, err := b.server.Identities().MintSeat(SeatToken{Sale: "phone-x", User: "ann", Ticket: 15})
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []struct{ sale, user, token string }{
		{"phone-x", "bob", token}, {"solo", "ann", token}, {"phone-x", "ann", token + "A"}, {"phone-x", "ann", "nonsense"},
	} {
		a := b.send(http.MethodPost, "/api/v1/sales/"+call.sale+"/seat", `{"seat":"`+call.token+`"}`, b.as(call.user)...)
		b.mustFail(a, http.StatusBadRequest, queue.BadRequest)
	}
}

func TestWithoutASeatTheStateIsNone(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.line.join = func(req queue.JoinRequest) (queue.Seat, error) { return queue.Seat{User: req.User}, nil }
	a := b.send(http.MethodGet, "/api/v1/sales/phone-x/seat", "", b.as("ann")...)
	if a.status != http.StatusOK || a.field(t, "type") != "none" || a.field(t, "seat") != nil || a.field(t, "poll_after_ms") != 10_000.0 {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

func TestABuyersStateIsTheOrderInItsPresentStatus(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.line.join = func(req queue.JoinRequest) (queue.Seat, error) {
		return queue.Seat{User: req.User, Status: queue.Buyer, Order: &queue.Order{ID: anOrder, Sale: req.Sale, Item: "black", User: req.User, Qty: 1, Status: queue.Reserved}}, nil
	}
	for _, want := range []queue.OrderStatus{queue.Reserved, queue.Paid} {
		if want != queue.Reserved {
			b.store.orders = []queue.Order{{ID: anOrder, Sale: "phone-x", Item: "black", User: "ann", Qty: 1, Status: want}}
		}
		a := b.send(http.MethodGet, "/api/v1/sales/phone-x/seat", "", b.as("ann")...)
		order, _ := a.field(t, "order").(map[string]any)
		if a.status != http.StatusOK || a.field(t, "type") != "order" || order["status"] != string(want) {
			t.Errorf("got %d %s, want %s", a.status, a.body, want)
		}
	}
}

func TestLeavingGivesUpExactlyTheSeatHeld(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	held := queue.Seat{User: "ann", Ticket: 15, Number: 15, Status: queue.Waiting}
	b.line.look = func(string, string) (queue.Seat, error) { return held, nil }
	var left []int64
	b.line.leave = func(_, _ string, number int64) error {
		left, held = append(left, number), queue.Seat{}
		return nil
	}
	for range 2 {
		if a := b.send(http.MethodDelete, "/api/v1/sales/phone-x/seat", "", b.as("ann")...); a.status != http.StatusNoContent {
			t.Errorf("got %d %s", a.status, a.body)
		}
	}
	if diff := cmp.Diff([]int64{15}, left); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheStateNeverComesFromATickBeforeTheSeatWasRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	older := b.snaps["phone-x"]
	newer := *older
	newer.At, newer.Served = older.At+100, 12
	kicks := 0
	b.server.opts.Snapshots = kicked{b.snaps, func() {
		kicks++
		b.snaps["phone-x"] = &newer
	}}
	b.line.join = func(req queue.JoinRequest) (queue.Seat, error) {
		return queue.Seat{User: req.User, Ticket: 15, Number: 15, Status: queue.Waiting, At: older.At}, nil
	}
	a := b.send(http.MethodGet, "/api/v1/sales/phone-x/seat", "", b.as("ann")...)
	if a.field(t, "ahead") != 2.0 || kicks != 1 {
		t.Errorf("after %d kicks: got %s", kicks, a.body)
	}
}

// kicked runs a function when a snapshot is asked for.
type kicked struct {
	fakeSnapshots
	kick func()
}

func (k kicked) Kick(string) { k.kick() }

func TestASeatIsNotTakenInASaleThatIsNotThere(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.line.sales["new"] = phoneX()
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		b.mustFail(b.send(method, "/api/v1/sales/nowhere/seat", "", b.as("ann")...), http.StatusNotFound, queue.NoSuchSale)
	}
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		b.mustFail(b.send(method, "/api/v1/sales/new/seat", "", b.as("ann")...), http.StatusServiceUnavailable, queue.Unavailable)
	}
}

func TestWhoIsFurtherBackAsksLessOften(t *testing.T) {
	t.Parallel()
	sale := phoneX()
	open := func(number int64) (*queue.Snapshot, queue.Seat) {
		return &queue.Snapshot{Sale: &sale, State: queue.Open, Issued: 1 << 20}, queue.Seat{Ticket: number, Number: number, Status: queue.Waiting}
	}
	for _, tc := range []struct {
		ahead int64
		want  time.Duration
	}{{0, time.Second}, {100, time.Second}, {101, 2 * time.Second}, {1000, 2 * time.Second}, {1001, 5 * time.Second},
		{10_000, 5 * time.Second}, {10_001, 10 * time.Second}, {1_000_000, 10 * time.Second}} {
		snap, seat := open(tc.ahead + 1)
		if got := pollAfter(snap, seat); got != tc.want {
			t.Errorf("with %d ahead: %s, want %s", tc.ahead, got, tc.want)
		}
	}
	lobby := &queue.Snapshot{Sale: &sale, State: queue.Lobby}
	for _, tc := range []struct{ until, want time.Duration }{
		{time.Hour, 10 * time.Second}, {20 * time.Second, 5 * time.Second}, {time.Second, time.Second}, {-time.Second, time.Second},
	} {
		lobby.At = sale.OpensAt.Add(-tc.until).UnixMilli()
		if got := pollAfter(lobby, queue.Seat{Ticket: 1, Number: 1, Status: queue.Waiting}); got != tc.want {
			t.Errorf("%s before the opening: %s, want %s", tc.until, got, tc.want)
		}
	}
}
