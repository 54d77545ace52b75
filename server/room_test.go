package server

import (
	compare "cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"sluice/hub"
	"sluice/queue"
)

// These tests tell a room of ticks by hand, in orders that a test on a real Redis cannot bring about. The sessions are
// real ones.

// stage is a room, and the shoppers in front of it.
type stage struct {
	*testing.T
	room *room
	hub  *hub.Hub
	url  string
	met  chan *hub.Session

	snap queue.Snapshot // what the next tick sees

	mu    sync.Mutex
	seats map[string]queue.Seat        // what Redis says when it is asked
	fates map[string]queue.OrderStatus // what becomes of orders that Redis does not have
	fails bool
	asked [][]string
	told  []queue.Presence // what the line was told of who is here
	deaf  bool             // the line cannot be told
	while func()           // what happens while it is told; may be nil
}

// silent is a handler of sessions that say nothing.
type silent struct{}

func (silent) Hello(*hub.Session, []byte)   {}
func (silent) Message(*hub.Session, []byte) {}
func (silent) Closed(*hub.Session)          {}

// askedLine is a line that only answers where users stand.
type askedLine struct {
	line
	stage *stage
}

func (l askedLine) LookMany(_ context.Context, _ string, users []string) ([]queue.Seat, error) {
	l.stage.mu.Lock()
	defer l.stage.mu.Unlock()
	l.stage.asked = append(l.stage.asked, slices.Sorted(slices.Values(users)))
	if l.stage.fails {
		return nil, errors.New("away")
	}
	seats := make([]queue.Seat, len(users))
	for i, user := range users {
		seats[i] = l.stage.seats[user]
		seats[i].User = user
	}
	return seats, nil
}

func (l askedLine) Tell(_ context.Context, _ string, seats []queue.Presence) error {
	if while := l.stage.while; while != nil {
		l.stage.while = nil
		while()
	}
	if l.stage.deaf {
		return errors.New("away")
	}
	told := slices.SortedFunc(slices.Values(seats), func(a, b queue.Presence) int { return compare.Compare(a.Ticket, b.Ticket) })
	l.stage.told = append(l.stage.told, told...)
	return nil
}

func newStage(t *testing.T) *stage {
	t.Helper()
	sale := phoneX()
	s := &stage{
		T: t, hub: hub.New(hub.Options{}), met: make(chan *hub.Session, 1), seats: map[string]queue.Seat{},
		snap: *openSnapshot(sale),
	}
	s.snap.At = 1000
	passes := must[*passes](t)(newPasses([][]byte{testSecret()}, "", testNow))
	s.room = newRoom(sale.ID, queue.New(nil, queue.Options{}), askedLine{stage: s}, passes,
		func(_ context.Context, o queue.Order) queue.Order { return o },
		func(_ context.Context, o queue.Order, _ queue.Seat) (queue.Order, bool) {
			fate, known := s.fates[o.ID]
			o.Status = fate
			return o, known
		}, slog.New(slog.DiscardHandler))
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := newUpgrader().Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		s.met <- s.hub.Accept(conn, silent{})
	}))
	s.url = "ws" + strings.TrimPrefix(site.URL, "http")
	t.Cleanup(func() { s.hub.Close(); site.Close() })
	return s
}

// ear is a session, and the peer that hears what it is sent.
type ear struct {
	*stage
	session *hub.Session
	conn    *websocket.Conn
}

func (s *stage) ear() *ear {
	s.Helper()
	conn, resp, err := websocket.DefaultDialer.DialContext(s.Context(), s.url, nil)
	if err != nil {
		s.Fatal(err)
	}
	resp.Body.Close()
	s.Cleanup(func() { conn.Close() })
	return &ear{stage: s, session: <-s.met, conn: conn}
}

// enters has a user come with that seat, as read at that moment.
func (s *stage) enters(held queue.Seat, at int64) *ear {
	s.Helper()
	e := s.ear()
	held.At = at
	s.room.enter(e.session, held, queue.Open, nil, "")
	return e
}

// tick lets 10 ms pass and tells the room of a tick.
func (s *stage) tick(events ...queue.Event) {
	s.snap.At += 10
	snap := s.snap
	s.room.Tick(&snap, events, queue.Lost{})
}

// hears checks what the session was sent since it was asked last.
func (e *ear) hears(want ...string) {
	e.Helper()
	if diff := cmp.Diff(append([]string{}, want...), e.heard()); diff != "" {
		e.Errorf("heard otherwise (-want +got):\n%s", diff)
	}
}

// heard is what the session was sent since it was asked last, each frame by what tells it apart.
func (e *ear) heard() []string {
	e.Helper()
	// A frame of our own marks the end: all that was sent before comes before it.
	e.session.Send(hub.NewFrame([]byte(`{"type":"mark"}`)))
	if err := e.conn.SetReadDeadline(time.Now().Add(patient)); err != nil {
		e.Fatal(err)
	}
	got := []string{}
	for {
		_, msg, err := e.conn.ReadMessage()
		if err != nil {
			e.Fatalf("after %q: %v", got, err)
		}
		f := frame{text: string(msg)}
		if err := json.Unmarshal(msg, &f); err != nil {
			e.Fatal(err)
		}
		switch f.Type {
		case "mark":
			return got
		case "order":
			order := f.order(e.T)
			got = append(got, fmt.Sprintf("order %s %s", order.ID, order.Status))
		case "queued":
			said := fmt.Sprintf("queued %d behind %d", f.Number, f.Ahead)
			if f.Reason != "" {
				said += " because of " + f.Reason
			}
			got = append(got, said)
		default:
			got = append(got, f.Type)
		}
	}
}

func waiting(user string, number int64) queue.Seat {
	return queue.Seat{User: user, Ticket: number, Number: number, Status: queue.Waiting}
}

func given(from, to int64) queue.Event {
	e := queue.Event{Kind: queue.TurnGiven, Deadline: 60_000}
	for number := from; number <= to; number++ {
		e.Numbers = append(e.Numbers, number)
	}
	return e
}

func ended(numbers ...int64) queue.Event {
	return queue.Event{Kind: queue.TurnEnded, Numbers: numbers}
}

func changed(user, id string, status queue.OrderStatus, at int64) queue.Event {
	return queue.Event{Kind: queue.OrderChanged, User: user, Order: orderOf(user, id, status, at)}
}

func orderOf(user, id string, status queue.OrderStatus, at int64) *queue.Order {
	return &queue.Order{ID: id, Sale: "phone-x", Item: "black", User: user, Qty: 1, Status: status, CreatedAt: at}
}

func TestTheFirstStateComesFromATickThatBeganAfterTheSeatWasRead(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ann := s.enters(waiting("ann", 12), 1010)
	s.tick() // at 1010: it may have begun before
	ann.hears()
	s.tick()
	ann.hears("queued 12 behind 1")
	s.tick()
	ann.hears()
}

func TestNothingIsToldToASessionBeforeItsState(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	bob := s.enters(waiting("bob", 12), 1005)
	s.tick()
	bob.hears("queued 12 behind 1")
	ann := s.enters(waiting("ann", 11), 1020)
	s.snap.State, s.snap.Stock = queue.Paused, queue.Held
	s.tick(changed("ann", "o", queue.Confirmed, 1020)) // at 1020 as well
	ann.hears()
	bob.hears("paused", "sold_out")
	s.tick()
	ann.hears("order o confirmed", "paused") // the welcome said that the sale is open
	bob.hears()
	s.snap.State = queue.Open
	s.tick()
	ann.hears("resumed")
	bob.hears("resumed", "queued 12 behind 1 because of paused")
}

func TestASecondTabHearsTheStateOnceAndTheFirstOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	one := s.enters(waiting("ann", 12), 1005)
	s.tick()
	one.hears("queued 12 behind 1")
	two := s.enters(queue.Seat{User: "ann", Ticket: 12, Number: 12, Status: queue.Turn, Deadline: 60_000}, 1015)
	s.tick()
	one.hears("turn")
	two.hears("turn")
	s.tick(given(11, 12)) // what was read says so already
	one.hears()
	two.hears()
}

func TestTurnsAreGivenInOneOrderOnly(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	seats := []*ear{s.enters(waiting("a", 11), 1005), s.enters(waiting("b", 12), 1005), s.enters(waiting("c", 13), 1005)}
	s.tick()
	for i, e := range seats {
		e.hears(fmt.Sprintf("queued %d behind %d", 11+i, i))
	}
	s.snap.Served = 11
	s.tick(given(11, 11), given(11, 11))
	seats[0].hears("turn")
	seats[1].hears("queued 12 behind 0")
	seats[2].hears("queued 13 behind 1")
	s.snap.Served = 1000
	s.tick(ended(12), given(12, 1000)) // far more than are here
	seats[1].hears("missed")
	seats[2].hears("turn")
	s.tick(ended(11, 12, 13), ended(11, 12, 13), given(11, 13))
	seats[0].hears("missed")
	seats[1].hears()
	seats[2].hears("missed")
}

func TestAnOrderIsToldOnceAndOnlyMovesForward(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ann := s.enters(queue.Seat{User: "ann", Ticket: 5, Number: 5, Status: queue.Turn, Deadline: 60_000}, 1005)
	s.tick()
	ann.hears("turn")
	other := s.enters(queue.Seat{User: "ann", Ticket: 5, Number: 5, Status: queue.Turn, Deadline: 60_000}, 1015)
	s.tick()
	other.hears("turn")

	// The confirmation comes before the answer of the grab.
	s.tick(changed("ann", "o", queue.Confirmed, 1025))
	ann.hears("order o confirmed")
	if got := s.room.bought(*orderOf("ann", "o", queue.Reserved, 1025), ann.session); got.Status != queue.Confirmed {
		t.Errorf("the grab is answered with %s", got.Status)
	}
	s.tick(changed("ann", "o", queue.Confirmed, 1025), ended(5))
	s.tick(changed("ann", "o", queue.Paid, 1025), changed("ann", "o", queue.Confirmed, 1025))
	ann.hears("order o paid")
	other.hears("order o confirmed", "order o paid")
	s.tick(changed("ann", "o", queue.Cancelled, 1025), changed("ann", "o", queue.Cancelled, 1025), changed("ann", "o", queue.Confirmed, 1025))
	ann.hears("order o cancelled")
	if got := s.room.bought(*orderOf("ann", "o", queue.Reserved, 1025), ann.session); got.Status != queue.Cancelled {
		t.Errorf("a late answer of the grab says %s", got.Status)
	}
	s.tick()
	ann.hears()
	other.hears("order o cancelled")
}

func TestAGrabIsToldToTheOtherTabsOnly(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	turn := queue.Seat{User: "ann", Ticket: 5, Number: 5, Status: queue.Turn, Deadline: 60_000}
	one, two := s.enters(turn, 1005), s.enters(turn, 1005)
	s.tick()
	late := s.enters(turn, 1011)
	s.room.bought(*orderOf("ann", "o", queue.Reserved, 1015), one.session)
	one.hears("turn")
	two.hears("turn", "order o reserved")
	late.hears()
	s.tick()
	one.hears()
	two.hears()
	late.hears("order o reserved")
}

func TestAnOrderOfAnotherNodeThatIsRejectedEndsTheTurnHere(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ann := s.enters(queue.Seat{User: "ann", Ticket: 5, Number: 5, Status: queue.Turn, Deadline: 60_000}, 1005)
	s.tick()
	s.tick(changed("ann", "o", queue.Rejected, 1015))
	ann.hears("turn", "order o rejected")
	if got := s.room.seats["ann"].Status; got != queue.Missed {
		t.Errorf("the seat is %d", got)
	}
}

func TestNewsOfAnOrderFromBeforeTheSeatDoNotTouchIt(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ann := s.enters(waiting("ann", 12), 1005)
	s.seats["ann"] = queue.Seat{Ticket: 12, Number: 12, Status: queue.Waiting, At: 1015}
	s.tick(changed("ann", "old", queue.Confirmed, 500), changed("ann", "old", queue.Cancelled, 500))
	s.tick()
	s.tick()
	ann.hears("queued 12 behind 1")
}

func TestAfterLostNewsSeatsAreReadAgainAndToldWhatChanged(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ann := s.enters(waiting("ann", 12), 1005)
	bob := s.enters(queue.Seat{User: "bob", Ticket: 3, Number: 3, Status: queue.Buyer, Order: orderOf("bob", "o", queue.Reserved, 900)}, 1005)
	cat := s.enters(waiting("cat", 13), 1005)
	s.tick()
	ann.hears("queued 12 behind 1")
	bob.hears("order o reserved")
	cat.hears("queued 13 behind 2")
	s.seats = map[string]queue.Seat{
		"ann": {Ticket: 12, Number: 12, Status: queue.Turn, Deadline: 60_000, At: 1021},
		"bob": {Ticket: 3, Number: 3, Status: queue.Buyer, Order: orderOf("bob", "o", queue.Confirmed, 900), At: 1021},
		"cat": {At: 1021},
	}
	s.snap.At += 10
	snap := s.snap
	s.room.Tick(&snap, nil, queue.Lost{News: true})
	ann.hears("turn")
	bob.hears("order o confirmed")
	cat.hears("none")
}

func TestWhoCannotBeReadIsToldNothingUntilTheyCan(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ann := s.enters(queue.Seat{User: "ann", Ticket: 12, Number: 12, Status: queue.Turn, Deadline: 60_000}, 1005)
	s.tick()
	ann.hears("turn")
	// Another tab's hello was read before the turn ended and comes here after.
	s.tick(ended(12))
	ann.hears("missed")
	s.fails = true
	again := s.enters(queue.Seat{User: "ann", Ticket: 12, Number: 12, Status: queue.Turn, Deadline: 60_000}, 1015)
	s.tick()
	s.tick()
	ann.hears()
	again.hears()
	s.mu.Lock()
	s.fails = false
	s.seats["ann"] = queue.Seat{Ticket: 12, Number: 12, Status: queue.Missed, At: 1045}
	s.mu.Unlock()
	s.tick()
	s.tick()
	ann.hears()
	again.hears("missed")
	s.tick()
	if n := len(s.asked); n != 3 {
		t.Errorf("seats were read %d times: %v", n, s.asked)
	}
}

func TestAReadingFromBeforeTheGrabDoesNotTakeTheOrderBack(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	turn := queue.Seat{User: "ann", Ticket: 5, Number: 5, Status: queue.Turn, Deadline: 60_000}
	ann := s.enters(turn, 1005)
	s.tick()
	s.room.bought(*orderOf("ann", "o", queue.Reserved, 1015), nil)
	ann.hears("turn", "order o reserved")
	turn.At = 1015
	s.seats["ann"] = turn
	s.snap.At += 10
	snap := s.snap
	s.room.Tick(&snap, nil, queue.Lost{News: true})
	s.tick()
	ann.hears()
}

func TestAPauseThatEndsWithTheSaleIsNotResumed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ann := s.enters(waiting("ann", 12), 1005)
	s.tick()
	ann.hears("queued 12 behind 1")
	for _, step := range []struct {
		state queue.State
		want  []string
	}{
		{queue.Paused, []string{"paused"}}, {queue.Recovering, []string{"paused"}},
		// A line that was put right may be another one: its places are told anew.
		{queue.Paused, []string{"paused", "queued 12 behind 1"}}, {queue.Open, []string{"resumed", "queued 12 behind 1 because of paused"}},
		{queue.Recovering, []string{"paused"}}, {queue.Closed, []string{"closed"}},
	} {
		s.snap.State = step.state
		s.tick()
		ann.hears(step.want...)
		s.tick()
		ann.hears()
	}
}

func TestALobbyThatAPauseKeepsFromItsDrawHearsOfThePause(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	lottery := *s.snap.Sale
	lottery.Line.Order, lottery.OpensAt = queue.Lottery, time.UnixMilli(s.snap.At+35)
	s.snap.Sale, s.snap.State, s.snap.Paused, s.snap.Served = &lottery, queue.Lobby, true, 0
	ann := s.enters(queue.Seat{User: "ann", Ticket: 12, Status: queue.Waiting}, 1005)
	s.tick()
	ann.hears("lobby")
	s.tick()
	s.tick()
	ann.hears() // it does not stand still before it opens
	s.tick()
	ann.hears("paused")
	bob := s.enters(queue.Seat{User: "bob", Ticket: 13, Status: queue.Waiting}, 1045)
	s.tick()
	ann.hears()
	bob.hears("lobby", "paused")
	if f := lobbyOf(&s.snap); f.Drawing {
		t.Errorf("nothing is drawn in a pause: %+v", f)
	}
	if view := viewOf(&s.snap); view.State != queue.Paused {
		t.Errorf("the sale is said to be %s", view.State)
	}
	s.snap.Paused = false
	s.tick()
	ann.hears("resumed")
	bob.hears("resumed")
	if f := lobbyOf(&s.snap); !f.Drawing {
		t.Errorf("after the pause it is drawn: %+v", f)
	}
}

func TestASeatThatIsLeftIsForgottenAndItsNumberFree(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ann := s.enters(waiting("ann", 12), 1005)
	s.tick()
	s.tick(queue.Event{Kind: queue.SeatLeft, User: "ann", Numbers: []int64{11}}) // an older seat
	ann.hears("queued 12 behind 1")
	s.tick(queue.Event{Kind: queue.SeatLeft, User: "ann", Numbers: []int64{12}}, given(11, 12), ended(12))
	ann.hears("none")
	s.room.exit(ann.session, "ann")
	s.room.exit(ann.session, "ann")
	if len(s.room.seats)+len(s.room.numbers)+len(s.room.unsure) != 0 {
		t.Errorf("left behind: %v %v %v", s.room.seats, s.room.numbers, s.room.unsure)
	}
	s.tick(given(11, 12), changed("ann", "o", queue.Confirmed, 2000))
}

func TestTheFartherAwayTheRarerPositionsAreSentAndNewStockAtOnce(t *testing.T) {
	t.Parallel()
	r := &room{}
	for _, tc := range []struct {
		ahead, last, passed int64
		want                bool
	}{
		{99, 98, 1, true}, {99, 99, 60_000, false},
		{500, 501, 1000, true}, {5000, 5001, 2000, true}, {50_000, 50_001, 5000, true},
	} {
		here := &seat{told: told{waiting: true, ahead: tc.last, at: 10_000, stock: queue.Available}}
		here.Number = 7
		snap := &queue.Snapshot{At: 10_000 + tc.passed}
		now := told{waiting: true, ahead: tc.ahead, stock: queue.Available}
		if got := r.news(here, now) && r.due(snap, here, now); got != tc.want {
			t.Errorf("%d ahead, %d before, %d ms later: got %v", tc.ahead, tc.last, tc.passed, got)
		}
		now = told{waiting: true, ahead: tc.last, stock: queue.Held}
		if !r.news(here, now) || !r.due(snap, here, now) {
			t.Errorf("%d ahead: other stock is not told at once", tc.ahead)
		}
	}
	// In any period of its distance a seat is sent one position.
	for ahead, every := range map[int64]int64{500: 1000, 5000: 2000, 50_000: 5000} {
		for number := range int64(50) {
			here := &seat{told: told{waiting: true, ahead: ahead + 1, stock: queue.Available}}
			here.Number, here.Ticket = number, number
			sent := 0
			for at := int64(100); at <= every; at += 100 {
				if r.due(&queue.Snapshot{At: at}, here, told{waiting: true, ahead: ahead, stock: queue.Available}) {
					sent++
					here.told.at = at
				}
			}
			if sent != 1 {
				t.Errorf("number %d, %d ahead: %d positions in %d ms", number, ahead, sent, every)
			}
		}
	}
}

func TestABuyerWhoseOrderRedisForgotHearsWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	order := queue.Order{ID: "o-1", Sale: s.snap.Sale.ID, User: "ann", Status: queue.Confirmed, CreatedAt: 900}
	s.seats["ann"] = queue.Seat{Status: queue.Buyer, Ticket: 12, Number: 12, Order: &order, At: 1000}
	ann := s.enters(queue.Seat{User: "ann", Status: queue.Buyer, Ticket: 12, Number: 12, Order: &order}, 1005)
	s.tick()
	ann.hears("order o-1 confirmed")

	// Redis has nothing of ann any more, and nobody knows yet whether her order is on its way.
	s.mu.Lock()
	s.seats["ann"] = queue.Seat{Status: queue.NoSeat, At: 2000}
	s.mu.Unlock()
	again := func() {
		s.snap.At += 1000
		snap := s.snap
		s.room.Tick(&snap, nil, queue.Lost{News: true})
	}
	again()
	ann.hears()
	s.tick() // she is asked for again until it is known
	ann.hears()
	s.fates = map[string]queue.OrderStatus{"o-1": queue.Rejected}
	s.tick()
	ann.hears("order o-1 rejected")
	again()
	ann.hears("none")
}

func TestTheLineIsToldWhoHasGoneAndWhoIsBack(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	wants := func(what string, want ...queue.Presence) {
		t.Helper()
		if diff := cmp.Diff(want, s.told); diff != "" {
			t.Errorf("%s: told otherwise (-want +got):\n%s", what, diff)
		}
		s.told = nil
	}
	ann, bob := s.enters(waiting("ann", 11), 1005), s.enters(waiting("bob", 12), 1005)
	tab := s.enters(waiting("ann", 11), 1005)
	s.tick()
	wants("nobody has gone")
	s.room.exit(tab.session, "ann")
	s.tick()
	wants("one of two tabs has gone")
	s.room.exit(ann.session, "ann")
	s.deaf = true
	s.tick()
	s.deaf = false
	wants("the line cannot be told")
	s.tick()
	wants("who has gone", queue.Presence{Ticket: 11})
	s.tick()
	wants("that was told")

	// Somebody comes back while the line is told that they have gone, and it is not known which of the two it heard last.
	ann = s.enters(waiting("ann", 11), s.snap.At)
	s.room.exit(ann.session, "ann")
	s.while = func() { ann = s.enters(waiting("ann", 11), s.snap.At) }
	s.tick()
	wants("gone", queue.Presence{Ticket: 11})
	s.tick()
	wants("and back", queue.Presence{Ticket: 11, Here: true})

	// Or they have joined before it was told, and are in the room only afterwards.
	s.room.exit(ann.session, "ann")
	s.tick()
	wants("gone again", queue.Presence{Ticket: 11})
	s.enters(waiting("ann", 11), s.snap.At-5)
	s.tick()
	wants("and there all the time", queue.Presence{Ticket: 11, Here: true})

	snap := s.snap
	s.room.Tick(&snap, nil, queue.Lost{Lease: true})
	wants("all, after this node counted as dead", queue.Presence{Ticket: 11, Here: true}, queue.Presence{Ticket: 12, Here: true})
	s.room.exit(bob.session, "bob")
	s.enters(waiting("bob", 12), s.snap.At)
	s.tick()
	wants("who is back before it was told")
}

func TestWhoIsRecalledIsToldAndThenCalled(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ann := s.enters(queue.Seat{User: "ann", Ticket: 5, Number: 5, Status: queue.Turn, Deadline: 60_000}, 1005)
	s.tick()
	ann.hears("turn")
	s.snap.Stock, s.snap.Items = queue.Held, map[string]int64{}
	s.tick(queue.Event{Kind: queue.SeatRecalled, Numbers: []int64{5}})
	ann.hears("sold_out", "queued 5 behind 0")
	s.snap.Stock, s.snap.Items = queue.Available, map[string]int64{queue.MainItem: 1}
	s.tick()
	ann.hears("queued 5 behind 0 because of stock")
	s.tick(given(5, 5))
	ann.hears("turn")
	s.tick(queue.Event{Kind: queue.SeatAbsent, Numbers: []int64{5}})
	ann.hears("missed")
}

func TestTheLargerALobbyIsTheMoreSeldomItIsToldItsSize(t *testing.T) {
	t.Parallel()
	for _, lobby := range []struct {
		entries int64
		every   time.Duration
	}{{20, time.Second}, {5000, 5 * time.Second}, {50_000, 15 * time.Second}, {200_000, time.Minute}} {
		s := newStage(t)
		s.snap.State, s.snap.Served, s.snap.Issued, s.snap.At = queue.Lobby, 0, lobby.entries, 1_000_000
		ann := s.enters(waiting("ann", 5), s.snap.At)
		s.tick()
		ann.hears("lobby")
		told := 0
		for range 120 {
			s.snap.At += time.Second.Milliseconds()
			s.snap.Issued++
			s.tick()
			told += len(ann.heard())
		}
		if most := int(2 * time.Minute / lobby.every); told < most-1 || told > most {
			t.Errorf("a lobby of %d that somebody comes to each second was told its size %d times in two minutes, want each %s",
				lobby.entries, told, lobby.every)
		}
		later := *s.snap.Sale
		later.OpensAt = later.OpensAt.Add(time.Hour)
		s.snap.Sale = &later
		s.snap.At += time.Second.Milliseconds()
		s.tick()
		ann.hears("lobby")
		s.snap.At += 2 * time.Minute.Milliseconds()
		s.tick()
		ann.hears() // nobody has come
	}
}

func TestAPlaceThatJumpsSaysWhy(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.snap.Served, s.snap.Issued = 0, 100
	ann := s.enters(waiting("ann", 60), 1005)
	s.tick()
	ann.hears("queued 60 behind 59")
	s.snap.Served, s.snap.Granted = 10, 10
	s.tick()
	ann.hears("queued 60 behind 49") // turns were given: nothing has jumped
	s.snap.Served = 20
	s.tick()
	ann.hears("queued 60 behind 39 because of left")
	faster := *s.snap.Sale
	faster.Line.Rate = 1 + 2*faster.Line.Rate
	s.snap.Sale = &faster
	s.tick()
	ann.hears("queued 60 behind 39 because of rate")
	s.tick()
	ann.hears()
	s.snap.State = queue.Paused
	s.tick()
	ann.hears("paused")
	s.snap.State = queue.Open
	s.tick()
	ann.hears("resumed", "queued 60 behind 39 because of paused")
}
