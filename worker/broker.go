package worker

import (
	"context"
	"errors"
	"time"

	"sluice/queue"
)

// Broker carries orders from relays to writers. It keeps what it has answered for, and delivers it at least once.
// [AMQP] and [Direct] are brokers.
type Broker interface {
	// Publish hands over an order. When it returns nil, settled is called once, from any goroutine, possibly before
	// Publish returns: with nil when the order is safe without the outbox, or with an error when that is unknown or
	// not so. settled must not block. When Publish returns an error, the order was not handed over, and settled is
	// not called. Publish waits while too much is unsettled, until ctx ends.
	Publish(ctx context.Context, order queue.Order, settled func(error)) error

	// Consume begins a session in which at most prefetch deliveries are unacknowledged at any time.
	Consume(ctx context.Context, prefetch int) (Feed, error)

	// Bury puts aside what can never be written. When it returns nil, the broker keeps it.
	Bury(ctx context.Context, letter DeadLetter) error

	// DeadLetters counts what was put aside.
	DeadLetters(ctx context.Context) (int64, error)

	// Letters returns what was put aside, the oldest first, at most max. It changes nothing; while it runs, nobody else
	// sees these letters.
	Letters(ctx context.Context, max int) ([]DeadLetter, error)

	// Settle gives the letter with that id to handle, and removes it when handle returns nil. It is errNoLetter when there
	// is none. When the process dies in between, the letter is there as before, so handle may come again.
	Settle(ctx context.Context, id string, handle func(DeadLetter) error) error

	// Waiting counts the orders that lie in the broker and that no writer has in hand.
	Waiting(ctx context.Context) (int64, error)

	// Held are the ids, by sale, of the orders that writers of this process were delivered before a moment and have not
	// acknowledged. Orders that are still in their outbox need not be among them.
	Held(before time.Time) map[string][]string
}

// Feed is one session of a consumer. It belongs to one goroutine. A session that ends is never resumed: what was
// delivered in it and not acknowledged is delivered again, in another session, and can be acknowledged only there.
type Feed interface {
	// Deliveries is what the broker delivers. It is closed after the session has ended.
	Deliveries() <-chan Delivery

	// Lost is closed when the session has ended.
	Lost() <-chan struct{}

	// Ack acknowledges a batch: all that was received from Deliveries since the last batch, in that order. It is an
	// error, and changes nothing, when the session has ended or a delivery is of another one.
	Ack(batch []Delivery) error

	// Close ends the session and gives back the batch in hand.
	Close(batch []Delivery)
}

// Delivery is a message out of the broker.
type Delivery struct {
	Order queue.Order
	Err   error  // why the message cannot be read, for good; Order is empty then
	ID    string // the message id, which is the order's id; whatever the sender wrote when Err is set
	Body  []byte // as it came; nil when there was no message but an Order only

	feed    Feed        // the session that it belongs to; nil with Direct
	tag     uint64      // its number in that session
	settled func(error) // with Direct: tells the relay
}

// DeadLetter is a message that can never be written, and why.
type DeadLetter struct {
	Delivery
	Reason string // one sentence
	At     int64  // when it was put aside, ms since the epoch
}

// Why a broker does not answer for an order. Any other error leaves it unknown whether the broker has the order.
var (
	// errRefused says that the broker refused the order; it has no room for it.
	errRefused = errors.New("the broker refused the order")
	// errReturned says that the broker has no queue for the order.
	errReturned = errors.New("the broker has no queue for the order")
	// errBlocked says that the broker has raised an alarm and takes nothing until it is over. Nothing was sent.
	errBlocked = errors.New("the broker takes no messages because of an alarm")
	// errNoLetter says that there is no dead letter of that id.
	errNoLetter = errors.New("there is no such dead letter")
	// errSession says that a session has ended.
	errSession = errors.New("the session with the broker has ended")
)
