package server

import (
	"context"
	"time"

	"sluice/queue"
)

// presenceTimeout bounds telling the line who is here, and who is not any more.
const presenceTimeout = 5 * time.Second

// goneFor is longer than a hello takes, from its joining to its session being in the room.
const goneFor = 3 * callTimeout

// tellPresence tells the line whose last session here has ended since the last tick. After this node counted as dead, it
// tells of everybody who is here. What cannot be told now is told with the next tick: telling it twice does no harm.
//
// Somebody may come back while it is told that they have gone, or have joined just before and be in the room just after, and
// nobody knows then which of the two the line heard last. So it is told once more that they are here.
func (r *room) tellPresence(lease bool) {
	r.mu.Lock()
	r.strange = r.strange || lease
	var seats []queue.Presence
	var users []string // of them
	say := func(user string, ticket int64, here bool) {
		seats = append(seats, queue.Presence{Ticket: ticket, Here: here})
		users = append(users, user)
	}
	for ticket, user := range r.left {
		say(user, ticket, false)
	}
	for ticket, user := range r.came {
		say(user, ticket, true)
	}
	if r.strange {
		for user, here := range r.seats {
			if here.Ticket > 0 {
				say(user, here.Ticket, true)
			}
		}
	}
	clear(r.left) // whoever leaves from now on is told of next time
	clear(r.came)
	r.mu.Unlock()
	if len(seats) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), presenceTimeout)
	defer cancel()
	err := r.line.Tell(ctx, r.sale, seats)
	if queue.IsOver(err) {
		r.watch.Kick() // the watcher finds out too, and the room ends
		return
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for ticket, at := range r.gone {
		if now.Sub(at) > goneFor {
			delete(r.gone, ticket)
		}
	}
	for i, seat := range seats {
		user := users[i]
		here := r.seats[user] != nil && r.seats[user].Ticket == seat.Ticket
		if !seat.Here {
			r.gone[seat.Ticket] = now
		}
		switch {
		case !here && (seat.Here || err != nil):
			r.left[seat.Ticket] = user
		case here && (!seat.Here || err != nil):
			r.came[seat.Ticket] = user
			r.watch.Kick()
		}
	}
	switch {
	case err != nil:
		r.log.Warn("the line cannot be told who is here; the next tick tries once more", "sale", r.sale, "seats", len(seats), "error", err)
	case r.strange:
		r.strange = false
		if r.leased { // else the node has only just begun
			r.log.Info("this node counted as dead; the line was told again who is here", "sale", r.sale, "seats", len(seats))
		}
	}
}

// forget tells the line that a user is not here whose only hello had an unknown outcome, unless they have come since.
func (s *Server) forget(sale, user string) {
	r := s.registry.room(sale)
	if r == nil {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), presenceTimeout)
		defer cancel()
		seat, err := s.line.Look(ctx, sale, user)
		if err != nil {
			return // without Redis nobody knows, and this node's lease will run out with it
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.seats[user] == nil && seat.Ticket > 0 {
			r.left[seat.Ticket] = user
		}
	}()
}
