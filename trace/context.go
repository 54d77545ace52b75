package trace

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// contextBytes is how long a traceparent of version 00 is: 00-<32 hex>-<16 hex>-<2 hex>.
const contextBytes = 55

// header is the name that W3C gave it.
const header = "traceparent"

// Valid returns a context as it came from elsewhere, or "" where it is none, or where nobody follows it.
func Valid(context string) string {
	if len(context) != contextBytes || !parse(context).IsSampled() {
		return ""
	}
	return context
}

func parse(text string) oteltrace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{header: text})
	return oteltrace.SpanContextFromContext(ctx)
}

func format(sc oteltrace.SpanContext) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(oteltrace.ContextWithSpanContext(context.Background(), sc), carrier)
	return carrier[header]
}

type key struct{}

// Into returns ctx with what is followed in it; ctx itself when nothing is.
func Into(ctx context.Context, followed string) context.Context {
	if followed == "" {
		return ctx
	}
	return context.WithValue(ctx, key{}, followed)
}

// From is what Into put there, else "".
func From(ctx context.Context) string {
	followed, _ := ctx.Value(key{}).(string)
	return followed
}
