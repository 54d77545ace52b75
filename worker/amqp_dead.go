package worker

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Letters implements [Broker].
func (a *AMQP) Letters(ctx context.Context, most int) ([]DeadLetter, error) {
	var letters []DeadLetter
	err := a.eachLetter(ctx, func(letter DeadLetter, _ func() error) (bool, error) {
		letters = append(letters, letter)
		return len(letters) < most, nil
	})
	return letters, err
}

// Settle implements [Broker].
func (a *AMQP) Settle(ctx context.Context, id string, handle func(DeadLetter) error) error {
	found := false
	err := a.eachLetter(ctx, func(letter DeadLetter, remove func() error) (bool, error) {
		if letter.ID != id {
			return true, nil
		}
		found = true
		if err := handle(letter); err != nil {
			return false, err
		}
		return false, remove()
	})
	if err == nil && !found {
		return errNoLetter
	}
	return err
}

// eachLetter takes the dead letters off their queue one after the other, without acknowledging, until fn returns false or
// an error. With the end of the connection RabbitMQ puts back all that was not removed.
func (a *AMQP) eachLetter(ctx context.Context, fn func(letter DeadLetter, remove func() error) (more bool, err error)) error {
	conn, err := a.dial(ctx, "dead letters")
	if err != nil {
		return err
	}
	defer conn.end()
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open a channel: %w", err)
	}
	for {
		m, found, err := ch.Get(a.dead(), false)
		if err != nil {
			return fmt.Errorf("read a dead letter: %w", err)
		}
		if !found || ctx.Err() != nil {
			return ctx.Err()
		}
		more, err := fn(letterOf(m), func() error {
			if err := m.Ack(false); err != nil {
				return fmt.Errorf("remove a dead letter: %w", err)
			}
			return ch.Close() // waits until RabbitMQ has read the acknowledgement
		})
		if err != nil || !more {
			return err
		}
	}
}

// letterOf reads a message of the queue of dead letters: one that Bury put there, or one that RabbitMQ itself gave up on.
func letterOf(m amqp.Delivery) DeadLetter {
	order, err := decodeOrder(m.Body)
	order.Trace = traceOf(m.Headers)
	letter := DeadLetter{Delivery: Delivery{Order: order, Err: err, ID: m.MessageId, Body: m.Body}, At: m.Timestamp.UnixMilli()}
	letter.Reason, _ = m.Headers["x-reason"].(string)
	if letter.Reason == "" {
		letter.Reason = "RabbitMQ delivered it too often"
		if why, ok := m.Headers["x-first-death-reason"].(string); ok && why != "delivery_limit" {
			letter.Reason = "RabbitMQ put it aside: " + why
		}
	}
	return letter
}
