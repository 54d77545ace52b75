package worker

import (
	"context"
	"log/slog"
	"time"

	"sluice/fault"
	"sluice/queue"
)

// Cashier takes payments and cancellations of orders that have a row. The database decides; Redis is told right after,
// and where that fails the [Sweeper] does it.
type Cashier struct {
	queue decided
	store *Store
	log   *slog.Logger
}

// decided is the part of the [queue.Queue] that learns what the database decided.
type decided interface {
	adopter
	Time(ctx context.Context) (int64, error)
}

// NewCashier makes a cashier.
func NewCashier(q *queue.Queue, store *Store, log *slog.Logger) *Cashier {
	return &Cashier{queue: q, store: store, log: log}
}

// Pay takes the demonstration payment of an order; paying again changes nothing. Errors: as [Cashier.Payment].
func (c *Cashier) Pay(ctx context.Context, order string) (queue.Order, error) {
	return c.Payment(ctx, "demo-"+order, order, PaymentPaid)
}

// Payment records what a payment provider says about an order, once for each event; see [Store.Payment]. It blocks on
// the database, and on Redis, whose clock says when an order was paid; while that does not answer, the clock of this machine
// does, since nothing is decided by it. Errors: Invalid for an unknown status, NoSuchOrder,
// Conflict with the order when the money must go back.
func (c *Cashier) Payment(ctx context.Context, event, order, status string) (queue.Order, error) {
	switch status {
	case PaymentPaid, PaymentFailed, PaymentRefunded:
	default:
		return queue.Order{}, &queue.Error{Code: queue.Invalid, Message: "status must be paid, failed or refunded"}
	}
	at, err := c.queue.Time(ctx)
	if err != nil {
		at = time.Now().UnixMilli()
	}
	fault.Point("cashier.asked")
	paid, err := c.store.Payment(ctx, Payment{Event: event, Order: order, Status: status, At: at})
	fault.Point("cashier.paid")
	if err == nil && paid.Status == queue.Paid {
		c.settle(ctx, paid)
	}
	return paid, err
}

// Cancel ends an order that is not paid; its units go back to the sale. Cancelling again changes nothing. Errors:
// NoSuchOrder, Conflict with the order when it is paid, or ended in another way.
func (c *Cashier) Cancel(ctx context.Context, order string) (queue.Order, error) {
	cancelled, err := c.store.Transition(ctx, order, queue.Confirmed, queue.Cancelled, 0)
	if queue.CodeOf(err) == queue.Conflict {
		if err = nil; cancelled.Status != queue.Cancelled {
			err = &queue.Error{Code: queue.Conflict, Message: "the order is " + string(cancelled.Status) + " and cannot be cancelled any more"}
		}
	}
	fault.Point("cashier.cancelled")
	if err == nil {
		c.settle(ctx, cancelled)
	}
	return cancelled, err
}

// settleTimeout bounds telling Redis within a request: the database has decided, and the sweeper tells Redis anyway.
const settleTimeout = 2 * time.Second

func (c *Cashier) settle(ctx context.Context, order queue.Order) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := settle(ctx, c.queue, c.store, order.Sale, []queue.Order{told(ctx, order)}); err != nil {
		c.log.Info("redis will hear of an order later", "sale", order.Sale, "order", order.ID, "request", order.RequestID, "status", string(order.Status), "error", err)
	}
}

// settle tells Redis what became of a sale's orders, and marks their moves as done. All of it may be repeated.
func settle(ctx context.Context, q adopter, store movesDone, sale string, orders []queue.Order) error {
	var live, ended []queue.Order
	ids := make([]string, len(orders))
	for i, order := range orders {
		ids[i] = order.ID
		if order.Status.Live() {
			live = append(live, order)
		} else {
			ended = append(ended, order)
		}
	}
	if len(live) > 0 {
		if _, err := q.Adopt(ctx, sale, live); err != nil {
			return err
		}
	}
	if len(ended) > 0 {
		if _, err := q.Release(ctx, sale, ended); err != nil {
			return err
		}
	}
	fault.Point("settle.told")
	err := store.MoveDone(ctx, ids)
	fault.Point("settle.done")
	return err
}

// movesDone is the part of the [Store] that settle needs.
type movesDone interface {
	MoveDone(ctx context.Context, orderIDs []string) error
}
