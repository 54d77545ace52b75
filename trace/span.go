package trace

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// Key names an attribute of a span. There is none for a user, an address, a token or a message: what a shopper sent is in
// no span but for the id of a request.
type Key string

// The attributes.
const (
	Sale     Key = "sluice.sale"
	Item     Key = "sluice.item"
	Order    Key = "sluice.order"
	Request  Key = "sluice.request"
	Session  Key = "sluice.session"
	Result   Key = "sluice.result"   // of a grab
	Status   Key = "sluice.status"   // of an order
	Sessions Key = "sluice.sessions" // how many connections were told
	Together Key = "sluice.together" // how many went in the same call or batch
)

// Span is a step that is under way. The zero Span records nothing, and costs nothing. It is for one goroutine at a time.
type Span struct{ span oteltrace.Span }

// On says whether the span is recorded.
func (s Span) On() bool { return s.span != nil }

// Context is what goes along to the steps after this one, "" for one that is not recorded.
func (s Span) Context() string { return s.ContextOr("") }

// ContextOr is Context, or what came before where this process records nothing, so that those after it still can.
func (s Span) ContextOr(before string) string {
	if s.span == nil {
		return before
	}
	return format(s.span.SpanContext())
}

// Set gives the span an attribute.
func (s Span) Set(name Key, value string) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String(string(name), value))
	}
}

// Count gives the span an attribute that is a number.
func (s Span) Count(name Key, n int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int(string(name), n))
	}
}

// Note marks a moment in the span.
func (s Span) Note(what string) {
	if s.span != nil {
		s.span.AddEvent(what)
	}
}

// End ends the span. With a code, which must not be what somebody sent, it has failed; "" = it has not.
func (s Span) End(code string) {
	if s.span == nil {
		return
	}
	if code != "" {
		s.span.SetStatus(codes.Error, code)
	}
	s.span.End()
}
