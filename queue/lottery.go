package queue

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/redis/go-redis/v9"
)

// leafPage and tablePage are how many bytes one command reads or writes, so that no other command waits long.
const (
	leafPage  = 1 << 20
	tablePage = 1 << 20
)

// Freeze fixes who takes part in the draw of a lottery whose sale has opened, and sets Tickets, Live, Dropouts and Ranks of the
// draw. A draw that is frozen already, as the database has it, is taken to Redis as it is. It is false while there is
// nothing to draw: before the opening, in a pause, and when it is drawn already. Doing it again gives the same. Errors:
// Unavailable.
func (q *Queue) Freeze(ctx context.Context, draw Draw) (Draw, bool, error) {
	k := keysOf(draw.Sale)
	args := []any{"", ""}
	if draw.Frozen() {
		args = []any{draw.Tickets, draw.Live}
	}
	v, err := q.run(ctx, "freeze", []string{k.meta}, args)
	if err != nil {
		return draw, false, err
	}
	if v == nil {
		return draw, false, q.absent(ctx, draw.Sale)
	}
	r := &reply{script: "freeze"}
	if len(r.list(v, 0)) == 0 || r.err != nil {
		return draw, false, r.err
	}
	row := r.list(v, 3)
	tickets, live, drawn := r.int(row[0]), r.int(row[1]), r.int(row[2]) == 1
	if r.err != nil || drawn {
		return draw, false, r.err
	}
	if draw.Frozen() {
		return draw, true, nil
	}
	// What was given up before stays as it is from now on: later ones are kept elsewhere.
	dropouts, err := q.rdb.Get(ctx, k.dropout).Bytes()
	if err != nil && err != redis.Nil { //nolint:errorlint // a nil reply is never wrapped
		return draw, false, fmt.Errorf("read who left the lobby of sale %s: %w", draw.Sale, err)
	}
	ranks, err := q.rdb.Get(ctx, k.ranks).Bytes()
	if err != nil && err != redis.Nil { //nolint:errorlint // a nil reply is never wrapped
		return draw, false, fmt.Errorf("read the priorities in the lobby of sale %s: %w", draw.Sale, err)
	}
	draw.Tickets, draw.Live, draw.Dropouts, draw.Ranks = tickets, live, dropouts, ranks
	if n := len(draw.LiveTickets()); int64(n) != live {
		return draw, false, fmt.Errorf("sale %s has %d live entries, and %d are counted", draw.Sale, n, live)
	}
	return draw, true, nil
}

// LiveTickets are the tickets that take part, in their order: the entry with index i is LiveTickets()[i].
func (d *Draw) LiveTickets() []uint32 {
	tickets := make([]uint32, 0, d.Live)
	for ticket := int64(1); ticket <= d.Tickets; ticket++ {
		if !d.dropped(ticket) {
			tickets = append(tickets, uint32(ticket))
		}
	}
	return tickets
}

func (d *Draw) dropped(ticket int64) bool {
	byteAt := ticket / 8
	return byteAt < int64(len(d.Dropouts)) && d.Dropouts[byteAt]>>(7-ticket%8)&1 == 1
}

// Index is where the entry of a ticket stands among those that take part, from 0; -1 when it does not.
func (d *Draw) Index(ticket int64) int64 {
	if ticket < 1 || ticket > d.Tickets || d.dropped(ticket) {
		return -1
	}
	index := ticket - 1
	for i := int64(0); i*8 < ticket && i < int64(len(d.Dropouts)); i++ {
		b := d.Dropouts[i]
		if rest := ticket - i*8; rest < 8 {
			b >>= 8 - rest // only tickets below this one
		}
		index -= int64(bits.OnesCount8(b))
	}
	return index
}

// Entries calls fn with the entries of those who take part in a frozen draw, in the order of their tickets, some at a time.
// Errors: Unavailable, those of fn.
func (q *Queue) Entries(ctx context.Context, draw *Draw, fn func([]DrawEntry) error) error {
	k := keysOf(draw.Sale)
	for from := int64(0); from < draw.Tickets*32; from += leafPage {
		page, err := q.rdb.GetRange(ctx, k.leaves, from, min(from+leafPage, draw.Tickets*32)-1).Bytes()
		if err != nil {
			return fmt.Errorf("read the entries of sale %s: %w", draw.Sale, err)
		}
		if len(page) == 0 { // nothing that was ever written there: are these the entries of a sale that is no more?
			if archived, err := q.isArchived(ctx, draw.Sale); err != nil || archived {
				return cmp.Or(err, ErrOver(draw.Sale))
			}
		}
		var entries []DrawEntry
		for i := int64(0); i < leafPage/32 && from/32+i < draw.Tickets; i++ {
			if ticket := from/32 + i + 1; !draw.dropped(ticket) {
				entry := DrawEntry{Priority: draw.Priority(ticket)}
				if at := i * 32; at < int64(len(page)) { // whatever was not written is zero
					copy(entry.Leaf[:], page[at:])
				}
				entries = append(entries, entry)
			}
		}
		if err := fn(entries); err != nil {
			return err
		}
	}
	return nil
}

// Draw brings the numbers that a drawn lottery gives to Redis, as Table makes them, and lets the sale go on. It may be
// repeated, also by several processes at once. Errors: Unavailable.
func (q *Queue) Draw(ctx context.Context, draw Draw, table []byte) error {
	k := keysOf(draw.Sale)
	for from := 0; from < len(table); from += tablePage {
		page := table[from:min(from+tablePage, len(table))]
		if err := q.rdb.SetRange(ctx, k.draw, int64(from), string(page)).Err(); err != nil {
			return fmt.Errorf("write the numbers of sale %s: %w", draw.Sale, err)
		}
	}
	v, err := q.run(ctx, "draw", []string{k.meta, k.draw, k.gone, k.leavers}, []any{draw.Tickets, draw.Live})
	if err != nil {
		return err
	}
	r := &reply{script: "draw"}
	if r.int(v) < 0 {
		return q.absent(ctx, draw.Sale)
	}
	return r.err
}

// Table is what the scripts read of a lobby that is put in order, of a sale with that order of its line: four bytes an entry: the number of each ticket, 0 for a dropout, then the
// ticket of each number. It takes tens of milliseconds for a million.
func (d *Draw) Table(by LineOrder) []byte {
	tickets := d.LiveTickets()
	var order []uint32
	if by == Lottery {
		order = DrawOrder(d.Seed, int(d.Live))
	} else {
		for i := range tickets {
			order = append(order, uint32(i))
		}
	}
	RankOrder(order, d.Priorities())
	table := make([]byte, 4*(d.Tickets+d.Live))
	for place, index := range order {
		ticket := tickets[index]
		binary.BigEndian.PutUint32(table[4*(ticket-1):], uint32(place+1))
		binary.BigEndian.PutUint32(table[4*(d.Tickets+int64(place)):], ticket)
	}
	return table
}
