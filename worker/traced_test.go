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
