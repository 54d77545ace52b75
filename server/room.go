package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sluice/hub"
	"sluice/queue"
)

// room is one sale on this node: who is here, and what each was told last. It is told of every tick, works out what
// changed for whom, and hands frames to the hub; the hub writes them. Nothing here waits for a shopper, and a waiting
// shopper costs Redis nothing.
type room struct {
	sale  string
	hub   *hub.Hub
	line  line
	order func(context.Context, queue.Order) queue.Order // the order in its present status
	log   *slog.Logger
	watch *queue.Watcher

	mu       sync.Mutex
	seats    map[string]*seat // by user
	numbers  map[int64]*seat
	newest   *queue.Snapshot // of the last tick that was told
	unsure   map[string]bool // users whose seat must be read again
	lobbyAt  time.Time       // when the lobby was told last
	lastNews news
}

// news is what everybody in the room was told last.
type news struct {
	state queue.State
	stock queue.StockState
}

// seat is a user in the room: one, however many tabs and devices.
type seat struct {
	queue.Seat
	sessions map[*hub.Session]bool // true once its first state frame was sent
	told     told
}

// told is what the sessions of a seat know.
type told struct {
	status  queue.SeatStatus
	until   int64
	ahead   int64
	stock   queue.StockState
	at      int64 // when the position was sent, ms
	waiting bool  // a position was sent
}

func newRoom(sale string, h *hub.Hub, q *queue.Queue, line line, order func(context.Context, queue.Order) queue.Order,
	log *slog.Logger) *room {
	r := &room{
		sale: sale, hub: h, line: line, order: order, log: log,
		seats: map[string]*seat{}, numbers: map[int64]*seat{}, unsure: map[string]bool{},
	}
	r.watch = queue.NewWatcher(q, sale, r)
	return r
}

// enter adds a session whose user has that seat, as Join returned it. Its first state frame comes from a tick that
// begins after this, so that what it is told is never older than what it was told elsewhere.
func (r *room) enter(s *hub.Session, held queue.Seat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	here := r.seats[held.User]
	switch {
	case here == nil:
		here = &seat{Seat: held, sessions: map[*hub.Session]bool{}}
		r.seats[held.User] = here
	case held.At >= here.At:
		// Another tab is here already; what was just read is newer than what it knows.
		delete(r.numbers, here.Number)
		if here.Order != nil && held.Order != nil && here.Order.ID == held.Order.ID {
			held.Order = here.Order // the row says more than the mark
		}
		here.Seat = held
	}
	if here.Number > 0 {
		r.numbers[here.Number] = here
	}
	here.sessions[s] = false
	if r.newest != nil && r.newest.At >= held.At {
		r.unsure[held.User] = true // a tick since then may have told of this seat while it was not here
	}
	r.watch.Kick()
}

// exit removes a session. The seat stays its user's; this node forgets it with its last session.
func (r *room) exit(s *hub.Session, user string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	here := r.seats[user]
	if here == nil {
		return
	}
	delete(here.sessions, s)
	if len(here.sessions) == 0 {
		delete(r.seats, user)
		delete(r.unsure, user)
		if r.numbers[here.Number] == here {
			delete(r.numbers, here.Number)
		}
	}
}

// numberOf is the number of the user's seat, 0 without one.
func (r *room) numberOf(user string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if here := r.seats[user]; here != nil {
		return here.Number
	}
	return 0
}

// bought notes the order that a grab on this node was answered with, tells the user's other sessions of one that they did
// not know, and returns it as the room knows it: its confirmation may have come before the answer of the grab.
func (r *room) bought(order queue.Order, asked *hub.Session) queue.Order {
	r.mu.Lock()
	defer r.mu.Unlock()
	here := r.seats[order.User]
	if here == nil || !order.Status.Live() {
		return order
	}
	if here.Order != nil && here.Order.ID == order.ID {
		return *here.Order
	}
	here.Status, here.Order = queue.Buyer, &order
	here.told.status = queue.Buyer
	frame := hub.NewFrame(encode(orderFrame{Type: "order", At: order.CreatedAt, Order: viewOfOrder(order)}))
	for s := range here.sessions {
		if s != asked {
			s.Send(frame)
		}
	}
	return order
}

// Tick tells the room what a tick saw.
func (r *room) Tick(snap *queue.Snapshot, events []queue.Event, missed bool) {
	r.reread(missed)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		r.apply(snap, e)
	}
	r.announce(snap)
	now := time.UnixMilli(snap.At)
	tellLobby := now.Sub(r.lobbyAt) >= time.Second || now.Before(r.lobbyAt)
	for _, here := range r.seats {
		r.update(snap, here, tellLobby)
	}
	if tellLobby {
		r.lobbyAt = now
	}
	r.newest = snap
}

// reread asks Redis where users stand whose news may have been lost: all of them after a gap, else those who came while
// a tick was under way. The watcher waits meanwhile, so nothing overtakes it.
func (r *room) reread(all bool) {
	r.mu.Lock()
	var users []string
	for user := range r.seats {
		if all || r.unsure[user] {
			users = append(users, user)
		}
	}
	r.mu.Unlock()
	if len(users) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	seats, err := r.line.LookMany(ctx, r.sale, users)
	if err != nil {
		r.log.Warn("seats cannot be read again; the next tick tries once more", "sale", r.sale, "seats", len(users), "err", err)
	}
	// Orders may have moved on in the database; that is asked before the room is locked.
	for i := range seats {
		if o := seats[i].Order; o != nil {
			present := r.order(ctx, *o)
			seats[i].Order = &present
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		for _, user := range users {
			r.unsure[user] = true
		}
		return
	}
	for _, found := range seats {
		delete(r.unsure, found.User)
		here := r.seats[found.User]
		if here == nil || found.At < here.At {
			continue
		}
		if r.numbers[here.Number] == here {
			delete(r.numbers, here.Number)
		}
		here.Seat = found
		if here.Number > 0 {
			r.numbers[here.Number] = here
		}
	}
}

// apply brings one piece of news to the seats that are here.
func (r *room) apply(snap *queue.Snapshot, e queue.Event) {
	switch e.Kind {
	case queue.TurnGiven:
		call := func(here *seat) {
			if here.Status == queue.Waiting {
				here.Status, here.Deadline = queue.Turn, e.Deadline
			}
		}
		if int64(len(r.numbers)) < e.To-e.From {
			for number, here := range r.numbers {
				if number >= e.From && number <= e.To {
					call(here)
				}
			}
			return
		}
		for number := e.From; number <= e.To; number++ {
			if here := r.numbers[number]; here != nil {
				call(here)
			}
		}
	case queue.TurnEnded:
		for _, number := range e.Numbers {
			if here := r.numbers[number]; here != nil && here.Status != queue.Buyer {
				here.Status = queue.Missed
			}
		}
	case queue.SeatLeft:
		if here := r.seats[e.User]; here != nil && here.Number == e.Numbers[0] && here.Status != queue.Buyer {
			delete(r.numbers, here.Number)
			here.Status, here.Number = queue.NoSeat, 0
		}
	case queue.OrderChanged:
		here := r.seats[e.User]
		if here == nil || e.Order == nil {
			return
		}
		if e.Order.Status.Live() {
			here.Status, here.Order = queue.Buyer, e.Order
		} else if here.Order != nil && here.Order.ID == e.Order.ID {
			// The seat was used up by the order; who wants another takes a new one.
			here.Status, here.Order = queue.Missed, nil
		}
		here.told.status = here.Status
		frame := hub.NewFrame(encode(orderFrame{Type: "order", At: snap.At, Order: viewOfOrder(*e.Order)}))
		for s := range here.sessions {
			s.Send(frame)
		}
	}
}

// announce tells everybody what changed for everybody.
func (r *room) announce(snap *queue.Snapshot) {
	before := r.lastNews
	r.lastNews = news{state: snap.State, stock: snap.Stock}
	if before.state == "" || r.hub == nil {
		return
	}
	if snap.State != before.state {
		switch {
		case snap.State == queue.Paused || snap.State == queue.Recovering:
			why := "operator"
			if snap.State == queue.Recovering {
				why = "recovering"
			}
			r.hub.Broadcast(r.sale, hub.NewFrame(encode(stateFrame{Type: "paused", At: snap.At, Why: why})))
		case before.state == queue.Paused || before.state == queue.Recovering:
			r.hub.Broadcast(r.sale, hub.NewFrame(encode(stateFrame{Type: "resumed", At: snap.At})))
			for _, here := range r.seats {
				here.told.until = 0 // the clock stood still: say anew until when a turn lasts
			}
		}
		if snap.State == queue.Closed {
			r.hub.Broadcast(r.sale, hub.NewFrame(encode(stateFrame{Type: "closed", At: snap.At, Why: "ended"})))
		}
	}
	if snap.Stock != before.stock && snap.Stock != queue.Available {
		frame := hub.NewFrame(encode(soldOutFrame{Type: "sold_out", At: snap.At, Stock: snap.Stock}))
		for _, here := range r.seats {
			if here.Status == queue.Buyer {
				continue
			}
			for s, fresh := range here.sessions {
				if fresh {
					s.Send(frame)
				}
			}
			here.told.stock = snap.Stock
		}
	}
}

// update sends a seat's sessions what changed for them: their first state, a new one, or a new position.
func (r *room) update(snap *queue.Snapshot, here *seat, tellLobby bool) {
	var first []*hub.Session
	for s, served := range here.sessions {
		if !served {
			if snap.At <= here.At {
				r.watch.Kick() // this tick may have begun before the seat was written
				return
			}
			first = append(first, s)
		}
	}
	waiting := here.Status == queue.Waiting && snap.State != queue.Closed
	if len(first) > 0 {
		frame := hub.NewFrame(encode(stateOf(snap, here.Seat)))
		for _, s := range first {
			s.Send(frame)
			here.sessions[s] = true
		}
		if len(first) == len(here.sessions) {
			here.told = r.tellingOf(snap, here)
			return
		}
	}
	now := r.tellingOf(snap, here)
	// Who may grab: in a sale without a line, everybody while it is open.
	mayGrab := snap.State == queue.Open && snap.Stock == queue.Available &&
		(here.Status == queue.Turn || here.Status == queue.NoSeat && snap.Sale.Line.Order == queue.Off)
	switch {
	case now.status != here.told.status, mayGrab && (now.until != here.told.until || here.told.stock != queue.Available):
		here.told = now
		r.send(here, hub.NewFrame(encode(stateOf(snap, here.Seat))), false)
	case waiting && snap.State == queue.Lobby:
		if tellLobby {
			here.told = now
			r.send(here, hub.NewFrame(encode(lobbyOf(snap))), true)
		}
	case waiting && snap.Stock != queue.Gone && r.due(snap, here, now):
		here.told = now
		r.send(here, hub.NewFrame(encode(queuedOf(snap, here.Number))), true)
	}
}

// tellingOf is what a seat is about to be told.
func (r *room) tellingOf(snap *queue.Snapshot, here *seat) told {
	now := told{status: here.Status, stock: snap.Stock, at: snap.At}
	switch here.Status {
	case queue.Turn:
		now.until = snap.Wall(here.Deadline)
	case queue.NoSeat:
		if snap.State == queue.Open {
			now.until = snap.Sale.ClosesAt.UnixMilli()
		}
	case queue.Waiting:
		now.ahead = snap.Ahead(here.Number)
		now.waiting = snap.State == queue.Open || snap.State == queue.Paused
	}
	return now
}

// due says whether a position is worth sending: at once when its kind changed, else by distance, staggered by number.
func (r *room) due(snap *queue.Snapshot, here *seat, now told) bool {
	if !here.told.waiting || now.stock != here.told.stock {
		return true
	}
	if now.ahead == here.told.ahead {
		return false
	}
	var every int64
	switch {
	case now.ahead < 100:
		return true
	case now.ahead < 1000:
		every = 1000
	case now.ahead < 10_000:
		every = 2000
	default:
		every = 5000
	}
	// The same moment of each period for a seat, another one for its neighbour.
	slot := func(at int64) int64 { return (at + here.Number*97) / every }
	return slot(snap.At) != slot(here.told.at)
}

// send hands a frame to all of a seat's sessions that know their state.
func (r *room) send(here *seat, frame *hub.Frame, position bool) {
	for s, fresh := range here.sessions {
		if !fresh {
			continue
		}
		if position {
			s.Position(frame)
		} else {
			s.Send(frame)
		}
	}
}
