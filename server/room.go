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
	over     bool // the sale is no more
}

// news is what everybody in the room was told last.
type news struct {
	state queue.State
	stock queue.StockState
}

// seat is a user in the room: one, however many tabs and devices.
type seat struct {
	queue.Seat
	sessions map[*hub.Session]listener
	told     told
	ended    *queue.Order // the order that ended last, as it was told
}

// listener is what one session of a seat knows besides.
type listener struct {
	served bool        // its first state frame was sent
	state  queue.State // of the sale, as its welcome said
}

// told is what the sessions of a seat know.
type told struct {
	status  queue.SeatStatus
	order   queue.OrderStatus
	until   int64
	ahead   int64
	stock   queue.StockState
	at      int64 // when the position was sent, ms
	waiting bool  // a position was sent
}

func newRoom(sale string, q *queue.Queue, line line, order func(context.Context, queue.Order) queue.Order,
	log *slog.Logger) *room {
	r := &room{
		sale: sale, line: line, order: order, log: log,
		seats: map[string]*seat{}, numbers: map[int64]*seat{}, unsure: map[string]bool{},
	}
	r.watch = queue.NewWatcher(q, sale, r)
	return r
}

// enter adds a session whose user has that seat, as Join returned it, and whose welcome told of the sale in that state.
// Its first state frame comes from a tick that begins after this, so that what it is told is never older than what it was
// told elsewhere.
func (r *room) enter(s *hub.Session, held queue.Seat, state queue.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		s.Close(closeNoSale, "no such sale")
		return
	}
	here := r.seats[held.User]
	if here == nil {
		here = &seat{sessions: map[*hub.Session]listener{}}
		r.seats[held.User] = here
	}
	r.learn(here, held)
	here.sessions[s] = listener{state: state}
	if r.newest != nil && r.newest.At >= held.At {
		r.unsure[held.User] = true // a tick since then may have told of this seat while it was not here
	}
	r.watch.Kick()
}

// learn replaces what is known of a seat by what was read of it. A reading from before the order that the seat is known
// to have is left alone, like any that is older than the last.
func (r *room) learn(here *seat, found queue.Seat) {
	if found.At < here.At || here.Order != nil && found.Order == nil && here.Order.CreatedAt >= found.At {
		return
	}
	if here.Order != nil && found.Order != nil && here.Order.ID == found.Order.ID && later(here.Order.Status, found.Order.Status) {
		found.Order = here.Order // the row says more than the mark
	}
	if r.numbers[here.Number] == here {
		delete(r.numbers, here.Number)
	}
	here.Seat = found
	if here.Number > 0 {
		r.numbers[here.Number] = here
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
	delete(here.sessions, s)
	if len(here.sessions) == 0 {
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
		for s := range here.sessions {
			s.Close(closeNoSale, "no such sale")
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
	here.Status, here.Order = queue.Buyer, &order
	here.told.status, here.told.order = here.Status, order.Status
	frame := hub.NewFrame(encode(orderFrame{Type: "order", At: at, Order: viewOfOrder(order)}))
	for s, l := range here.sessions {
		if l.served && s != except {
			s.Send(frame)
		}
	}
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
	for user, here := range r.seats {
		if !r.unsure[user] { // who must be read again is told nothing until that was done
			r.update(snap, here, tellLobby)
		}
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
			delete(r.unsure, user) // whoever comes meanwhile is unsure again
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
			if r.seats[user] != nil {
				r.unsure[user] = true
			}
		}
		r.watch.Kick()
		return
	}
	for _, found := range seats {
		if here := r.seats[found.User]; here != nil {
			r.learn(here, found)
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
		if here := r.seats[e.User]; here != nil && e.Order != nil {
			r.orderChanged(snap, here, *e.Order)
		}
	}
}

// orderChanged brings the news of an order to its seat. They may come again, and they may be older than the seat as it
// was read.
func (r *room) orderChanged(snap *queue.Snapshot, here *seat, order queue.Order) {
	known := here.Order != nil && here.Order.ID == order.ID
	switch {
	case known && order.Status.Live() && !later(order.Status, here.Order.Status):
	case here.ended != nil && here.ended.ID == order.ID:
	case !known && order.CreatedAt < here.At:
		// It had ended before the seat was read, or its mark was lost and is back.
		r.unsure[here.User] = true
		r.watch.Kick()
	default:
		if !known || later(order.Status, here.Order.Status) {
			r.tellOrder(here, order, snap.At, nil)
		}
		if order.Status.Live() {
			return
		}
		// The seat was used up by the order; who wants another takes a new one. Without a line there is none to take.
		here.Status, here.Order, here.ended = queue.Missed, nil, &order
		if snap.Sale.Line.Order == queue.Off {
			here.Status = queue.NoSeat
		}
		here.told = told{status: here.Status}
	}
}

// announce tells everybody what changed for everybody.
func (r *room) announce(snap *queue.Snapshot) {
	before := r.lastNews
	r.lastNews = news{state: snap.State, stock: snap.Stock}
	if before.state == "" {
		return
	}
	if news, ok := pauseNews(before.state, snap); ok {
		r.everyone(hub.NewFrame(encode(news)))
		for _, here := range r.seats {
			here.told.until = 0 // the clock stood still: say anew until when a turn lasts
		}
	}
	if snap.State != before.state && snap.State == queue.Closed {
		r.everyone(hub.NewFrame(encode(stateFrame{Type: "closed", At: snap.At, Why: "ended"})))
		for _, here := range r.seats {
			if here.Status != queue.Buyer {
				here.told = r.tellingOf(snap, here) // nothing else that this tick changed matters to them any more
			}
		}
	}
	if snap.Stock != before.stock && snap.Stock != queue.Available {
		frame := hub.NewFrame(encode(soldOutFrame{Type: "sold_out", At: snap.At, Stock: snap.Stock})).Share()
		for _, here := range r.seats {
			if here.Status != queue.Buyer {
				r.send(here, frame, false)
				here.told.stock = snap.Stock
			}
		}
	}
}

// pauseNews is what somebody is to be told who knows the sale in the state before: that it stands still now, or that it
// goes on. A sale that has closed does neither.
func pauseNews(before queue.State, snap *queue.Snapshot) (stateFrame, bool) {
	still := func(s queue.State) bool { return s == queue.Paused || s == queue.Recovering }
	switch {
	case still(snap.State) && snap.State != before:
		return pausedOf(snap, snap.At), true
	case still(before) && !still(snap.State) && snap.State != queue.Closed:
		return stateFrame{Type: "resumed", At: snap.At}, true
	}
	return stateFrame{}, false
}

// everyone hands a frame to all sessions that know their state. Those that do not are about to hear the same by their
// first one.
func (r *room) everyone(frame *hub.Frame) {
	frame.Share()
	for _, here := range r.seats {
		r.send(here, frame, false)
	}
}

// update sends a seat's sessions what changed for them: their first state, a new one, or a new position.
func (r *room) update(snap *queue.Snapshot, here *seat, tellLobby bool) {
	var first []*hub.Session
	for s, l := range here.sessions {
		if !l.served {
			if snap.At <= here.At {
				r.watch.Kick() // this tick may have begun before the seat was written
				return
			}
			first = append(first, s)
		}
	}
	now := r.tellingOf(snap, here)
	if len(first) < len(here.sessions) {
		r.push(snap, here, now, tellLobby)
	} else {
		here.told = now
	}
	if len(first) == 0 {
		return
	}
	state := stateOf(snap, here.Seat)
	frame := hub.NewFrame(encode(state))
	for _, s := range first {
		s.Send(frame)
		news, ok := pauseNews(here.sessions[s].state, snap)
		if told, same := state.(stateFrame); ok && !(same && told.Type == news.Type) {
			s.Send(hub.NewFrame(encode(news)))
		}
		here.sessions[s] = listener{served: true}
	}
}

// push sends what changed to the sessions that know their state.
func (r *room) push(snap *queue.Snapshot, here *seat, now told, tellLobby bool) {
	waiting := here.Status == queue.Waiting && snap.State != queue.Closed
	// Who may grab: in a sale without a line, everybody while it is open.
	mayGrab := snap.State == queue.Open && snap.Stock == queue.Available &&
		(here.Status == queue.Turn || here.Status == queue.NoSeat && snap.Sale.Line.Order == queue.Off)
	switch {
	case now.status != here.told.status, now.order != here.told.order,
		mayGrab && (now.until != here.told.until || here.told.stock != queue.Available):
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
	case queue.Buyer:
		if here.Order != nil {
			now.order = here.Order.Status
		}
	case queue.Turn:
		now.until = snap.Wall(here.Deadline)
	case queue.NoSeat:
		if snap.State == queue.Open {
			now.until = snap.Sale.ClosesAt.UnixMilli()
		}
	case queue.Waiting:
		now.ahead = snap.Ahead(here.Number)
		now.waiting = snap.State != queue.Lobby
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
	for s, l := range here.sessions {
		if !l.served {
			continue
		}
		if position {
			s.Position(frame)
		} else {
			s.Send(frame)
		}
	}
}
