package server

import (
	"context"
	"iter"
	"time"

	"sluice/queue"
)

// Tick tells the room what a tick saw.
func (r *room) Tick(snap *queue.Snapshot, events []queue.Event, lost queue.Lost) {
	if snap.Undrawn() && r.draw != nil {
		r.draw()
	}
	reclaimed := r.reclaim(snap)
	r.tellPresence(lost.Lease)
	r.reread(snap, lost.News || reclaimed || r.drawn(snap))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		r.apply(snap, e)
	}
	r.jolt(snap)
	r.announce(snap)
	now := time.UnixMilli(snap.At)
	tellLobby := now.Sub(r.lobbyAt) >= time.Second || now.Before(r.lobbyAt)
	r.tellSeats(snap, tellLobby)
	if tellLobby {
		r.lobbyAt = now
	}
	r.newest = snap
}

// tellSeats tells each seat what is new for it. While the line stands still only those are looked at that something happened
// to: fifteen thousand who wait would cost a tenth of a processor just to find that there is nothing to say.
func (r *room) tellSeats(snap *queue.Snapshot, tellLobby bool) {
	touched := r.touched
	r.touched = nil
	for _, here := range touched {
		here.touched = false
	}
	update := func(here *seat) {
		// Who must be read again is told nothing until that was done.
		if r.unsure[here.User] || !r.update(snap, here, tellLobby) {
			r.touch(here)
		}
	}
	if r.restless || tellLobby && snap.State == queue.Lobby || r.moved(snap) {
		r.restless = false
		for _, here := range r.seats {
			update(here)
		}
		return
	}
	for _, here := range touched {
		if r.seats[here.User] == here {
			update(here)
		}
	}
}

// moved says whether this tick may have changed something for seats that nothing happened to.
func (r *room) moved(snap *queue.Snapshot) bool {
	before := r.newest
	return before == nil || !snap.Stands(before) || snap.State != before.State || snap.Stock != before.Stock ||
		snap.Version != before.Version || snap.State == queue.Open && snap.Stopped != before.Stopped || r.jolted.at == snap.At
}

// reclaim takes back the numbers of those who are here when Redis has lost them: their seats are of an earlier epoch than
// the line. It says whether there were any.
func (r *room) reclaim(snap *queue.Snapshot) bool {
	if snap.State != queue.Recovering {
		return false // too late, if ever
	}
	r.mu.Lock()
	var lost []queue.Seat
	if r.newest != nil && r.newest.Epoch < snap.Epoch {
		r.served = r.newest.Served
	}
	served := r.served
	for _, here := range r.seats {
		if here.Ticket > 0 && here.Epoch < snap.Epoch && (here.Status == queue.Waiting || here.Status == queue.Turn) {
			lost = append(lost, here.Seat)
		}
	}
	r.mu.Unlock()
	if len(lost) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), reclaimTimeout)
	defer cancel()
	if err := r.line.Reclaim(ctx, r.sale, served, lost); queue.IsOver(err) {
		return false
	} else if err != nil {
		r.log.Warn("lost numbers cannot be taken back; the next tick tries once more", "sale", r.sale, "seats", len(lost), "error", err)
	} else {
		r.log.Info("numbers that Redis had lost were taken back", "sale", r.sale, "seats", len(lost), "epoch", snap.Epoch)
	}
	return true
}

// reclaimTimeout bounds taking back the numbers of one node's shoppers.
const reclaimTimeout = 10 * time.Second

// reread asks Redis where users stand whose news may have been lost: all of them after a gap, else those who came while
// a tick was under way. The watcher waits meanwhile, so nothing overtakes it.
//
// Whoever was told of an order that is not there any more hears what became of it, and nothing before that is known.
func (r *room) reread(snap *queue.Snapshot, all bool) {
	r.mu.Lock()
	var users []string
	told := map[string]queue.Order{}
	for user, here := range r.seats {
		if all || r.unsure[user] {
			users = append(users, user)
			delete(r.unsure, user) // whoever comes meanwhile is unsure again
			if here.Order != nil {
				told[user] = *here.Order
			}
		}
	}
	r.mu.Unlock()
	if len(users) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	seats, err := r.line.LookMany(ctx, r.sale, users)
	if queue.IsOver(err) {
		r.watch.Kick() // the watcher finds out too, and the room ends
		return
	}
	if err != nil {
		r.log.Warn("seats cannot be read again; the next tick tries once more", "sale", r.sale, "seats", len(users), "error", err)
	}
	// Orders may have moved on in the database; that is asked before the room is locked.
	fates := map[string]queue.Order{}
	open := map[string]bool{} // users of whose order nothing is known yet
	for i := range seats {
		seat := &seats[i]
		if seat.Order != nil {
			present := r.order(ctx, *seat.Order)
			seat.Order = &present
		}
		before, had := told[seat.User]
		if !had || seat.At <= before.CreatedAt || seat.Order != nil && seat.Order.ID == before.ID {
			continue
		}
		if fate, known := r.fate(ctx, before, *seat); known && !fate.Status.Live() {
			fates[seat.User] = fate
		} else {
			open[seat.User] = true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, user := range users {
		if r.seats[user] != nil && (err != nil || open[user]) {
			r.unsure[user] = true
			r.watch.Kick()
		}
	}
	for _, found := range seats {
		here := r.seats[found.User]
		if here == nil || open[found.User] {
			continue
		}
		if fate, ended := fates[found.User]; ended && here.Order != nil && here.Order.ID == fate.ID {
			r.orderChanged(snap, here, fate)
		} else {
			r.learn(here, found)
		}
	}
}

// apply brings one piece of news to the seats that are here.
func (r *room) apply(snap *queue.Snapshot, e queue.Event) {
	switch e.Kind {
	case queue.TurnGiven:
		for here := range r.those(e.Numbers) {
			if here.Status == queue.Waiting {
				r.touch(here)
				here.Status, here.Deadline, here.Recalled = queue.Turn, e.Deadline, false
			}
		}
	case queue.TurnEnded:
		for here := range r.those(e.Numbers) {
			here.Status = queue.Missed
			r.touch(here)
		}
	case queue.SeatRecalled:
		for here := range r.those(e.Numbers) {
			here.Status, here.Recalled = queue.Waiting, true
			r.touch(here)
		}
	case queue.SeatAbsent:
		for here := range r.those(e.Numbers) {
			here.Status = queue.Absent
			r.touch(here)
		}
	case queue.SeatLeft:
		if here := r.seats[e.User]; here != nil && here.Ticket == e.Numbers[0] && here.Status != queue.Buyer {
			delete(r.numbers, here.Number)
			here.Status, here.Number, here.Ticket = queue.NoSeat, 0, 0
			r.touch(here)
		}
	case queue.OrderChanged:
		if here := r.seats[e.User]; here != nil && e.Order != nil {
			r.orderChanged(snap, here, *e.Order)
			r.touch(here)
		}
	}
}

// those are the seats with these numbers that are here and have no order.
func (r *room) those(numbers []int64) iter.Seq[*seat] {
	return func(yield func(*seat) bool) {
		for _, number := range numbers {
			if here := r.numbers[number]; here != nil && here.Status != queue.Buyer && !yield(here) {
				return
			}
		}
	}
}

// drawn says that this tick is the first to know the numbers of a lottery: the seats that are here have theirs now.
func (r *room) drawn(snap *queue.Snapshot) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return snap.Drawn && r.newest != nil && !r.newest.Drawn
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
