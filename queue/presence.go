package queue

import (
	"context"
	"slices"
	"time"
)

// Presence says of a seat whether somebody of it is here.
type Presence struct {
	Ticket int64
	Here   bool          // a connection of this node holds it; false = none does any more
	Poll   time.Duration // instead of that: a poll that was just answered is good for so long; 0 = it is about connections
}

// presencePage is how many seats one call handles.
const presencePage = 500

// Tell notes who is here on this node and who is not any more: with the last connection of a seat its grace begins, and who
// comes back after the cursor has passed is recalled. Telling it again changes nothing. Errors: Unavailable.
func (q *Queue) Tell(ctx context.Context, sale string, seats []Presence) error {
	k := keysOf(sale)
	names := []string{k.meta, k.turns, k.gone, k.away, k.recall, k.draw, k.conn, k.news}
	for page := range slices.Chunk(seats, presencePage) {
		args := []any{q.node}
		for _, seat := range page {
			args = append(args, seat.Ticket, here(seat.Here, seat.Poll))
		}
		v, err := q.run(ctx, "presence", names, args)
		if err != nil {
			return err
		}
		r := &reply{script: "presence"}
		if r.int(v) < 0 {
			return q.absent(ctx, sale)
		}
		if r.err != nil {
			return r.err
		}
	}
	return nil
}

// here is how the scripts are told of it.
func here(connected bool, poll time.Duration) any {
	switch {
	case poll > 0:
		return poll.Milliseconds()
	case connected:
		return "c"
	}
	return ""
}

// buryPage is about how many seats one call looks at for connections of dead nodes: a few milliseconds.
const buryPage = 1000

// bury goes on removing nodes whose lease has run out from the seats that they held connections of.
func (q *Queue) bury(ctx context.Context, sale string) error {
	k := keysOf(sale)
	_, err := q.run(ctx, "bury", []string{k.meta, k.turns, k.gone, k.away, k.recall, k.draw, k.conn, k.nodes}, []any{buryPage})
	return err
}
