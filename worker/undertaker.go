package worker

import (
	"context"
	"errors"
	"fmt"

	"sluice/queue"
)

// Undertaker looks after dead letters for an operator: orders that hold stock in Redis and that could not be written.
type Undertaker struct {
	broker Broker
	store  *Store
	queue  adopter
}

// NewUndertaker makes an undertaker. store and q may be nil where nothing is dropped.
func NewUndertaker(broker Broker, store *Store, q *queue.Queue) *Undertaker {
	return &Undertaker{broker: broker, store: store, queue: q}
}

// List returns the dead letters, the oldest first, at most max.
func (u *Undertaker) List(ctx context.Context, max int) ([]DeadLetter, error) {
	return u.broker.Letters(ctx, max)
}

// Retry sends an order to the writers again. A message that cannot be read is Invalid, and stays; so does everything
// when there is no such letter, which is NoSuchOrder.
func (u *Undertaker) Retry(ctx context.Context, id string) error {
	return u.settle(ctx, id, func(letter DeadLetter) error {
		if letter.Err != nil {
			return &queue.Error{Code: queue.Invalid, Message: fmt.Sprintf(
				"message %s cannot be read as an order, now or later; it can only be dropped", id)}
		}
		settled := make(chan error, 1)
		if err := u.broker.Publish(ctx, letter.Order, func(err error) { settled <- err }); err != nil {
			return err
		}
		select {
		case err := <-settled:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// Drop gives up on an order: it is stored as rejected, for good, its units go back to the sale, and its shopper is told. A
// message that cannot be read is removed; if it held units, the audit goes on showing them. An order that was written
// after all stays as it is. Errors: NoSuchOrder when there is no such letter.
func (u *Undertaker) Drop(ctx context.Context, id string) error {
	return u.settle(ctx, id, func(letter DeadLetter) error {
		if letter.Err != nil {
			return nil
		}
		order, err := u.store.Reject(ctx, letter.Order, RejectedDropped)
		switch {
		case IsPermanent(err): // the database can hold no row of it, so nothing can ever accept it either
			order = letter.Order
			order.Status = queue.Rejected
		case err != nil:
			return err
		}
		if order.Status.Live() {
			return nil
		}
		return settle(ctx, u.queue, u.store, order.Sale, []queue.Order{order})
	})
}

func (u *Undertaker) settle(ctx context.Context, id string, handle func(DeadLetter) error) error {
	err := u.broker.Settle(ctx, id, handle)
	if errors.Is(err, errNoLetter) {
		return &queue.Error{Code: queue.NoSuchOrder, Message: fmt.Sprintf("there is no dead letter of order %q", id)}
	}
	return err
}
