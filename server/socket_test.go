package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"sluice/queue"
)

func TestHelloIsAnsweredByWelcomeAndTheStateAsItIs(t *testing.T) {
	t.Parallel()
	type situation struct {
		name, state string
		file        func(id string) string
		before      func(f *fair, ann *shopper) // what happened until ann comes
		number      int64
	}
	buy := func(f *fair, s *shopper) orderView {
		tab, _, _ := s.called(f.main)
		tab.grab("r")
		defer tab.goAway()
		return tab.await("success").order(f.T)
	}
	for _, s := range []situation{
		{"before anybody can join", "none", saleOf(5, `opens_at: "+1h"`, `lobby: 1m`), nil, 0},
		{"in the lobby", "lobby", saleOf(5, `opens_at: "+1h"`), nil, 1},
		{"behind somebody", "queued", saleOf(5, `line: { order: fifo, active: 1 }`), func(f *fair, _ *shopper) {
			f.shopper("bob").called(f.main)
		}, 2},
		{"with a turn", "turn", saleOf(5, `line: { order: fifo }`), func(f *fair, ann *shopper) {
			tab, _, _ := ann.called(f.main)
			tab.goAway()
		}, 1},
		{"with an order", "order", saleOf(5, `line: { order: fifo }`), func(f *fair, ann *shopper) { buy(f, ann) }, 1},
		{"closed", "closed", saleOf(5, `line: { order: fifo }`), func(f *fair, _ *shopper) {
			must[queue.Sale](f.T)(f.line.Close(f.Context(), f.sale))
		}, 0},
		{"sold out", "sold_out", saleOf(1, `hold: 0`, `line: { order: fifo }`), func(f *fair, _ *shopper) { buy(f, f.shopper("bob")) }, 0},
		{"without a line", "turn", saleOf(5, `line: { order: off }`), nil, 0},
		{"without a line, in the lobby", "lobby", saleOf(5, `opens_at: "+1h"`, `line: { order: off }`), nil, 0},
		{"without a line, paused", "paused", saleOf(5, `line: { order: off }`), func(f *fair, _ *shopper) {
			must[queue.Sale](f.T)(f.line.Pause(f.Context(), f.sale))
		}, 0},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			f := newFair(t, s.file)
			ann := f.shopper("ann")
			if s.before != nil {
				s.before(f, ann)
			}
			tab, welcome, state := ann.enter(f.main)
			if s.state == "turn" && state.Type == "queued" { // called a moment later
				state = tab.next()
			}
			if state.Type != s.state {
				t.Fatalf("got %s, want %s", state.text, s.state)
			}
			tab.quiet() // and nothing else
			if welcome.User != "ann" || welcome.Node != "main" || welcome.Payment != "demo" || welcome.Sale.ID != f.sale || welcome.Number != s.number {
				t.Errorf("got %s", welcome.text)
			}
			if (welcome.Seat != "") != (s.number > 0) {
				t.Errorf("seat token %q with number %d", welcome.Seat, s.number)
			}
			if s.number > 0 {
				again, welcome, state := ann.resume(f.main)
				if welcome.Number != s.number || state.Type != s.state {
					t.Errorf("resumed: got %s %s", welcome.text, state.text)
				}
				again.quiet()
			}
		})
	}
}

func TestAheadIsExactAndNeverRisesAcrossNodesWhileOthersLeave(t *testing.T) {
	t.Parallel()
	const crowd = 30
	f := newFair(t, saleOf(1000, `line: { order: fifo, active: 1 }`))
	nodes := []*node{f.main, f.node("second")}
	shoppers, tabs, turns := make([]*shopper, crowd), make([]*tab, crowd), make([]bool, crowd)
	for i := range shoppers {
		shoppers[i] = f.shopper(fmt.Sprint("user-", i))
		var welcome, state frame
		tabs[i], welcome, state = shoppers[i].enter(nodes[i%2])
		turns[i] = state.Type == "turn"
		if welcome.Number != int64(i+1) {
			t.Fatalf("shopper %d has number %d", i, welcome.Number)
		}
	}
	here := make([]int, crowd) // who is still in the line, in order
	for i := range here {
		here[i] = i
	}
	// move brings the line to where the one at the head has the turn and each of the others knows their exact place.
	move := func() {
		t.Helper()
		if at := here[0]; !turns[at] {
			tabs[at].await("turn")
			turns[at] = true
		}
		for at, i := range here[1:] {
			shoppers[i].mu.Lock()
			ahead := shoppers[i].ahead
			shoppers[i].mu.Unlock()
			if ahead != int64(at) {
				tabs[i].await("queued", func(q frame) bool { return q.Ahead == int64(at) })
			}
		}
	}
	leave := func(at int) {
		t.Helper()
		tabs[here[at]].say(`{"type":"leave"}`)
		tabs[here[at]].mustEnd(websocket.CloseNormalClosure, "left")
		here = slices.Delete(here, at, at+1)
	}
	move()
	for round := range 6 {
		leave(len(here) - 2 - round) // from the middle
		leave(3)
		leave(0) // the one who has the turn: the next is called
		move()
		// Somebody changes to the other node.
		i := here[len(here)/2]
		tabs[i].goAway()
		var welcome frame
		tabs[i], welcome, _ = shoppers[i].resume(nodes[(i+round)%2])
		if welcome.Number != int64(i+1) {
			t.Errorf("number %d became %d", i+1, welcome.Number)
		}
	}
}

func TestAShopperBuysOverTheSocketAndOthersHearThatItIsSoldOut(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(1, `hold: 0`, `line: { order: fifo, active: 2, ratio: 2 }`))
	ann, bob, cat := f.shopper("ann"), f.shopper("bob"), f.shopper("cat")
	at, _, turn := ann.called(f.main)
	if turn.Until <= turn.At || turn.Limit != 1 || len(turn.Items) != 1 || turn.Items[0].Stock != 1 {
		t.Errorf("got %s", turn.text)
	}
	bt, _, _ := bob.called(f.node("second"))
	ct, _, state := cat.enter(f.main)
	if state.Type != "queued" {
		t.Errorf("cat: got %s", state.text)
	}
	ct.grab("early")
	if early := ct.expect("no_turn"); early.ID != "early" {
		t.Errorf("got %s", early.text)
	}

	at.grab("r1")
	success := at.expect("success")
	order := success.order(t)
	if success.ID != "r1" || order.Status != queue.Reserved || order.Item != queue.MainItem || order.Qty != 1 || order.Sale != f.sale {
		t.Errorf("got %s", success.text)
	}
	bt.await("sold_out", func(s frame) bool { return s.ID == "" && s.Stock == "gone" })
	ct.await("sold_out", func(s frame) bool { return s.ID == "" && s.Stock == "gone" })
	bt.grab("r2")
	if late := bt.expect("sold_out"); late.ID != "r2" || late.Stock != "gone" {
		t.Errorf("got %s", late.text)
	}

	at.grab("r1")
	if again := at.expect("success"); again.ID != "r1" || again.order(t) != order {
		t.Errorf("got %s, want order %+v", again.text, order)
	}
	at.grab("r3")
	if other := at.expect("already"); other.ID != "r3" || other.order(t).ID != order.ID {
		t.Errorf("got %s", other.text)
	}
	f.adopt(order, "ann")
	if confirmed := at.expect("order").order(t); confirmed.ID != order.ID || confirmed.Status != queue.Confirmed {
		t.Errorf("got %+v", confirmed)
	}
	at.grab("r1")
	if again := at.expect("success").order(t); again.ID != order.ID || again.Status != queue.Confirmed {
		t.Errorf("got %+v", again)
	}
	f.adopt(order, "ann") // as after a redelivery: nothing new
	at.quiet()
	if n := f.taken(); n != 1 {
		t.Errorf("%d units were sold", n)
	}
}

func TestAnOrderThatEndsIsToldAndTheNextOneIsANewOrder(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(1, `line: { order: fifo }`))
	ann := f.shopper("ann")
	tab, _, _ := ann.called(f.main)
	watching, _, _ := f.shopper("bob").called(f.main)
	tab.grab("r1")
	order := tab.await("success").order(t)
	watching.await("sold_out", func(s frame) bool { return s.Stock == "held" })
	if _, err := f.line.Release(t.Context(), f.sale, []queue.Order{f.rowOf(order, "ann", queue.Expired)}); err != nil {
		t.Fatal(err)
	}
	if ended := tab.await("order").order(t); ended.ID != order.ID || ended.Status != queue.Expired {
		t.Errorf("got %+v", ended)
	}
	watching.await("turn") // the unit that came back
	tab.grab("r1")
	if late := tab.await("success").order(t); late.ID != order.ID || late.Status != queue.Expired {
		t.Errorf("got %+v", late)
	}
	tab.hello("")
	if welcome := tab.await("welcome"); welcome.Number != 3 {
		t.Errorf("got %s", welcome.text)
	}
	tab.await("turn")
	tab.grab("r2")
	if next := tab.await("success").order(t); next.ID == order.ID || next.Status != queue.Reserved {
		t.Errorf("got %+v", next)
	}
}

func TestAPauseIsToldCostsNobodyATurnAndEnds(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5, `line: { order: fifo, active: 1 }`))
	ann, bob := f.shopper("ann"), f.shopper("bob")
	at, _, turn := ann.called(f.main)
	bt, _, _ := bob.enter(f.main)
	must[queue.Sale](t)(f.line.Pause(t.Context(), f.sale))
	for _, tab := range []*tab{at, bt} {
		if paused := tab.expect("paused"); paused.Why != "operator" {
			t.Errorf("got %s", paused.text)
		}
	}
	at.grab("r")
	if refused := at.expect("not_open"); refused.ID != "r" || refused.State != queue.Paused {
		t.Errorf("got %s", refused.text)
	}
	// Who comes back meanwhile finds the turn, and knows from the welcome that it is paused.
	again, welcome, state := ann.resume(f.main)
	if welcome.Sale.State != queue.Paused || state.Type != "turn" {
		t.Errorf("got %s %s", welcome.text, state.text)
	}
	must[queue.Sale](t)(f.line.Resume(t.Context(), f.sale))
	for _, tab := range []*tab{at, again} {
		tab.expect("resumed")
		if later := tab.expect("turn"); later.Until <= turn.Until {
			t.Errorf("the turn lasts until %d, as before the pause: %s", turn.Until, later.text)
		}
	}
	bt.expect("resumed")
	at.grab("r")
	at.expect("success")
	must[queue.Sale](t)(f.line.Close(t.Context(), f.sale))
	at.await("closed")
	bt.await("closed")
	bt.grab("late")
	if refused := bt.expect("not_open"); refused.State != queue.Closed {
		t.Errorf("got %s", refused.text)
	}
}

func TestTheTabsOfASeatHearTheSameAndAreEight(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5, `line: { order: fifo, active: 1 }`))
	head, _, _ := f.shopper("head").called(f.main)
	tabs := make([]*tab, 8)
	for i := range tabs {
		var welcome frame
		if tabs[i], welcome, _ = f.shopper("ann").enter(f.main); welcome.Number != 2 {
			t.Errorf("tab %d: got %s", i, welcome.text)
		}
	}
	ninth := f.shopper("ann").dial(f.main, nil)
	ninth.hello("")
	ninth.mustEnd(closeTooManyTabs, "at most 8")
	head.say(`{"type":"leave"}`)
	for _, tab := range tabs {
		tab.expect("turn")
	}
	tabs[0].grab("r")
	order := tabs[0].expect("success").order(t)
	for _, tab := range tabs[1:] {
		if told := tab.expect("order").order(t); told != order {
			t.Errorf("got %+v, want %+v", told, order)
		}
	}
	f.adopt(order, "ann")
	for _, tab := range tabs {
		if told := tab.expect("order").order(t); told.Status != queue.Confirmed {
			t.Errorf("got %+v", told)
		}
		tab.quiet()
	}
	tabs[1].goAway()
	eventually(t, "the closed tab makes room", func() bool { return f.main.hub.Count(f.sale, "ann") == 7 })
	f.shopper("ann").enter(f.main)
}

func TestWhoSaysHelloAgainOnTheSameConnectionHearsEverythingOnce(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5, `line: { order: fifo, active: 1 }`))
	f.shopper("head").called(f.main)
	at, _, _ := f.shopper("ann").enter(f.main)
	for range 2 {
		at.hello("")
		at.await("welcome")
		at.await("queued")
	}
	must[queue.Sale](t)(f.line.Pause(t.Context(), f.sale))
	at.await("paused")
	must[queue.Sale](t)(f.line.Resume(t.Context(), f.sale))
	if told := at.next(); told.Type != "resumed" {
		t.Errorf("after one paused came %s, want resumed", told.text)
	}
}

func TestLeavingInOneTabEndsTheSeatInAll(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5, `line: { order: fifo, active: 1 }`))
	f.shopper("head").called(f.main)
	one, _, _ := f.shopper("ann").enter(f.main)
	two, _, _ := f.shopper("ann").enter(f.main)
	elsewhere, _, _ := f.shopper("ann").enter(f.node("second"))
	one.say(`{"type":"leave"}`)
	one.mustEnd(websocket.CloseNormalClosure, "left")
	two.expect("none")
	elsewhere.expect("none")
	two.hello("")
	if welcome, state := two.await("welcome"), two.next(); welcome.Number != 3 || state.Type != "queued" {
		t.Errorf("got %s %s", welcome.text, state.text)
	}
	elsewhere.say(`{"type":"leave"}`) // without a seat: it is not that of the other tab
	elsewhere.mustEnd(websocket.CloseNormalClosure, "left")
	two.quiet()
}

func TestATurnThatRunsOutIsMissedAndANewSeatCanBeTaken(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5, `line: { order: fifo, turn: 1s }`))
	ann := f.shopper("ann")
	tab, first, _ := ann.enter(f.main)
	if missed := tab.await("missed"); missed.Why != "expired" {
		t.Errorf("got %s", missed.text)
	}
	tab.grab("late")
	tab.expect("no_turn")
	ended := first.Seat
	// On another connection the ended seat is missed, and only a hello without it takes a new one.
	_, welcome, state := ann.come(f.main, ended)
	if state.Type != "missed" || welcome.Number != 1 {
		t.Errorf("got %s %s", welcome.text, state.text)
	}
	tab.say(fmt.Sprintf(`{"type":"hello","token":%q,"code":%q}`, ann.token, strings.Repeat("c", 8<<10))) // as long as a first one
	welcome, state = tab.await("welcome"), tab.next()
	if welcome.Number != 2 || welcome.Seat == ended || state.Type != "queued" && state.Type != "turn" {
		t.Errorf("got %s %s", welcome.text, state.text)
	}
	tab.await("missed")
}

func TestWhatIsNotOfTheProtocolEndsTheConnectionWithAReason(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5, `line: { order: fifo }`))
	ann, bob := f.shopper("ann"), f.shopper("bob")
	ann.enter(f.main)
	hello := fmt.Sprintf(`{"type":"hello","token":%q}`, bob.token)
	short := must[string](t)(MintJWT(testSecret(), "bob", time.Now().Add(-time.Hour)))
	for _, tc := range []struct {
		name   string
		say    []string // one after another
		binary bool
		code   int
		why    string
	}{
		{"a grab without hello", []string{`{"type":"grab","id":"r"}`}, false, closeBadMessage, "first frame must be a hello"},
		{"no JSON", []string{`hello`}, false, closeBadMessage, "hello"},
		{"nothing", []string{``}, false, closeBadMessage, "hello"},
		{"null", []string{`null`}, false, closeBadMessage, "hello"},
		{"no token", []string{`{"type":"hello"}`}, false, closeBadToken, "token is needed"},
		{"a bad token", []string{`{"type":"hello","token":"x"}`}, false, closeBadToken, "not valid"},
		{"an expired token", []string{fmt.Sprintf(`{"type":"hello","token":%q}`, short)}, false, closeBadToken, "expired"},
		{"another's seat", []string{fmt.Sprintf(`{"type":"hello","token":%q,"seat":%q}`, bob.token, ann.seat)}, false, closeBadToken, "seat token"},
		{"a made up seat", []string{fmt.Sprintf(`{"type":"hello","token":%q,"seat":"x"}`, bob.token)}, false, closeBadToken, "seat token"},
		{"a long hello", []string{`{"type":"hello","token":"` + strings.Repeat("x", 16<<10) + `"}`}, false, closeBadMessage, "longer than 16384 bytes"},
		{"binary", []string{`{"type":"hello"}`}, true, closeBadMessage, "binary"},
		{"two objects in a hello", []string{hello + hello}, false, closeBadMessage, "hello"},
		{"malformed JSON", []string{hello, `{"type":`}, false, closeBadMessage, "JSON object"},
		{"a list", []string{hello, `[]`}, false, closeBadMessage, "JSON object"},
		{"null later", []string{hello, `null`}, false, closeBadMessage, "no type of frame"},
		{"an unknown type", []string{hello, `{"type":"dance"}`}, false, closeBadMessage, `"dance" is no type of frame`},
		{"two objects", []string{hello, `{"type":"leave"}{"type":"leave"}`}, false, closeBadMessage, "one JSON object"},
		{"a brace too many", []string{hello, `{"type":"leave"}}`}, false, closeBadMessage, "one JSON object"},
		{"half a unit", []string{hello, `{"type":"grab","id":"r","qty":0.5}`}, false, closeBadMessage, "fields of the protocol"},
		{"qty as text", []string{hello, `{"type":"grab","id":"r","qty":"1"}`}, false, closeBadMessage, "fields of the protocol"},
		{"a long grab", []string{hello, `{"type":"grab","id":"` + strings.Repeat("x", 4<<10) + `"}`}, false, closeBadMessage, "longer than 4096 bytes"},
		{"a grab longer than any hello", []string{hello, `{"type":"grab","id":"` + strings.Repeat("x", 16<<10) + `"}`}, false, closeBadMessage, "longer than"},
		{"another user", []string{hello, fmt.Sprintf(`{"type":"hello","token":%q}`, ann.token)}, false, closeBadToken, "another user"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := *f
			s.T = t
			tab := (&s).shopper("bob").dial(f.main, nil)
			for _, text := range tc.say {
				kind := websocket.TextMessage
				if tc.binary {
					kind = websocket.BinaryMessage
				}
				if err := tab.conn.WriteMessage(kind, []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			tab.mustEnd(tc.code, tc.why)
		})
	}
	if n := f.taken(); n != 0 {
		t.Errorf("%d units were taken", n)
	}
}

func TestWhoMayNotConnectIsToldInACloseFrame(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5, `line: { order: fifo }`), change{server: func(o *Options) { o.Origins = []string{"https://shop.example"} }})
	host := strings.TrimPrefix(f.main.url, "http://")
	for origin, allowed := range map[string]bool{
		"https://shop.example": true, "http://" + host: true, "https://" + host: true,
		"http://shop.example": false, "https://shop.example.evil": false, "https://evil.example": false, "null": false,
		"https://shop.example:444": false,
	} {
		ann := f.shopper("ann")
		tab := ann.dial(f.main, http.Header{"Origin": {origin}})
		if allowed {
			tab.hello("")
			tab.await("welcome")
			tab.goAway()
		} else {
			tab.mustEnd(closeNotAllowed, "origin")
		}
	}
	stranger := f.shopper("ann")
	elsewhere := *f
	elsewhere.sale = "t-" + uuid.NewString()
	stranger.fair = &elsewhere
	stranger.dial(f.main, nil).mustEnd(closeNoSale, "no such sale")
}

func TestAGrabThatCannotBeIsAnsweredWithTheReasonAndTakesNothing(t *testing.T) {
	t.Parallel()
	f := newFair(t, func(id string) string {
		return fmt.Sprintf("id: %s\nitems: [ { id: black, stock: 5 }, { id: white, stock: 1 } ]\nopens_at: \"+0s\"\ncloses_at: \"+1h\"\nlimit: 2\nline: { order: fifo }\n", id)
	})
	tab, _, _ := f.shopper("ann").called(f.main)
	for text, want := range map[string]struct {
		code queue.Code
		msg  string
	}{
		`{"type":"grab","id":"a"}`:                                                   {queue.Invalid, "which item"},
		`{"type":"grab","id":"b","item":"green"}`:                                    {queue.NoSuchItem, "green"},
		`{"type":"grab","id":"c","item":"black","qty":0}`:                            {queue.Invalid, "between 1 and 2"},
		`{"type":"grab","id":"d","item":"black","qty":-1}`:                           {queue.Invalid, "between 1 and 2"},
		`{"type":"grab","id":"e","item":"black","qty":3}`:                            {queue.Invalid, "between 1 and 2"},
		`{"type":"grab","id":"","item":"black"}`:                                     {queue.Invalid, "request_id"},
		`{"type":"grab","id":"` + strings.Repeat("x", 65) + `","item":"black"}`:      {queue.Invalid, "request_id"},
		`{"type":"grab","id":"caf\u00e9","item":"black"}`:                            {queue.Invalid, "request_id"},
		`{"type":"grab","id":"f","item":"black","qty":9223372036854775807}`:          {queue.Invalid, "between 1 and 2"},
		`{"type":"grab","id":"g","item":"` + strings.Repeat("x", 300) + `","qty":1}`: {queue.NoSuchItem, "no item"},
	} {
		tab.say(text)
		if got := tab.expect("error"); got.Code != want.code || !strings.Contains(got.Msg, want.msg) || !strings.Contains(strings.ReplaceAll(text, `\u00e9`, "é"), `"id":"`+got.ID+`"`) {
			t.Errorf("%s: got %s", text, got.text)
		}
	}
	tab.say(`{"type":"grab","id":"h","item":"white","qty":2}`)
	if few := tab.expect("sold_out"); few.Left != 1 || few.Stock != "available" || few.Item != "white" || few.ID != "h" {
		t.Errorf("got %s", few.text)
	}
	if n := f.taken(); n != 0 {
		t.Errorf("%d units were taken", n)
	}
	tab.say(`{"type":"grab","id":"i","item":"black","qty":2}`)
	if order := tab.expect("success").order(t); order.Qty != 2 || order.Item != "black" {
		t.Errorf("got %+v", order)
	}
}

func TestBeingLimitedIsToldWithRealFiguresAndCostsNoPlace(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5, `line: { order: fifo, active: 1 }`), change{queue: queue.Options{UserLimit: queue.Rate{N: 2, Per: time.Hour}}})
	head, _, _ := f.shopper("head").called(f.main)
	ann := f.shopper("ann")
	tab, welcome, _ := ann.enter(f.main)
	tab.grab("a")
	tab.expect("no_turn")
	tab.grab("b")
	if got := tab.expect("limited"); got.ID != "b" || got.Limit != 2 || got.RetryAfter < 1000 || got.Reset <= got.At {
		t.Errorf("got %s", got.text)
	}
	other := ann.dial(f.main, nil)
	other.hello(welcome.Seat)
	if got := other.next(); got.Type != "limited" || got.ID != "" {
		t.Errorf("got %s", got.text)
	}
	head.say(`{"type":"leave"}`)
	tab.expect("turn")
}

func TestAGrabWhoseShopperIsGoneIsFoundByTheNextHello(t *testing.T) {
	t.Parallel()
	taken, answer := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	f := newFair(t, saleOf(5, `line: { order: fifo }`), change{server: func(o *Options) {
		o.AwaitRow = func(context.Context, queue.Order) error {
			if once.CompareAndSwap(false, true) {
				close(taken)
				<-answer
			}
			return nil
		}
	}})
	ann := f.shopper("ann")
	tab, _, _ := ann.called(f.main)
	tab.grab("r")
	<-taken
	tab.conn.Close() // without a word
	close(answer)
	next, _, state := ann.resume(f.main)
	if state.Type != "order" {
		t.Fatalf("got %s", state.text)
	}
	order := state.order(t)
	next.grab("r")
	if again := next.expect("success").order(t); again.ID != order.ID {
		t.Errorf("got %+v, want %+v", again, order)
	}
	if n := f.taken(); n != 1 {
		t.Errorf("%d units were taken", n)
	}
}

func TestWithoutRedisNothingIsSoldOutAndPlacesAreKept(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(1, `line: { order: fifo, active: 1 }`))
	way, through := newPipe(t, f.redis)
	n := f.node("apart", change{redis: through})
	ann, bob, cat := f.shopper("ann"), f.shopper("bob"), f.shopper("cat")
	at, _, _ := ann.called(n)
	bt, welcome, _ := bob.enter(n)
	way.cut()
	unavailable := func(tab *tab, id string) {
		t.Helper()
		if got := tab.expect("error"); got.Code != queue.Unavailable || got.ID != id || got.RetryAfter < 1000 {
			t.Errorf("got %s", got.text)
		}
	}
	at.grab("r")
	unavailable(at, "r")
	late := cat.dial(n, nil)
	late.hello("")
	unavailable(late, "")
	bt.say(`{"type":"leave"}`)
	unavailable(bt, "")
	way.mend()
	// The same connections go on: a hello that met trouble is said again, however long it is.
	eventually(t, "a hello is answered", func() bool {
		late.say(fmt.Sprintf(`{"type":"hello","token":%q,"code":%q}`, cat.token, strings.Repeat("c", 8<<10)))
		return late.next().Type == "welcome"
	})
	if state := late.next(); state.Type != "queued" || state.Ahead != 1 {
		t.Errorf("got %s", state.text)
	}
	eventually(t, "the grab is answered", func() bool {
		at.grab("r")
		answer := at.await("success", func(frame) bool { return true })
		return answer.Type == "success"
	})
	again, resumed, state := bob.resume(f.main)
	if resumed.Number != welcome.Number {
		t.Errorf("number %d became %s", welcome.Number, resumed.text)
	}
	if state.Type != "queued" && state.Type != "sold_out" {
		t.Errorf("got %s", state.text)
	}
	again.quiet()
	if n := f.taken(); n != 1 {
		t.Errorf("%d units were sold", n)
	}
}

func TestWithoutALineTheOpeningIsTheTurnOfAll(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(2, `opens_at: "+1h"`, `line: { order: off }`))
	names := []string{"ann", "bob", "cat"}
	tabs := make([]*tab, len(names))
	for i, name := range names {
		var welcome, state frame
		tabs[i], welcome, state = f.shopper(name).enter(f.main)
		if welcome.Number != 0 || welcome.Seat != "" || state.Type != "lobby" {
			t.Errorf("got %s %s", welcome.text, state.text)
		}
	}
	tabs[0].grab("early")
	if early := tabs[0].expect("not_open"); early.ID != "early" || early.State != queue.Lobby {
		t.Errorf("got %s", early.text)
	}
	sale := must[queue.Sale](t)(f.line.Open(t.Context(), f.sale))
	for _, tab := range tabs {
		if turn := tab.expect("turn"); turn.Until != sale.ClosesAt.UnixMilli() {
			t.Errorf("got %s", turn.text)
		}
	}
	for _, tab := range tabs[:2] {
		tab.grab("r")
		tab.expect("success")
	}
	tabs[2].await("sold_out", func(s frame) bool { return s.ID == "" && s.Stock == "held" })
	tabs[2].grab("r")
	tabs[2].await("sold_out", func(s frame) bool { return s.ID == "r" })
	order := func() orderView {
		tabs[0].grab("r")
		return tabs[0].await("success").order(t)
	}()
	if _, err := f.line.Release(t.Context(), f.sale, []queue.Order{f.rowOf(order, "ann", queue.Cancelled)}); err != nil {
		t.Fatal(err)
	}
	tabs[0].await("order", func(o frame) bool { return o.order(t).Status == queue.Cancelled })
	tabs[0].await("turn") // without a line one may buy again
	tabs[2].await("turn")
}

func TestASaleThatRedisLostKeepsItsShoppersAndOneThatIsNoMoreEndsThem(t *testing.T) {
	t.Parallel()
	file := saleOf(5, `line: { order: fifo }`)
	f := newFair(t, file)
	ann := f.shopper("ann")
	tab, _, _ := ann.called(f.main)
	lose := func() {
		t.Helper()
		keys := must[[]string](t)(f.rdb.Keys(t.Context(), "sluice:{"+f.sale+"}:*").Result())
		must[int64](t)(f.rdb.Del(t.Context(), keys...).Result())
		must[int64](t)(f.rdb.SRem(t.Context(), "sluice:sales", f.sale).Result())
	}
	room := f.main.server.registry.room(f.sale)
	listed := func() int {
		f.store.mu.Lock()
		defer f.store.mu.Unlock()
		return f.store.lists
	}
	before := listed()
	lose()
	eventually(t, "the node asks the database about the sale", func() bool { return listed() > before })
	tab.grab("r")
	if got := tab.expect("error"); got.Code != queue.Unavailable {
		t.Errorf("got %s", got.text)
	}
	f.apply(file)
	tab.await("none") // its seat was lost, and it may take another
	if f.main.server.registry.room(f.sale) != room {
		t.Error("the shoppers are in a room of their own")
	}
	tab.hello("")
	tab.await("turn")
	f.store.mu.Lock()
	delete(f.store.sales, f.sale)
	f.store.mu.Unlock()
	lose()
	tab.mustEnd(closeNoSale, "no such sale")
}

// knowsAway waits until the line knows of so many seats that nobody of them is there.
func (f *fair) knowsAway(seats int64) {
	f.Helper()
	eventually(f.T, "it is known who is away", func() bool {
		away, err := f.rdb.ZCard(f.Context(), "sluice:{"+f.sale+"}:away").Result()
		return err == nil && away == seats
	})
}

func TestAClosedBrowserKeepsItsPlaceAndComesFirstWhenItIsBack(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5, `line: { order: fifo, active: 1, rate: 0, turn: 60s, grace: 60s }`))
	second := f.node("second")
	at, _, _ := f.shopper("ann").called(f.main)
	bob, cat := f.shopper("bob"), f.shopper("cat")
	bt, _, _ := bob.enter(f.main)
	ct, _, _ := cat.enter(second)
	bt.goAway()
	f.knowsAway(1)
	at.grab("r")
	ct.await("turn") // bob is passed, and his turn is not waited for
	bt, welcome, state := bob.resume(second)
	if welcome.Number != 2 || state.Type != "queued" || state.Number != 2 || state.Ahead != 0 || state.Recalled != 0 {
		t.Errorf("bob is back with %s and %s", welcome.text, state.text)
	}
	dan, _, waits := f.shopper("dan").enter(f.main)
	if waits.Ahead != 0 || waits.Recalled != 1 {
		t.Errorf("dan has %s", waits.text)
	}
	ct.grab("r")
	bt.await("turn")
	bt.grab("r")
	bt.await("success")
	dan.await("turn")
}

func TestShoppersOfANodeThatDiesGoOnElsewhere(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5, `line: { order: fifo, active: 1, rate: 0, turn: 60s, grace: 60s }`))
	second := f.node("second")
	at, _, _ := f.shopper("ann").called(f.main)
	bob := f.shopper("bob")
	bob.enter(second)
	ct, _, _ := f.shopper("cat").enter(f.main)
	second.die()
	f.knowsAway(1) // once the lease of bob's node has run out
	at.grab("r")
	ct.await("turn")
	bt, welcome, state := bob.resume(f.main)
	if welcome.Number != 2 || state.Type != "queued" || state.Ahead != 0 {
		t.Errorf("bob goes on elsewhere with %s and %s", welcome.text, state.text)
	}
	ct.say(`{"type":"leave"}`)
	bt.await("turn")
}

func TestWhatASocketKeepsOfItsRequestIsItsOwn(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5, `line: { order: fifo }`))
	tab := f.shopper("ann").dial(f.main, http.Header{"Accept-Encoding": {"gzip"}, "Accept-Language": {"zh"}})
	// The framework lends what it knew of the upgrade to these.
	for i := range 50 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s/api/v1/sales/other-%d/seat", f.main.url, i), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	tab.hello("")
	if welcome := tab.await("welcome"); welcome.Sale.ID != f.sale || welcome.Number != 1 {
		t.Errorf("got %s", welcome.text)
	}
}
