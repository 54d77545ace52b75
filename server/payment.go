package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v5"

	"sluice/queue"
	"sluice/trace"
)

const (
	// cashierTimeout bounds one payment or cancellation.
	cashierTimeout = 10 * time.Second
	// maxPaymentEvent is how large an event may be, in bytes.
	maxPaymentEvent = 64 << 10
	// maxEventID is how long the id of an event may be, in bytes: the column has room for it and what is put before it.
	maxEventID = 100

	headerSignature = "X-Signature"
)

// payment says how orders are paid here: "demo", by payOrder, or "provider", only by the signed events of one.
func (s *Server) payment() string {
	if len(s.current().WebhookSecrets) > 0 {
		return "provider"
	}
	return "demo"
}

// payOrder is POST /orders/{order}/pay, the demonstration payment.
func (s *Server) payOrder(c *echo.Context) error {
	if len(s.current().WebhookSecrets) > 0 {
		return &queue.Error{Code: queue.Forbidden, Message: "orders are paid with the payment provider, not here"}
	}
	return s.changeOrder(c, trace.Pay, Cashier.Pay)
}

// cancelOrder is POST /orders/{order}/cancel.
func (s *Server) cancelOrder(c *echo.Context) error {
	return s.changeOrder(c, trace.Cancel, Cashier.Cancel)
}

// changeOrder moves an order of the caller forward. One that has no row yet cannot be moved: it is reserved, and whoever
// asks again in a moment is told better.
func (s *Server) changeOrder(c *echo.Context, step trace.Step, change func(Cashier, context.Context, string) (queue.Order, error)) error {
	who, err := s.caller(c)
	if err != nil {
		return err
	}
	// What is begun is brought to its end when the caller hangs up: the answer is the same if they ask again.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), cashierTimeout)
	defer cancel()
	order, err := s.orderOf(ctx, who.User, c.Param("order"), c.QueryParam("sale"))
	if err != nil {
		return err
	}
	if order, err = s.change(ctx, order, step, change); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, viewOfOrder(order))
}

func (s *Server) change(ctx context.Context, order queue.Order, step trace.Step, change func(Cashier, context.Context, string) (queue.Order, error)) (queue.Order, error) {
	switch {
	case s.opts.Cashier == nil:
		return order, &queue.Error{Code: queue.Unavailable, Message: "orders cannot be changed here", RetryAfter: time.Second}
	case order.Status == queue.Reserved:
		return order, beingWritten()
	}
	span := s.opts.Tracer.Begin(step)
	changed, err := change(s.opts.Cashier, trace.Into(ctx, span.Context()), order.ID)
	endOrder(span, changed, err)
	if err != nil {
		return changed, err
	}
	s.opts.Snapshots.Kick(changed.Sale)
	return changed, nil
}

// endOrder ends the span of what somebody did with an order.
func endOrder(span trace.Span, order queue.Order, err error) {
	if order.ID != "" {
		span.Set(trace.Sale, order.Sale)
		span.Set(trace.Order, order.ID)
		span.Set(trace.Status, string(order.Status))
	}
	span.End(string(queue.CodeOf(err)))
}

func beingWritten() error {
	return &queue.Error{
		Code: queue.Unavailable, Message: "the order is still being written and nothing was changed; try again in a moment",
		RetryAfter: time.Second,
	}
}

// paymentEvent is POST /webhooks/payment: a payment provider tells what became of a payment. It repeats what was not
// answered with 2xx; what is unknown here for the moment is answered 503 and not recorded, so that the repetition counts.
func (s *Server) paymentEvent(c *echo.Context) error {
	if len(s.current().WebhookSecrets) == 0 {
		return &queue.Error{Code: queue.Forbidden, Message: "no payment provider is configured: set --webhook-secret"}
	}
	body, err := readBody(c, maxPaymentEvent)
	if err != nil {
		return err
	}
	if !s.signed(body, c.Request().Header.Get(headerSignature)) {
		return &queue.Error{Code: queue.Unauthenticated, Message: "X-Signature must be sha256=<hex HMAC-SHA256 of the body with the webhook secret>"}
	}
	var event struct {
		Order  string `json:"order"`
		Status string `json:"status"`
		Event  string `json:"event_id"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return badRequest("the event must be a JSON object with order, status and event_id")
	}
	if field := twice(body); field != "" {
		return badRequest(fmt.Sprintf("the field %q is there twice", clip(field)))
	}
	if event.Event == "" || len(event.Event) > maxEventID {
		return invalid("event_id must be 1 to %d bytes", maxEventID)
	}
	if !slices.Contains([]string{"paid", "failed", "refunded"}, event.Status) {
		return invalid("status must be paid, failed or refunded")
	}
	if uuid.Validate(event.Order) != nil || len(event.Order) != 36 {
		return &queue.Error{Code: queue.NoSuchOrder, Message: "order must be the id of an order"}
	}
	if s.opts.Cashier == nil {
		return &queue.Error{Code: queue.Unavailable, Message: "orders cannot be changed here", RetryAfter: time.Second}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), cashierTimeout)
	defer cancel()
	// The provider's ids are its own: none of them may be taken for one of ours.
	span := s.opts.Tracer.Begin(trace.Payment)
	order, err := s.opts.Cashier.Payment(trace.Into(ctx, span.Context()), "event-"+event.Event, event.Order, event.Status)
	endOrder(span, order, err)
	if queue.CodeOf(err) == queue.NoSuchOrder {
		// Its row may be on its way. The provider gives up on one that never comes.
		return beingWritten()
	}
	if err != nil {
		return err
	}
	s.opts.Snapshots.Kick(order.Sale)
	return c.JSON(http.StatusOK, viewOfOrder(order))
}

// signed says whether one of the secrets made the signature.
func (s *Server) signed(body []byte, signature string) bool {
	given, err := hex.DecodeString(strings.TrimPrefix(signature, "sha256="))
	if err != nil || !strings.HasPrefix(signature, "sha256=") {
		return false
	}
	good := false
	for _, secret := range s.current().WebhookSecrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write(body)
		good = hmac.Equal(given, mac.Sum(nil)) || good
	}
	return good
}
