package worker

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"sluice/queue"
)

func TestAMQPMessageSaysInAHeaderWhatItIsAPartOf(t *testing.T) {
	t.Parallel()
	const context = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if headers := headersOf(queue.Order{}); headers != nil {
		t.Errorf("an order that nobody follows has headers %v", headers)
	}
	wantSame(t, "the context", traceOf(headersOf(queue.Order{Trace: context})), context)
	for name, headers := range map[string]amqp.Table{
		"a message from before": nil,
		"no text":               {headerTrace: int64(7)},
		"something else":        {headerTrace: "00-zz"},
	} {
		wantSame(t, "the context of "+name, traceOf(headers), "")
	}
}

func TestADeadLetterKeepsWhatItIsAPartOf(t *testing.T) {
	t.Parallel()
	const context = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	r := newRabbit(t, rabbitURL(t), AMQPOptions{})
	order := grab("phone", 1)
	order.Trace = context
	body, err := encodeOrder(order)
	if err != nil {
		t.Fatal(err)
	}
	letter := DeadLetter{Delivery: Delivery{Order: order, ID: order.ID, Body: body}, Reason: "no room", At: opening}
	if err := r.Bury(t.Context(), letter); err != nil {
		t.Fatal(err)
	}
	undertaker := NewUndertaker(r.AMQP, nil, nil)
	letters, err := undertaker.List(t.Context(), 10)
	if err != nil || len(letters) != 1 {
		t.Fatalf("%d letters, %v", len(letters), err)
	}
	wantSame(t, "the context of the letter", letters[0].Order.Trace, context)
	if err := undertaker.Retry(t.Context(), order.ID); err != nil {
		t.Fatal(err)
	}
	again := r.take(r.orders())
	if len(again) != 1 {
		t.Fatalf("%d messages are tried again", len(again))
	}
	wantSame(t, "the context of the message that is tried again", traceOf(again[0].Headers), context)
}
