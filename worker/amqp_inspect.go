package worker

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// BrokerFacts are what a RabbitMQ says of itself, as far as it matters to orders.
type BrokerFacts struct {
	Product string
	Version string
	Blocked string  // the alarm for which it takes no messages; "" = it takes them
	Away    []error // each a [queue.Away] of a node that does not answer, while another one does
	Queues  []QueueFacts
}

// QueueFacts are of a queue that this package uses.
type QueueFacts struct {
	Name      string
	There     bool // whoever connects first makes those that are not
	Dead      bool // it is the one of orders that could not be written
	Messages  int
	Consumers int
	Differs   string // how it was made with other arguments than it has to have; "" = it was not
}

// Inspect asks a node of RabbitMQ about itself and about the queues of orders, makes none of them, and tries whether the other
// nodes answer. It blocks for twice dialTimeout at most, for each node that is away.
func (a *AMQP) Inspect(ctx context.Context) (BrokerFacts, error) {
	var f BrokerFacts
	l, err := a.dialAnd(ctx, "doctor", func(conn *amqp.Connection) error {
		f = BrokerFacts{} // without what a node said that then was away
		f.Product, _ = conn.Properties["product"].(string)
		f.Version, _ = conn.Properties["version"].(string)
		for _, queue := range a.topologies() {
			facts, err := inspectQueue(conn, queue)
			if err != nil {
				return err
			}
			f.Queues = append(f.Queues, facts)
		}
		var err error
		f.Blocked, err = inspectAlarm(ctx, conn)
		return err
	})
	if err != nil {
		return f, err
	}
	l.end()
	f.Away = a.nodes.others(func(url string) error {
		other, err := a.dialNode(ctx, url, "doctor", func(*amqp.Connection) error { return nil })
		if err == nil {
			other.end()
		}
		return err
	})
	return f, nil
}

// inspectQueue declares a queue only where it is there already: that changes nothing, and is refused where one of its
// arguments is another. A refusal ends the channel, so each question has its own.
func inspectQueue(conn *amqp.Connection, queue topology) (QueueFacts, error) {
	f := QueueFacts{Name: queue.name, Dead: queue.dead}
	found, refusal, err := ask(conn, func(ch *amqp.Channel) (amqp.Queue, error) {
		return ch.QueueDeclarePassive(queue.name, true, false, false, false, nil)
	})
	if err != nil || refusal != nil && refusal.Code == amqp.NotFound {
		return f, err
	}
	if refusal != nil {
		return f, fmt.Errorf("look at queue %s: %w", queue.name, refusal)
	}
	f.There, f.Messages, f.Consumers = true, found.Messages, found.Consumers
	_, refusal, err = ask(conn, func(ch *amqp.Channel) (amqp.Queue, error) {
		return ch.QueueDeclare(queue.name, true, false, false, false, queue.args)
	})
	if refusal != nil && refusal.Code == amqp.PreconditionFailed {
		f.Differs = refusal.Reason
	} else if refusal != nil {
		return f, fmt.Errorf("look at queue %s: %w", queue.name, refusal)
	}
	return f, err
}

// ask asks one question on a channel of its own; what RabbitMQ refuses is told apart from what went wrong.
func ask(conn *amqp.Connection, question func(*amqp.Channel) (amqp.Queue, error)) (amqp.Queue, *amqp.Error, error) {
	ch, err := conn.Channel()
	if err != nil {
		return amqp.Queue{}, nil, fmt.Errorf("open a channel: %w", err)
	}
	queue, err := question(ch)
	var refusal *amqp.Error
	if errors.As(err, &refusal) {
		return queue, refusal, nil
	}
	if err != nil {
		return queue, nil, err
	}
	return queue, nil, ch.Close()
}

// inspectAlarm publishes a message that leads nowhere: while an alarm is raised, RabbitMQ says so instead of confirming
// it.
func inspectAlarm(ctx context.Context, conn *amqp.Connection) (string, error) {
	alarms := conn.NotifyBlocked(make(chan amqp.Blocking, 1))
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		return "", fmt.Errorf("open a channel with confirms: %w", err)
	}
	answer, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", "sluice.nowhere", false, false, amqp.Publishing{})
	if err != nil {
		return "", fmt.Errorf("publish: %w", err)
	}
	select {
	case alarm, ok := <-alarms:
		if ok && alarm.Active {
			return alarm.Reason, nil
		}
		return "", errSession
	case <-answer.Done():
		return "", nil
	}
}
