package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"sluice/queue"
)

const (
	// holdEvery is how often a worker tells of what it has in hand.
	holdEvery = time.Second
	// holdAge is from when on it does: what is written within a moment is nobody's concern.
	holdAge = time.Second
)

// holding is what the writers of one process have received from the broker and not acknowledged: RabbitMQ does not count
// that as waiting, and without it an audit would take orders for lost that a slow database keeps.
type holding struct {
	mu    sync.Mutex
	feeds map[*amqpFeed][]inHand // each in the order of the tags
}

type inHand struct {
	tag   uint64
	order queue.Order
	since time.Time
}

func (h *holding) take(feed *amqpFeed, tag uint64, order queue.Order) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.feeds == nil {
		h.feeds = map[*amqpFeed][]inHand{}
	}
	h.feeds[feed] = append(h.feeds[feed], inHand{tag: tag, order: order, since: time.Now()})
}

// settle takes away what a feed has acknowledged, which is all up to that tag.
func (h *holding) settle(feed *amqpFeed, tag uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	held, lives := h.feeds[feed]
	if !lives {
		return
	}
	rest := slices.IndexFunc(held, func(one inHand) bool { return one.tag > tag })
	if rest < 0 {
		rest = len(held)
	}
	h.feeds[feed] = slices.Delete(held, 0, rest)
}

// drop takes away a feed that has ended: what it had is the broker's again.
func (h *holding) drop(feed *amqpFeed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.feeds, feed)
}

// old are the orders that came before a moment, by sale.
func (h *holding) old(before time.Time) map[string][]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	sales := map[string][]string{}
	for _, held := range h.feeds {
		for _, one := range held {
			if !one.since.Before(before) {
				break
			}
			sales[one.order.Sale] = append(sales[one.order.Sale], one.order.ID)
		}
	}
	return sales
}

// holder is the part of the [queue.Queue] that hears of orders in hand.
type holder interface {
	Time(ctx context.Context) (int64, error)
	Hold(ctx context.Context, sale string, at int64, orders []string) error
}

// tellOfHolding tells the audits, until ctx ends, which orders the writers of this process have in hand for longer than a moment.
// It may fail: who cannot reach Redis cannot audit either.
func tellOfHolding(ctx context.Context, broker Broker, q holder) {
	for sleep(ctx, holdEvery) {
		held := broker.Held(time.Now().Add(-holdAge))
		if len(held) == 0 {
			continue
		}
		at, err := q.Time(ctx)
		if err != nil {
			continue
		}
		for sale, orders := range held {
			_ = q.Hold(ctx, sale, at, orders)
		}
	}
}
