package server

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sluice/hub"
	"sluice/queue"
	"sluice/trace"
)

// room is one sale on this node: who is here, and what each was told last. It is told of every tick, works out what
// changed for whom, and hands frames to the hub; the hub writes them. Nothing here waits for a shopper, and a waiting
// shopper costs Redis nothing.
type room struct {
	sale   string
	line   line
	passes *passes
	order  func(context.Context, queue.Order) queue.Order                     // the order in its present status
	fate   func(context.Context, queue.Order, queue.Seat) (queue.Order, bool) // of one whose mark is gone; see Server.fate
	log    *slog.Logger
	watch  *queue.Watcher
	turned func(given int64) // is told when the frame of a turn was written, and when that was given, ms since the epoch; nil = nobody is
	tracer *trace.Tracer     // nil = nothing is followed
	draw   func()            // draws the lottery of a sale that has opened; nil = none is ever to be drawn here

	shoppers atomic.Int64 // sessions that are here

	mu       sync.Mutex
	seats    map[string]*seat // by user
	numbers  map[int64]*seat
	newest   *queue.Snapshot // of the last tick that was told
	unsure   map[string]bool // users whose seat must be read again
	touched  []*seat         // those that something happened to since the last tick
	restless bool            // somebody is to hear of a place that has changed, and not yet
	lobbyAt  time.Time       // when the lobby was told last
	served   int64           // the cursor before Redis lost the line last
	lastNews news
	over     bool // the sale is no more

	// What the line is to be told of who is here; see room_presence.go.
	left    map[int64]string    // tickets whose last session here has ended, and their users
	gone    map[int64]time.Time // tickets that the line was told have nobody here, lately, and when
	came    map[int64]string    // tickets that may have been told of wrongly, and are here, and their users
	strange bool                // this node counted as dead: all who are here must be told of again
	leased  bool                // it ever had a lease
	jolted  jolted
}

// seat is a user in the room: one, however many tabs and devices.
type seat struct {
	queue.Seat
	sessions []listener // few: mostly one
	told     told
	ended    *queue.Order // the order that ended last, as it was told
	touched  bool         // is among the room's touched
	trace    string       // of the last that was followed of this seat: its hello, or its turn; "" = nothing was
}

// listener is one session of a seat, and what it knows.
type listener struct {
	*hub.Session
	served bool         // its first state frame was sent
	state  queue.State  // of the sale, as its welcome said; until it is served
	named  *queue.Order // what became of another order than the seat's, to be told after the first state frame; may be nil
}

func newRoom(sale string, q *queue.Queue, line line, passes *passes, order func(context.Context, queue.Order) queue.Order,
	fate func(context.Context, queue.Order, queue.Seat) (queue.Order, bool), log *slog.Logger) *room {
	r := &room{
		sale: sale, line: line, passes: passes, order: order, fate: fate, log: log,
		seats: map[string]*seat{}, numbers: map[int64]*seat{}, unsure: map[string]bool{},
		left: map[int64]string{}, gone: map[int64]time.Time{}, came: map[int64]string{},
	}
	r.watch = queue.NewWatcher(q, sale, r)
	return r
}

// enter adds a session whose user has that seat, as Join returned it, and whose welcome told of the sale in that state.
// Its first state frame comes from a tick that begins after this, so that what it is told is never older than what it was
// told elsewhere. named is what became of an order that it asked for; may be nil. trace is what the hello
// was a part of.
func (r *room) enter(s *hub.Session, held queue.Seat, state queue.State, named *queue.Order, trace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		s.Close(closeNoSale, "no such sale")
		return
	}
	here := r.seats[held.User]
	if here == nil {
		here = &seat{}
		r.seats[held.User] = here
	}
	r.learn(here, held)
	here.trace = trace
	next := listener{Session: s, state: state, named: named}
	if i := slices.IndexFunc(here.sessions, func(l listener) bool { return l.Session == s }); i >= 0 {
		here.sessions[i] = next // it has said hello again, and is told everything anew, once
	} else {
		here.sessions = append(here.sessions, next)
		r.shoppers.Add(1)
	}
	delete(r.left, held.Ticket) // joining has told the line that somebody is here
	if _, told := r.gone[held.Ticket]; told {
		r.came[held.Ticket] = held.User // the line may have heard of the last one's leaving after this one's joining
	}
	if r.newest != nil && r.newest.At >= held.At {
		r.unsure[held.User] = true // a tick since then may have told of this seat while it was not here
	}
	r.watch.Kick()
}

// learn replaces what is known of a seat by what was read of it. A reading from before the order that the seat is known
// to have is left alone, like any that is older than the last.
func (r *room) learn(here *seat, found queue.Seat) {
	r.touch(here)
	if found.At < here.At || here.Order != nil && found.Order == nil && here.Order.CreatedAt >= found.At {
		return
	}
	if here.Order != nil && found.Order != nil && here.Order.ID == found.Order.ID && later(here.Order.Status, found.Order.Status) {
		found.Order = here.Order // the row says more than the mark
	}
	if r.numbers[here.Number] == here {
		delete(r.numbers, here.Number)
	}
	if found.Address == "" { // it was looked at, and only joining tells these
		found.Code, found.Address = here.Code, here.Address
	}
	here.Seat, here.Allowance = found, nil // what the limits leave is of the request alone
	if here.Number > 0 {
		r.numbers[here.Number] = here
	}
}

// touch has the next tick look at a seat, also when the line stands still.
func (r *room) touch(here *seat) {
	if !here.touched {
		here.touched = true
		r.touched = append(r.touched, here)
	}
}

// later says whether an order gets from the status b to a, directly or not.
func later(a, b queue.OrderStatus) bool {
	rank := func(s queue.OrderStatus) int {
		switch s {
		case queue.Reserved:
			return 0
		case queue.Confirmed:
			return 1
		case queue.Paid:
			return 2
		}
		return 3
	}
	return rank(a) > rank(b)
}

// exit removes a session. The seat stays its user's; this node forgets it with its last session.
func (r *room) exit(s *hub.Session, user string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	here := r.seats[user]
	if here == nil {
		return
	}
	before := len(here.sessions)
	here.sessions = slices.DeleteFunc(here.sessions, func(l listener) bool { return l.Session == s })
	if len(here.sessions) < before {
		r.shoppers.Add(-1)
	}
	if len(here.sessions) == 0 {
		if here.Ticket > 0 {
			r.left[here.Ticket] = user
			delete(r.came, here.Ticket)
		}
		delete(r.seats, user)
		delete(r.unsure, user)
		if r.numbers[here.Number] == here {
			delete(r.numbers, here.Number)
		}
	}
}

// end closes the sessions of a sale that is no more.
func (r *room) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	for _, here := range r.seats {
		for _, l := range here.sessions {
			l.Close(closeNoSale, "no such sale")
		}
	}
}

// held is the user's seat as the room knows it; one without a ticket when nobody of it is here.
func (r *room) held(user string) queue.Seat {
	r.mu.Lock()
	defer r.mu.Unlock()
	if here := r.seats[user]; here != nil {
		return here.Seat
	}
	return queue.Seat{User: user}
}

// bought notes the order that a grab on this node was answered with, tells the user's other sessions of one that they did
// not know, and returns it as the room knows it: its confirmation may have come before the answer of the grab.
func (r *room) bought(order queue.Order, asked *hub.Session) queue.Order {
	r.mu.Lock()
	defer r.mu.Unlock()
	here := r.seats[order.User]
	switch {
	case here == nil || !order.Status.Live():
		return order
	case here.ended != nil && here.ended.ID == order.ID:
		return *here.ended
	case here.Order != nil && here.Order.ID == order.ID:
		if later(order.Status, here.Order.Status) {
			return order
		}
		return *here.Order
	}
	r.tellOrder(here, order, order.CreatedAt, asked)
	return order
}

// tellOrder notes the order of a seat and tells its sessions, except one that has its own answer.
func (r *room) tellOrder(here *seat, order queue.Order, at int64, except *hub.Session) {
	span := r.tracer.Continue(order.Trace, trace.Told)
	order.Trace = ""
	here.Status, here.Order = queue.Buyer, &order
	here.told.status, here.told.order = here.Status, order.Status
	frame := hub.NewFrame(encode(orderFrame{Type: "order", At: at, Order: viewOfOrder(order)}))
	sent := 0
	for _, l := range here.sessions {
		if l.served && l.Session != except {
			l.Send(frame)
			sent++
		}
	}
	if span.On() && sent > 0 {
		span.Set(trace.Sale, order.Sale)
		span.Set(trace.Order, order.ID)
		span.Set(trace.Status, string(order.Status))
		span.Count(trace.Sessions, sent)
		span.End("")
	}
}

// followed is what was followed of a user's seat last; "" = nothing was.
func (r *room) followed(user string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if here := r.seats[user]; here != nil {
		return here.trace
	}
	return ""
}

// followTurn records that a seat is told of a turn that was given at a moment, ms since the epoch, if its hello was
// followed: so who is followed at all is followed from there to the order.
func (r *room) followTurn(here *seat, given int64) {
	if here.trace == "" {
		return
	}
	span := r.tracer.BeginAt(given, trace.Turn, here.trace)
	span.Set(trace.Sale, r.sale)
	here.trace = span.ContextOr(here.trace)
	span.End("")
}
