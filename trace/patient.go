package trace

import (
	"context"
	"log/slog"
	"sync/atomic"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// patient is an exporter whose collector may be away: it says so once, and once when it is back. What could not be sent
// is dropped.
type patient struct {
	sdktrace.SpanExporter
	log  *slog.Logger
	away atomic.Bool
	lost atomic.Int64 // spans since it is away
}

func (p *patient) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := p.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil:
		p.lost.Add(int64(len(spans)))
		if !p.away.Swap(true) {
			p.log.Warn("traces cannot be sent; they are dropped until they can, and nothing waits for them", "error", err)
		}
	case p.away.Swap(false):
		p.log.Info("traces can be sent again", "dropped", p.lost.Swap(0))
	}
	return nil // the library would log each failure, by a logger that is global
}
