package worker

import (
	"context"
	"fmt"
	"sync"

	"sluice/queue"
)

// Notifier lets a grab wait until its order is in the database, for an installation whose Redis does not survive the
// process: a shopper may be told of an order there only once its row is committed. The writer tells the notifier, so
// both must be in one process.
type Notifier struct {
	orders orderReader

	mu      sync.Mutex
	waiting map[string][]chan notice // by order id
}

// orderReader is the part of the Store that a Notifier needs.
type orderReader interface {
	Order(ctx context.Context, id string) (queue.Order, error)
}

// notice is how an order ended up.
type notice struct {
	order queue.Order
	err   error
}

// NewNotifier makes a notifier that looks into the database for what was written before somebody asked.
func NewNotifier(orders orderReader) *Notifier {
	return &Notifier{orders: orders, waiting: map[string][]chan notice{}}
}

// Wait waits until an order is committed and returns it as stored, which may be as rejected. It is an error when the
// order can never be written, when the database cannot be asked, or when ctx ends; in the last two cases the order may
// still be written later.
func (n *Notifier) Wait(ctx context.Context, id string) (queue.Order, error) {
	// The order may have been written already, since its id is known to the caller only after the grab. So ask to be
	// told first and look second: whoever commits after the look finds the request.
	told := make(chan notice, 1)
	n.mu.Lock()
	n.waiting[id] = append(n.waiting[id], told)
	n.mu.Unlock()
	defer n.forget(id, told)

	order, err := n.orders.Order(ctx, id)
	if err == nil {
		return order, nil
	}
	if queue.CodeOf(err) != queue.NoSuchOrder {
		return queue.Order{}, fmt.Errorf("wait for order %s: %w", id, err)
	}
	select {
	case news := <-told:
		return news.order, news.err
	case <-ctx.Done():
		return queue.Order{}, fmt.Errorf("wait for order %s: %w", id, ctx.Err())
	}
}

// forget takes back what Wait asked for.
func (n *Notifier) forget(id string, told chan notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.waiting[id]
	for i, other := range list {
		if other == told {
			list = append(list[:i], list[i+1:]...)
			break
		}
	}
	if len(list) == 0 {
		delete(n.waiting, id)
	} else {
		n.waiting[id] = list
	}
}

// tell answers those who wait for an order. It never blocks: each of them is told once.
func (n *Notifier) tell(id string, news notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, told := range n.waiting[id] {
		told <- news
	}
	delete(n.waiting, id)
}
