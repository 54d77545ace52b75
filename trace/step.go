package trace

import oteltrace "go.opentelemetry.io/otel/trace"

// Step names a span, and with it the part of the walk that it measures.
type Step string

// The steps, in the order of the walk.
const (
	Join       Step = "join"        // a hello, or POST …/seat, until the seat is known
	JoinScript Step = "join.lua"    // the call of the script that it was part of
	Turn       Step = "turn"        // from the moment a turn was given until its shopper is told
	Grab       Step = "grab"        // a grab, from a socket or HTTP, until its result is known
	GrabScript Step = "grab.lua"    // the call of the script that it was part of
	Outbox     Step = "outbox"      // an order waits for a relay
	Publish    Step = "publish"     // until the broker has confirmed it
	Write      Step = "write"       // until its row is written and Redis knows
	Batch      Step = "write batch" // all orders that were written together
	Rows       Step = "rows"        // the transaction of a batch
	Announce   Step = "announce"    // telling Redis of a batch
	Pay        Step = "pay"         // the demonstration payment
	Payment    Step = "payment"     // an event of a payment provider
	Cancel     Step = "cancel"      // a cancellation
	Expire     Step = "expire"      // the end of holds, up to 500 at once
	Told       Step = "told"        // an order's new status is told to its shopper
)

func (s Step) kind() oteltrace.SpanKind {
	switch s {
	case Join, Grab, Pay, Payment, Cancel:
		return oteltrace.SpanKindServer
	case JoinScript, GrabScript, Rows, Announce:
		return oteltrace.SpanKindClient
	case Publish:
		return oteltrace.SpanKindProducer
	case Write, Batch:
		return oteltrace.SpanKindConsumer
	}
	return oteltrace.SpanKindInternal
}
