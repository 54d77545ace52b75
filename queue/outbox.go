package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/trace"
	"sluice/words"
)

// relayGroup is the consumer group that all relays of a sale share.
const relayGroup = "relay"

// Outbox is the stream of a sale's orders on their way to the broker, read as one relay. Nothing is ever trimmed: an
// entry goes only when it is Done.
type Outbox struct {
	q        *Queue
	sale     string
	consumer string
}

// Entry is an order in the outbox.
type Entry struct {
	ID    string // of the stream
	Order Order
}

// Outbox opens the outbox of a sale for the relay with that name. Names of relays that run at the same time must
// differ. It does not call Redis.
func (q *Queue) Outbox(sale, consumer string) *Outbox {
	return &Outbox{q: q, sale: sale, consumer: consumer}
}

// Read returns entries that no relay has read, at most max, and waits up to block for the first (0 = does not wait).
// No entries and no error mean that there are none. Errors: Unavailable.
func (o *Outbox) Read(ctx context.Context, max int, block time.Duration) ([]Entry, error) {
	if block == 0 {
		block = -1 // the library's word for not waiting
	}
	for attempt := 0; ; attempt++ {
		streams, err := o.q.opts.Blocking.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: relayGroup, Consumer: o.consumer, Streams: []string{keysOf(o.sale).outbox, ">"},
			Count: int64(max), Block: block,
		}).Result()
		switch {
		case errors.Is(err, redis.Nil), redis.HasErrorPrefix(err, "UNBLOCKED"): // by the end of the stream
			return nil, nil
		case err != nil && noGroup(err) && attempt == 0:
			made, err := o.create(ctx)
			if err != nil {
				return nil, err
			}
			if !made {
				return nil, rest(ctx, block)
			}
			continue
		case err != nil:
			return nil, fmt.Errorf("read the outbox of sale %s: %w", o.sale, err)
		case len(streams) == 0:
			return nil, nil
		}
		return o.entries(streams[0].Messages), nil
	}
}

// Claim takes over entries that were read at least minIdle ago and are not done: those of relays that died, and our own
// that were not finished. Errors: Unavailable.
func (o *Outbox) Claim(ctx context.Context, minIdle time.Duration, max int) ([]Entry, error) {
	messages, _, err := o.q.rdb.XAutoClaim(ctx, &redis.XAutoClaimArgs{
		Stream: keysOf(o.sale).outbox, Group: relayGroup, Consumer: o.consumer, MinIdle: minIdle, Start: "0", Count: int64(max),
	}).Result()
	if err != nil && noGroup(err) {
		_, err := o.create(ctx)
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("claim from the outbox of sale %s: %w", o.sale, err)
	}
	return o.entries(messages), nil
}

// Done removes entries that the broker has confirmed. Errors: Unavailable; repeating it does no harm.
func (o *Outbox) Done(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	key := keysOf(o.sale).outbox
	_, err := o.q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.XAck(ctx, key, relayGroup, ids...)
		p.XDel(ctx, key, ids...)
		return nil
	})
	if err != nil {
		return fmt.Errorf("clear %s from the outbox of sale %s: %w", words.Plural(len(ids), "entry", "entries"), o.sale, err)
	}
	return nil
}

// create makes the group, from the start of the stream: a group that was lost must not skip what waits in it. Of a sale
// that is archived it makes none: its relays end a moment later, and must not leave a stream behind.
func (o *Outbox) create(ctx context.Context) (made bool, err error) {
	k := keysOf(o.sale)
	if archived, err := o.q.isArchived(ctx, o.sale); err != nil || archived {
		return false, err
	}
	err = o.q.rdb.XGroupCreateMkStream(ctx, k.outbox, relayGroup, "0").Err()
	if err != nil && !redis.HasErrorPrefix(err, "BUSYGROUP") {
		return false, fmt.Errorf("create the relay group of sale %s: %w", o.sale, err)
	}
	return true, nil
}

// rest waits as long as a reading would that finds nothing.
func rest(ctx context.Context, block time.Duration) error {
	timer := time.NewTimer(max(0, block))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// entries reads what the grab script wrote. An entry that somebody else put there cannot be read; it stays, is logged
// whenever it comes by, and holds up nobody's order.
func (o *Outbox) entries(messages []redis.XMessage) []Entry {
	entries := make([]Entry, 0, len(messages))
	for _, m := range messages {
		if m.Values == nil {
			continue // claimed, but deleted meanwhile
		}
		r := &reply{script: "outbox of sale " + o.sale}
		user := r.text(m.Values["user"])
		order := r.mark(o.sale, user, r.text(m.Values["mark"]))
		if r.err != nil {
			o.q.opts.Logger.Error("an entry of the outbox is no order; remove it with XDEL when it is understood",
				"sale", o.sale, "entry", m.ID, "error", r.err)
			continue
		}
		context, _ := m.Values["trace"].(string) // most have none
		order.Trace = trace.Valid(context)
		entries = append(entries, Entry{ID: m.ID, Order: *order})
	}
	return entries
}

// OutboxLen is how many orders wait in the outbox of a sale. Errors: Unavailable.
func (q *Queue) OutboxLen(ctx context.Context, sale string) (int64, error) {
	n, err := q.rdb.XLen(ctx, keysOf(sale).outbox).Result()
	if err != nil {
		return 0, fmt.Errorf("measure the outbox of sale %s: %w", sale, err)
	}
	return n, nil
}

// OutboxIDs are the ids of the orders that wait in the outbox of a sale. Errors: Unavailable.
func (q *Queue) OutboxIDs(ctx context.Context, sale string) (map[string]bool, error) {
	const page = 1000
	ids, from := map[string]bool{}, "-"
	for {
		messages, err := q.rdb.XRangeN(ctx, keysOf(sale).outbox, from, "+", page).Result()
		if err != nil {
			return nil, fmt.Errorf("read the outbox of sale %s: %w", sale, err)
		}
		for _, e := range q.Outbox(sale, "").entries(messages) {
			ids[e.Order.ID] = true
		}
		if len(messages) < page {
			return ids, nil
		}
		from = "(" + messages[len(messages)-1].ID
	}
}

func noGroup(err error) bool { return strings.HasPrefix(err.Error(), "NOGROUP") }
