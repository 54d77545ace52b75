package server

import (
	"sluice/hub"
	"sluice/queue"
)

// news is what everybody in the room was told last.
type news struct {
	state queue.State
	stock queue.StockState
}

// told is what the sessions of a seat know.
type told struct {
	status  queue.SeatStatus
	order   queue.OrderStatus
	until   int64
	ahead   int64 // those who are called before, recalled ones included
	granted int64 // turns given in all by then
	stock   queue.StockState
	entries int64 // in the lobby: how many are there
	opens   int64 // in the lobby: when it opens, ms
	at      int64 // when the position, or the size of the lobby, was sent, ms
	waiting bool  // a position was sent
}

// announce tells everybody what changed for everybody.
func (r *room) announce(snap *queue.Snapshot) {
	before := r.lastNews
	r.lastNews = news{state: snap.Told(), stock: snap.Stock}
	if before.state == "" {
		return
	}
	if news, ok := pauseNews(before.state, snap); ok {
		r.everyone(hub.NewFrame(encode(news)))
		for _, here := range r.seats {
			here.told.until = 0                                                       // the clock stood still: say anew until when a turn lasts
			here.told.waiting = here.told.waiting && before.state != queue.Recovering // and who is in line
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
		frame := hub.NewFrame(encode(soldOutFrame{Type: "sold_out", At: snap.At, Stock: snap.Stock}))
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
	switch now := snap.Told(); {
	case still(now) && now != before:
		return pausedOf(snap, snap.At), true
	case still(before) && !still(now) && now != queue.Closed:
		return stateFrame{Type: "resumed", At: snap.At}, true
	}
	return stateFrame{}, false
}

// everyone hands a frame to all sessions that know their state. Those that do not are about to hear the same by their
// first one.
func (r *room) everyone(frame *hub.Frame) {
	for _, here := range r.seats {
		r.send(here, frame, false)
	}
}

// update sends a seat's sessions what changed for them: their first state, a new one, or a new position. It returns false
// when that is for a later tick.
func (r *room) update(snap *queue.Snapshot, here *seat, tellLobby bool) bool {
	first := 0
	for _, l := range here.sessions {
		if !l.served {
			first++
		}
	}
	if first > 0 && snap.At <= here.At {
		r.watch.Kick() // this tick may have begun before the seat was written
		return false
	}
	now := r.tellingOf(snap, here)
	if first < len(here.sessions) {
		r.push(snap, here, now, tellLobby)
	} else {
		// A turn from before this hello is told again, and is no news.
		if given := now.until - snap.Sale.Line.Turn.Milliseconds(); now.status == queue.Turn && given >= here.At {
			r.followTurn(here, given)
		}
		here.told = now
	}
	if first == 0 {
		return true
	}
	state := stateOf(snap, here.Seat)
	frame := r.passes.frame(state, snap, here.Seat)
	for i := range here.sessions {
		l := &here.sessions[i]
		if l.served {
			continue
		}
		l.Send(frame)
		news, ok := pauseNews(l.state, snap)
		if told, same := state.(stateFrame); ok && !(same && told.Type == news.Type) {
			l.Send(hub.NewFrame(encode(news)))
		}
		if l.named != nil {
			l.Send(hub.NewFrame(encode(orderFrame{Type: "order", At: snap.At, Order: viewOfOrder(*l.named)})))
		}
		l.served, l.state, l.named = true, "", nil
	}
	return true
}

// push sends what changed to the sessions that know their state.
func (r *room) push(snap *queue.Snapshot, here *seat, now told, tellLobby bool) {
	if snap.State == queue.Recovering && (here.Status == queue.Waiting || here.Status == queue.Turn) {
		return // who else is in line is not known yet
	}
	waiting := here.Status == queue.Waiting && snap.State != queue.Closed
	// Who may grab: in a sale without a line, everybody while it is open.
	mayGrab := snap.State == queue.Open && snap.Stock == queue.Available &&
		(here.Status == queue.Turn || here.Status == queue.NoSeat && snap.Sale.Line.Order == queue.Off)
	switch {
	case waiting && snap.Stock == queue.Gone && here.told.stock == queue.Gone:
		here.told = now // that was told, and is all there is to say
	case now.status != here.told.status, now.order != here.told.order,
		mayGrab && (now.until != here.told.until || here.told.stock != queue.Available):
		called := now.status == queue.Turn && here.told.status == queue.Waiting
		given := now.until - snap.Sale.Line.Turn.Milliseconds()
		here.told = now
		frame := r.passes.stateFrame(snap, here.Seat)
		if called && r.turned != nil {
			frame.OnWrite(func() { r.turned(given) })
		}
		r.send(here, frame, false)
		if called {
			r.followTurn(here, given)
		}
	case waiting && snap.State == queue.Lobby:
		if tellLobby && r.lobbyDue(here, now) {
			here.told = now
			r.send(here, hub.NewFrame(encode(lobbyOf(snap))), true)
		}
	case waiting && snap.Stock != queue.Gone && r.news(here, now):
		if !r.due(snap, here, now) {
			r.restless = true
			return
		}
		frame := queuedOf(snap, here.Number)
		frame.Reason = r.reason(here.told, now)
		here.told = now
		r.send(here, hub.NewFrame(encode(frame)), true)
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
		now.ahead = snap.Ahead(here.Number) + snap.RecalledBefore(here.Number)
		now.granted = snap.Granted
		if now.waiting = snap.State != queue.Lobby; !now.waiting {
			now.entries, now.opens = snap.Waiting(), snap.Sale.OpensAt.UnixMilli()
		}
	}
	return now
}

// news says whether there is something to say of a position that was not said.
func (r *room) news(here *seat, now told) bool {
	return !here.told.waiting || now.stock != here.told.stock || now.ahead != here.told.ahead || r.jolted.at > here.told.at
}

// due says whether a position that is news is to be sent by this tick: at once when its kind changed, else by distance,
// staggered by number.
func (r *room) due(snap *queue.Snapshot, here *seat, now told) bool {
	if !here.told.waiting || now.stock != here.told.stock {
		return true
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
	return slot(here, snap.At, every) != slot(here, here.told.at, every)
}

// lobbyDue says whether the size of the lobby is to be told now: at once when the opening has moved, else the more seldom
// the more are there. If everybody heard at once of everybody who comes, a lobby of 300,000 would do nothing else.
func (r *room) lobbyDue(here *seat, now told) bool {
	if now.opens != here.told.opens {
		return true
	}
	var every int64
	switch {
	case now.entries < 1000:
		every = 1000
	case now.entries < 10_000:
		every = 5000
	case now.entries < 100_000:
		every = 15_000
	default:
		every = 60_000
	}
	return now.entries != here.told.entries && slot(here, now.at, every) != slot(here, here.told.at, every)
}

// slot numbers the periods of so many ms. They begin at another moment for each seat.
func slot(here *seat, at, every int64) int64 { return (at + here.Ticket*97) / every }

// send hands a frame to all of a seat's sessions that know their state.
func (r *room) send(here *seat, frame *hub.Frame, position bool) {
	for _, l := range here.sessions {
		if !l.served {
			continue
		}
		if position {
			l.Position(frame)
		} else {
			l.Send(frame)
		}
	}
}
