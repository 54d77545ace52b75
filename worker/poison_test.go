package worker

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"sluice/queue"
)

// A poison message that somebody put on the queue by hand, and one row among 500 that the database itself rejects: in the
// same pass the other 499 are committed, and both are dead letters with their reasons.
func TestOneBadRowAndAPoisonMessageDoNotPoisonTheBatch(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		m := newMarket(t, redisURL(t), s, 1000, 1000, false)
		broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
		var orders []queue.Order
		for i := range 500 {
			order := grab(m.sale, i)
			order.Item = "main"
			if i == 250 {
				order.User = strings.Repeat("x", 129) // no column takes it
			}
			orders = append(orders, order)
		}
		publishAll(t, broker, orders[:100]...)
		broker.send("poison", []byte(`{"v":1,"id":`))
		publishAll(t, broker, orders[100:]...)

		writer := newTestWriter(broker, newLedger())
		writer.store, writer.queue = s, m
		feed := consume(t, broker, 1002)
		onePass(t, writer, feed, 501)
		wantEmpty(t, broker)
		m.wantRows(append(orders[:250:250], orders[251:]...))
		reasons := map[string]string{}
		for _, letter := range broker.take(broker.dead()) {
			reason, _ := amqp.Table(letter.Headers)["x-reason"].(string)
			reasons[letter.MessageId] = reason
		}
		if len(reasons) != 2 || reasons[orders[250].ID] == "" || !strings.Contains(reasons["poison"], "not an order in JSON") {
			t.Errorf("the dead letters are %q", reasons)
		}
	})
}
