package worker

import (
	"fmt"
	"math"

	amqp "github.com/rabbitmq/amqp091-go"
)

// deliveryLimit is how often RabbitMQ delivers an order before it takes it for one that kills its writers. A writer
// never sends a message back, so each delivery but the last one ended with a lost session; so many of these in a row
// are no accident, yet a long outage of the database, or a bad day of the network, stays far below it.
const deliveryLimit = 100

// orders is the name of the exchange and the queue of orders to be written.
func (a *AMQP) orders() string { return a.opts.Prefix + "sluice.orders" }

// dead is the name of the exchange and the queue of what cannot be written.
func (a *AMQP) dead() string { return a.opts.Prefix + "sluice.dead" }

// topology is a queue and the exchange of the same name that leads to it.
type topology struct {
	name string
	args amqp.Table
	dead bool // it holds what could not be written
}

// topologies are those of dead letters and of orders; the first has to be there before the second.
func (a *AMQP) topologies() []topology {
	orders := amqp.Table{
		"x-queue-type": "quorum",
		// A full queue refuses what comes, which stays in its outbox. The other way is to drop the oldest orders.
		"x-overflow":                "reject-publish",
		"x-delivery-limit":          int64(deliveryLimit),
		"x-dead-letter-exchange":    a.dead(),
		"x-dead-letter-routing-key": a.dead(),
		"x-dead-letter-strategy":    "at-least-once",
	}
	if a.opts.MaxLength > 0 {
		orders["x-max-length"] = a.opts.MaxLength
	}
	dead := amqp.Table{
		"x-queue-type": "quorum",
		"x-overflow":   "reject-publish",
		// Looking at a dead letter is a delivery, and RabbitMQ 4 would drop it after 20 of them.
		"x-delivery-limit": int64(math.MaxInt32),
	}
	return []topology{{name: a.dead(), args: dead, dead: true}, {name: a.orders(), args: orders}}
}

// declare makes the exchanges and queues, or checks those that are there. Whoever connects first makes them.
func (a *AMQP) declare(conn *amqp.Connection) error {
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open a channel: %w", err)
	}
	for _, queue := range a.topologies() {
		if err := ch.ExchangeDeclare(queue.name, amqp.ExchangeDirect, true, false, false, false, nil); err != nil {
			return fmt.Errorf("declare exchange %s: %w", queue.name, err)
		}
		if _, err := ch.QueueDeclare(queue.name, true, false, false, false, queue.args); err != nil {
			return fmt.Errorf("declare queue %s: %w", queue.name, err)
		}
		if err := ch.QueueBind(queue.name, queue.name, queue.name, false, nil); err != nil {
			return fmt.Errorf("bind queue %s: %w", queue.name, err)
		}
	}
	if err := ch.Close(); err != nil {
		return fmt.Errorf("close a channel: %w", err)
	}
	return nil
}
