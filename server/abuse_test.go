package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/queue"
)

// What people tried with such systems, over real HTTP and sockets, against nodes on a real Redis.

func TestAUserIDIsNotBelievedAsSent(t *testing.T) {
	t.Parallel()
	n := newFair(t, saleOf(5), change{server: func(o *Options) { o.Auth = []string{"jwt", "hmac"} }}).main
	bob := n.shopper("bob")
	pair := MintHMAC(testSecret(), "bob", time.Now().Add(time.Hour))
	for name, header := range map[string][]string{
		"alone":                     {headerUser, "ann"},
		"with nothing signed":       {headerUser, "ann", headerToken, ""},
		"with a made-up signature":  {headerUser, "ann", headerToken, strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10) + "." + strings.Repeat("0", 64)},
		"with another user's pair":  {headerUser, "ann", headerToken, pair},
		"with a bearer token as it": {headerUser, "ann", headerToken, bob.token},
	} {
		for _, call := range [][2]string{
			{http.MethodGet, "/orders?sale=" + n.sale}, {http.MethodGet, "/sales/" + n.sale + "/seat"}, {http.MethodPost, "/sales/" + n.sale + "/seat"},
			{http.MethodPost, "/sales/" + n.sale + "/grab"}, {http.MethodPost, "/seckill/" + n.sale}, {http.MethodDelete, "/sales/" + n.sale + "/seat"},
		} {
			a := n.ask(call[0], call[1], "", header...)
			if a.status != http.StatusUnauthorized || a.field(t, "code") != string(queue.Unauthenticated) {
				t.Errorf("%s, %s %s: got %d %s", name, call[0], call[1], a.status, a.body)
			}
		}
	}
	// Beside a token that names bob, the header is not looked at.
	a := n.ask(http.MethodPost, "/sales/"+n.sale+"/seat", "", "Authorization", "Bearer "+bob.token, headerUser, "ann")
	if a.status != http.StatusOK {
		t.Fatalf("bob joins: %d %s", a.status, a.body)
	}
	if seat := must[SeatToken](t)(n.server.current().identities.ParseSeat(fmt.Sprint(a.field(t, "seat")))); seat.User != "bob" {
		t.Errorf("the seat is %s's", seat.User)
	}
	if seat := must[queue.Seat](t)(n.line.Look(t.Context(), n.sale, "ann")); seat.Ticket != 0 {
		t.Errorf("ann has a seat: %+v", seat)
	}
}

func TestOrdersAndSeatsOfOthersAreOutOfReach(t *testing.T) {
	t.Parallel()
	touched := func(queue.Order) (queue.Order, error) {
		t.Error("somebody else's order was changed")
		return queue.Order{}, nil
	}
	n := newFair(t, saleOf(5), change{server: func(o *Options) { o.Cashier = untouched(touched) }}).main
	ann, bob := n.shopper("ann"), n.shopper("bob")
	tab, welcome, _ := ann.called(n)
	tab.grab("r")
	order := tab.expect("success").order(t)

	asBob := []string{"Authorization", "Bearer " + bob.token}
	reach := func(what, where string) {
		t.Helper()
		for _, call := range [][2]string{
			{http.MethodGet, "/orders/" + order.ID + where},
			{http.MethodPost, "/orders/" + order.ID + "/pay" + where}, {http.MethodPost, "/orders/" + order.ID + "/cancel" + where},
		} {
			a := n.ask(call[0], call[1], "", asBob...)
			if a.status != http.StatusNotFound || a.field(t, "code") != string(queue.NoSuchOrder) {
				t.Errorf("%s: %s %s: got %d %s", what, call[0], call[1], a.status, a.body)
			}
			if a := n.ask(call[0], call[1], ""); a.status != http.StatusUnauthorized {
				t.Errorf("%s: %s %s by nobody: got %d %s", what, call[0], call[1], a.status, a.body)
			}
		}
		if a := n.orders(bob.token); a.status != http.StatusOK || string(a.body) != "{\"orders\":[]}\n" {
			t.Errorf("%s: bob's orders: %d %s", what, a.status, a.body)
		}
	}
	reach("a mark", "?sale="+n.sale) // without a sale those of all other tests would be asked, too
	n.adopt(order, "ann")
	reach("a row", "?sale="+n.sale)
	reach("a row, wherever", "")

	// A seat token is of no use to anybody but its user.
	a := n.ask(http.MethodPost, "/sales/"+n.sale+"/seat", `{"seat":"`+welcome.Seat+`"}`, append(asBob, "Content-Type", "application/json")...)
	if a.status != http.StatusBadRequest {
		t.Errorf("ann's seat token with bob's own: got %d %s", a.status, a.body)
	}
	if a := n.ask(http.MethodGet, "/sales/"+n.sale+"/seat", "", "Authorization", "Bearer "+welcome.Seat); a.status != http.StatusUnauthorized {
		t.Errorf("ann's seat token as bob's own: got %d %s", a.status, a.body)
	}
	other := bob.dial(n, nil)
	other.hello(welcome.Seat)
	other.mustEnd(closeBadToken, "seat token")
	if a := n.ask(http.MethodDelete, "/sales/"+n.sale+"/seat", "", asBob...); a.status != http.StatusNoContent {
		t.Errorf("bob leaves what he does not have: got %d %s", a.status, a.body)
	}
	if seat := must[queue.Seat](t)(n.line.Look(t.Context(), n.sale, "ann")); seat.Ticket == 0 || seat.Order == nil {
		t.Errorf("ann's seat became %+v", seat)
	}
}

// untouched is a Cashier that must not be reached.
type untouched func(queue.Order) (queue.Order, error)

func (g untouched) Pay(_ context.Context, id string) (queue.Order, error) {
	return g(queue.Order{ID: id})
}
func (g untouched) Cancel(_ context.Context, id string) (queue.Order, error) {
	return g(queue.Order{ID: id})
}
func (g untouched) Payment(_ context.Context, _, id, _ string) (queue.Order, error) {
	return g(queue.Order{ID: id})
}

func TestAHundredClientsWithOneTokenHaveOneSeatAndOneGrab(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(500))
	nodes := []*node{f.main, f.node("other")}
	bot := f.shopper("bot")

	var mu sync.Mutex
	winners, orders, closed := map[string]bool{}, map[string]bool{}, map[int]int{}
	note := func(result, request, order string) {
		mu.Lock()
		defer mu.Unlock()
		orders[order] = true
		if result == "success" {
			winners[request] = true // its repetition has the same answer
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()

	called := make(chan struct{}) // closed once the seat has its turn
	var turn sync.Once
	var clients sync.WaitGroup
	for i := range 50 {
		tab := bot.dial(nodes[i%2], nil)
		tab.hello("")
		clients.Go(func() {
			for grabs, bought := 0, false; !bought || grabs > 0; {
				select {
				case got := <-tab.frames:
					switch got.Type {
					case "welcome", "turn":
						if got.Type == "turn" {
							turn.Do(func() { close(called) })
						}
						tab.grab(fmt.Sprint("socket-", i))
						grabs++
					case "success", "already", "order":
						note(got.Type, got.ID, got.order(t).ID)
						turn.Do(func() { close(called) }) // a grab between the turn and its news
						bought = true
					}
					if got.ID != "" {
						grabs--
					}
				case <-tab.stopped:
					mu.Lock()
					closed[tab.code]++
					mu.Unlock()
					return
				case <-ctx.Done():
					t.Errorf("socket %d was never answered", i)
					return
				}
			}
		})
	}
	for i := range 50 {
		clients.Go(func() {
			n := nodes[i%2]
			as := []string{"Authorization", "Bearer " + bot.token, "Content-Type", "application/json"}
			n.ask(http.MethodPost, "/sales/"+n.sale+"/seat", "", as[:2]...)
			select {
			case <-called:
			case <-ctx.Done():
				t.Errorf("client %d waits in vain for its turn", i)
				return
			}
			grab := func() answer {
				return n.ask(http.MethodPost, "/sales/"+n.sale+"/grab", fmt.Sprintf(`{"request_id":"http-%d"}`, i), as...)
			}
			a := grab()
			for a.status == http.StatusServiceUnavailable && ctx.Err() == nil {
				a = grab() // a busy machine: the same id settles it
			}
			var got struct {
				Result string
				Order  orderView
			}
			_ = json.Unmarshal(a.body, &got)
			if got.Result != "success" && got.Result != "already" {
				t.Errorf("client %d: got %d %s", i, a.status, a.body)
				return
			}
			note(got.Result, fmt.Sprint("http-", i), got.Order.ID)
		})
	}
	clients.Wait()

	if len(winners) != 1 || len(orders) != 1 {
		t.Errorf("the grabs %v succeeded, for the orders %v", winners, orders)
	}
	if taken := f.taken(); taken != 1 {
		t.Errorf("%d units are taken", taken)
	}
	seats, err := f.rdb.HLen(t.Context(), "sluice:{"+f.sale+"}:seats").Result()
	if err != nil || seats != 1 {
		t.Errorf("%d seats, %v", seats, err)
	}
	delete(closed, closeTooManyTabs)
	if len(closed) > 0 {
		t.Errorf("sockets were closed with %v", closed)
	}
}
