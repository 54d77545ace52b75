package worker

import (
	"encoding/json"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"sluice/queue"
	"sluice/trace"
)

// messageVersion is the version of the format that orders have in the broker. Fields may be added within a version;
// what an old reader would get wrong needs a new one.
const messageVersion = 1

// message is an order as it travels through the broker.
type message struct {
	V         *int   `json:"v"` // nil = says nothing of a version
	ID        string `json:"id"`
	Sale      string `json:"sale"`
	Item      string `json:"item"`
	User      string `json:"user"`
	Qty       int64  `json:"qty"`
	RequestID string `json:"request_id"`
	At        int64  `json:"at"`     // of the grab, ms since the epoch, by Redis
	PayBy     int64  `json:"pay_by"` // ms since the epoch; 0 = needs no payment
}

// encodeOrder writes an order as a message.
func encodeOrder(order queue.Order) ([]byte, error) {
	version := messageVersion
	body, err := json.Marshal(message{
		V:         &version,
		ID:        order.ID,
		Sale:      order.Sale,
		Item:      order.Item,
		User:      order.User,
		Qty:       order.Qty,
		RequestID: order.RequestID,
		At:        order.CreatedAt,
		PayBy:     order.PayBy,
	})
	if err != nil {
		return nil, fmt.Errorf("encode order %s: %w", order.ID, err)
	}
	return body, nil
}

// headerTrace is the header of a message that says what it is a part of, as W3C names it. Messages of what nobody follows
// have none.
const headerTrace = "traceparent"

// headersOf are the headers of an order's message, nil for nearly all.
func headersOf(order queue.Order) amqp.Table {
	if order.Trace == "" {
		return nil
	}
	return amqp.Table{headerTrace: order.Trace}
}

// traceOf is what a message is a part of, "" where its headers do not say.
func traceOf(headers amqp.Table) string {
	context, _ := headers[headerTrace].(string)
	return trace.Valid(context)
}

// decodeOrder reads a message. An error is a *queue.Error Invalid and for good: the same bytes never become an order.
func decodeOrder(body []byte) (queue.Order, error) {
	bad := func(format string, args ...any) (queue.Order, error) {
		return queue.Order{}, &queue.Error{Code: queue.Invalid, Message: fmt.Sprintf(format, args...)}
	}
	var m message
	err := json.Unmarshal(body, &m)
	// The version comes first: of another version nothing else is known, not even that "id" is text. A value of the wrong
	// type is reported only after the rest was read.
	var wrongType *json.UnmarshalTypeError
	switch {
	case err != nil && (!errors.As(err, &wrongType) || wrongType.Field == "" || wrongType.Field == "v"):
		return bad("the message is not an order in JSON: %v", err)
	case m.V == nil:
		return bad("the message has no version; this program reads version %d", messageVersion)
	case *m.V != messageVersion:
		return bad("the message has version %d; this program reads version %d", *m.V, messageVersion)
	case err != nil:
		return bad("the message is not an order: %v", err)
	}
	for _, field := range []struct{ name, value string }{
		{"id", m.ID}, {"sale", m.Sale}, {"item", m.Item}, {"user", m.User},
	} {
		if field.value == "" {
			return bad("the message has no %s", field.name)
		}
	}
	if m.Qty < 1 {
		return bad("the message is about %d units; an order has at least 1", m.Qty)
	}
	if m.At <= 0 {
		return bad("the message does not say when the grab was")
	}
	if m.PayBy < 0 {
		return bad("the message has a pay_by before 1970")
	}
	return queue.Order{
		ID:        m.ID,
		Sale:      m.Sale,
		Item:      m.Item,
		User:      m.User,
		Qty:       m.Qty,
		RequestID: m.RequestID,
		Status:    queue.Reserved,
		CreatedAt: m.At,
		PayBy:     m.PayBy,
	}, nil
}
