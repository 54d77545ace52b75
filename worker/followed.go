package worker

import (
	"context"

	"sluice/queue"
	"sluice/trace"
)

// followed are the spans of a batch of which somebody follows orders: one of the batch, which is a trace of its own and
// linked to those of the orders, and one for each of these orders. The zero value follows nothing.
type followed struct {
	batch  trace.Span
	orders map[string]trace.Span // by id
}

// follow begins them.
func (w *Writer) follow(batch []Delivery) followed {
	var links []string
	for _, delivery := range batch {
		if delivery.Order.Trace != "" {
			links = append(links, delivery.Order.Trace)
		}
	}
	if w.tracer == nil || len(links) == 0 {
		return followed{}
	}
	f := followed{batch: w.tracer.Begin(trace.Batch, links...), orders: make(map[string]trace.Span, len(links))}
	f.batch.Count(trace.Together, len(batch))
	whole := f.batch.Context()
	for _, delivery := range batch {
		if span := w.tracer.Continue(delivery.Order.Trace, trace.Write, whole); span.On() {
			span.Set(trace.Sale, delivery.Order.Sale)
			span.Set(trace.Order, delivery.Order.ID)
			f.orders[delivery.Order.ID] = span
		}
	}
	return f
}

// in is ctx as a part of the batch.
func (f followed) in(ctx context.Context) context.Context { return trace.Into(ctx, f.batch.Context()) }

// written notes the rows, and that what their shoppers are told is a part of it.
func (f followed) written(written []Written) {
	for i := range written {
		order := &written[i].Order
		if span, ok := f.orders[order.ID]; ok {
			span.Set(trace.Status, string(order.Status))
			span.Note("row written")
			order.Trace = span.Context()
		}
	}
}

// end ends them all. With a code none has come to its end, and the orders are delivered again; dead are those that can
// never be written.
func (f followed) end(code string, dead []DeadLetter) {
	for _, letter := range dead {
		f.orders[letter.Order.ID].End("dead") // later ends do nothing
	}
	for _, span := range f.orders {
		span.End(code)
	}
	f.batch.End(code)
}

// told is an order as the news of it are a part of what ctx is.
func told(ctx context.Context, order queue.Order) queue.Order {
	if context := trace.From(ctx); context != "" {
		order.Trace = context
	}
	return order
}
