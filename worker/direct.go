package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"sluice/queue"
)

// directRoom is how many orders may lie between the relays and the writers of one process. Relays wait beyond it.
const directRoom = 4096

// Direct hands orders from relays to writers inside one process. It keeps nothing: an order counts as safe, and leaves
// the outbox, only when it is written.
type Direct struct {
	orders chan Delivery

	mu   sync.Mutex
	dead []DeadLetter
}

// NewDirect makes a broker for one process.
func NewDirect() *Direct {
	return &Direct{orders: make(chan Delivery, directRoom)}
}

// Publish implements [Broker]. It returns when a writer of this process will get the order; settled is called when that
// writer has acknowledged it.
func (d *Direct) Publish(ctx context.Context, order queue.Order, settled func(error)) error {
	select {
	case d.orders <- Delivery{Order: order, ID: order.ID, settled: settled}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Consume implements [Broker]. All feeds share what is published. prefetch has no meaning, since a delivery is nobody's
// until it is received.
func (d *Direct) Consume(context.Context, int) (Feed, error) {
	return &directFeed{orders: d.orders, lost: make(chan struct{})}, nil
}

// Bury implements [Broker]. Dead letters are kept as long as the process lives.
func (d *Direct) Bury(_ context.Context, letter DeadLetter) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = append(d.dead, letter)
	return nil
}

// DeadLetters implements [Broker].
func (d *Direct) DeadLetters(context.Context) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return int64(len(d.dead)), nil
}

// Letters implements [Broker].
func (d *Direct) Letters(_ context.Context, most int) ([]DeadLetter, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.dead[:min(len(d.dead), most)]), nil
}

// Settle implements [Broker].
func (d *Direct) Settle(_ context.Context, id string, handle func(DeadLetter) error) error {
	d.mu.Lock()
	i := slices.IndexFunc(d.dead, func(l DeadLetter) bool { return l.ID == id })
	if i < 0 {
		d.mu.Unlock()
		return errNoLetter
	}
	letter := d.dead[i]
	d.mu.Unlock()
	if err := handle(letter); err != nil { // not under the lock: it may bury the letter again
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if i = slices.IndexFunc(d.dead, func(l DeadLetter) bool { return l.ID == id }); i >= 0 {
		d.dead = slices.Delete(d.dead, i, i+1)
	}
	return nil
}

// Waiting implements [Broker].
func (d *Direct) Waiting(context.Context) (int64, error) { return int64(len(d.orders)), nil }

// Held implements [Broker]. What is in hand here is still in its outbox.
func (d *Direct) Held(time.Time) map[string][]string { return nil }

// directFeed is a writer's end of a Direct.
type directFeed struct {
	orders chan Delivery
	lost   chan struct{} // never closed
}

func (f *directFeed) Deliveries() <-chan Delivery { return f.orders }

func (f *directFeed) Lost() <-chan struct{} { return f.lost }

func (f *directFeed) Ack(batch []Delivery) error {
	for _, delivery := range batch {
		delivery.settled(nil)
	}
	return nil
}

// Close gives the batch back to the relays, which still have it in their outbox.
func (f *directFeed) Close(batch []Delivery) {
	for _, delivery := range batch {
		delivery.settled(errSession)
	}
}
