package worker

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"sluice/fault"
	"sluice/queue"
)

// What a payment event may say.
const (
	PaymentPaid     = "paid"     // the money is there
	PaymentFailed   = "failed"   // it is not; the order stays as it is
	PaymentRefunded = "refunded" // it went back: nothing is due any more
)

// Payment is what a payment provider says about an order.
type Payment struct {
	Event  string // of the provider; the same event is taken into account once
	Order  string
	Status string // one of the constants above
	At     int64  // Redis time, ms since the epoch
}

// Payment records an event and, when the money is there, moves a confirmed order to paid, in one transaction. It returns
// the order as it then is. Money for an order that cannot be paid (any more) is recorded as refund_due, and so is a second
// payment of the same order. An event that was recorded before changes nothing.
//
// Errors: NoSuchOrder, and then nothing is recorded; Conflict, with the order, when money came for an order that was not
// waiting for it, also when the event is repeated.
func (s *Store) Payment(ctx context.Context, p Payment) (queue.Order, error) {
	var order queue.Order
	var refundDue bool
	err := s.write(ctx, func(tx *sqlx.Tx) error {
		var err error
		order, refundDue, err = s.payment(ctx, tx, p)
		return err
	})
	if err == nil && refundDue && order.Status != queue.Paid {
		err = &queue.Error{Code: queue.Conflict, Message: fmt.Sprintf(
			"the order is %s and cannot be paid any more; the payment is to be refunded", order.Status)}
		if order.Status.Live() {
			err = &queue.Error{Code: queue.Conflict, Message: "the order needs no payment; this one is to be refunded"}
		}
	}
	if err != nil {
		return order, fmt.Errorf("record payment %s of order %s: %w", p.Event, p.Order, err)
	}
	return order, nil
}

func (s *Store) payment(ctx context.Context, tx *sqlx.Tx, p Payment) (order queue.Order, refundDue bool, err error) {
	var known struct {
		Order  string `db:"order_id"`
		Refund bool   `db:"refund_due"`
	}
	err = tx.GetContext(ctx, &known, tx.Rebind("SELECT order_id, refund_due FROM payments WHERE event_id = ?"), p.Event)
	if err == nil && known.Order != p.Order {
		return order, false, &queue.Error{Code: queue.Conflict, Message: "this event was about another order before"}
	}
	recorded := err == nil
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return order, false, err
	}
	if order, err = readOrder(ctx, tx, p.Order); err != nil || recorded {
		return order, known.Refund, err
	}
	if p.Status == PaymentPaid {
		refundDue = true
		if order.PayBy > 0 {
			// Of a payment and an expiry at the same moment, the first one to get here wins.
			order, err = s.transition(ctx, tx, p.Order, queue.Confirmed, queue.Paid, p.At)
			refundDue = queue.CodeOf(err) == queue.Conflict
			if err != nil && !refundDue {
				return order, false, err
			}
		}
	}
	if p.Status == PaymentRefunded {
		if _, err := tx.ExecContext(ctx, tx.Rebind("UPDATE payments SET refund_due = 0 WHERE order_id = ?"), p.Order); err != nil {
			return order, false, err
		}
	}
	fault.Point("payment.recording")
	due := 0
	if refundDue {
		due = 1
	}
	_, err = tx.ExecContext(ctx, tx.Rebind(
		"INSERT INTO payments (event_id, order_id, status, refund_due, created_at) VALUES (?, ?, ?, ?, ?)"),
		p.Event, p.Order, p.Status, due, now())
	return order, refundDue, err
}
