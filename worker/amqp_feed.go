package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"sluice/words"
)

// Consume implements [Broker]. Each feed has a connection of its own.
func (a *AMQP) Consume(ctx context.Context, prefetch int) (Feed, error) {
	conn, err := a.dial(ctx, "writer")
	if err != nil {
		return nil, err
	}
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Qos(prefetch, 0, false)
	}
	var deliveries <-chan amqp.Delivery
	if err == nil {
		deliveries, err = ch.Consume(a.orders(), "", false, false, false, false, nil)
	}
	if err != nil {
		conn.end()
		return nil, fmt.Errorf("consume queue %s: %w", a.orders(), err)
	}
	feed := &amqpFeed{
		holding:    &a.holding,
		conn:       conn,
		ch:         ch,
		deliveries: make(chan Delivery, prefetch),
		lost:       make(chan struct{}),
	}
	go feed.read(deliveries)
	return feed, nil
}

// amqpFeed is one consumer on a connection of its own. Its channel dies with it, so an acknowledgement that comes late
// fails and can hit nothing that another feed was delivered.
type amqpFeed struct {
	holding    *holding
	conn       link
	ch         *amqp.Channel
	deliveries chan Delivery
	lost       chan struct{}
	closing    sync.Once
}

// read turns messages into deliveries until RabbitMQ or the connection ends the consumer. It never waits for the owner
// of the feed: there is room for all that RabbitMQ delivers before it wants an acknowledgement.
func (f *amqpFeed) read(messages <-chan amqp.Delivery) {
	for m := range messages {
		order, err := decodeOrder(m.Body)
		if err == nil {
			f.holding.take(f, m.DeliveryTag, order)
		}
		order.Trace = traceOf(m.Headers)
		f.deliveries <- Delivery{Order: order, Err: err, ID: m.MessageId, Body: m.Body, feed: f, tag: m.DeliveryTag}
	}
	f.holding.drop(f)
	// RabbitMQ also ends a consumer without its connection, when the queue is deleted. Then half a session is left.
	f.closing.Do(func() { f.conn.end() })
	close(f.lost)
	close(f.deliveries)
}

func (f *amqpFeed) Deliveries() <-chan Delivery { return f.deliveries }

func (f *amqpFeed) Lost() <-chan struct{} { return f.lost }

func (f *amqpFeed) Ack(batch []Delivery) error {
	if len(batch) == 0 {
		return nil
	}
	for _, delivery := range batch {
		if delivery.feed != Feed(f) {
			return errors.New("acknowledge: a delivery is of another session")
		}
	}
	if err := f.ch.Ack(batch[len(batch)-1].tag, true); err != nil {
		return fmt.Errorf("acknowledge %s: %w", words.Plural(len(batch), "delivery", "deliveries"), err)
	}
	f.holding.settle(f, batch[len(batch)-1].tag)
	return nil
}

// Close closes the connection, upon which RabbitMQ delivers again what is not acknowledged.
func (f *amqpFeed) Close([]Delivery) {
	f.closing.Do(func() { f.conn.end() })
}
