package trace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
)

const (
	// exportTimeout bounds one export, repeats included.
	exportTimeout = 10 * time.Second
	// tracesPath is where a collector takes traces, unless the URL says something else.
	tracesPath = "/v1/traces"
	// longestValue bounds an attribute, in bytes.
	longestValue = 256
)

// Options are the settings of a Tracer.
type Options struct {
	URL     string  // of a collector that speaks OTLP over HTTP, like http://collector:4318; "" = nothing is followed
	Sample  float64 // the share of joins, grabs and payments that are followed, 0 to 1
	Node    string  // names this process
	Version string  // of the program
	Logger  *slog.Logger
}

// Tracer begins spans and sends them to a collector, from a goroutine of its own: what cannot be sent in time is
// dropped, and nobody waits for it. A nil Tracer is off. It is safe for concurrent use.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   oteltrace.Tracer
}

// New makes a Tracer, nil where no URL is given. It does not connect: a collector that is away is no reason not to start.
// Variables of OpenTelemetry, like OTEL_EXPORTER_OTLP_HEADERS, say what else the collector wants.
func New(opts Options) (*Tracer, error) {
	if opts.Sample < 0 || opts.Sample > 1 || opts.Sample != opts.Sample {
		return nil, errors.New("the share of what is followed must be from 0 to 1")
	}
	if opts.URL == "" {
		return nil, nil
	}
	endpoint, err := parseURL(opts.URL)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(context.Background(),
		otlptracehttp.WithEndpointURL(endpoint),
		otlptracehttp.WithTimeout(exportTimeout),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: 500 * time.Millisecond, MaxInterval: 2 * time.Second, MaxElapsedTime: exportTimeout / 2,
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("make an exporter of traces: %w", err)
	}
	return newTracer(opts, sdktrace.NewBatchSpanProcessor(
		&patient{SpanExporter: exporter, log: opts.Logger}, sdktrace.WithExportTimeout(exportTimeout),
	)), nil
}

// newTracer makes one that hands its spans to a processor.
func newTracer(opts Options, processor sdktrace.SpanProcessor) *Tracer {
	limits := sdktrace.NewSpanLimits()
	limits.LinkCountLimit = -1 // a batch has as many as orders that are followed
	limits.AttributeValueLengthLimit = longestValue
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(processor),
		sdktrace.WithSampler(linked{sdktrace.ParentBased(sdktrace.TraceIDRatioBased(opts.Sample))}),
		sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "sluice"),
			attribute.String("service.version", opts.Version),
			attribute.String("service.instance.id", opts.Node),
		)),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer("sluice")}
}

// parseURL is the URL of a collector with its path.
func parseURL(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("write it like http://collector:4318") // not what was given: it may hold a password
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("give what the collector knows you by in the variable OTEL_EXPORTER_OTLP_HEADERS, not in the URL")
	case u.Path == "" || u.Path == "/":
		u.Path = tracesPath
	}
	return u.String(), nil
}

// linked follows what is linked to something that is followed, and leaves the rest to another sampler.
type linked struct{ sdktrace.Sampler }

func (l linked) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	for _, link := range p.Links {
		if link.SpanContext.IsSampled() {
			return sdktrace.AlwaysSample().ShouldSample(p)
		}
	}
	return l.Sampler.ShouldSample(p)
}

// Begin begins a trace. It is followed as often as the settings say, and always when it is linked to one that is.
func (t *Tracer) Begin(step Step, links ...string) Span {
	if t == nil {
		return Span{}
	}
	return t.start(context.Background(), step, time.Now(), links)
}

// BeginAt is Begin for what began at a moment, ms since the epoch by the clock of Redis.
func (t *Tracer) BeginAt(at int64, step Step, links ...string) Span {
	if t == nil {
		return Span{}
	}
	return t.start(context.Background(), step, past(at), links)
}

// Continue begins a step in the trace of the one before it, none when that is not followed.
func (t *Tracer) Continue(before string, step Step, links ...string) Span {
	if t == nil || before == "" {
		return Span{}
	}
	return t.start(oteltrace.ContextWithRemoteSpanContext(context.Background(), parse(before)), step, time.Now(), links)
}

// ContinueAt is Continue for what began at a moment, ms since the epoch by the clock of Redis.
func (t *Tracer) ContinueAt(at int64, before string, step Step) Span {
	if t == nil || before == "" {
		return Span{}
	}
	return t.start(oteltrace.ContextWithRemoteSpanContext(context.Background(), parse(before)), step, past(at), nil)
}

// past is a moment by another clock, which may be ahead of ours.
func past(ms int64) time.Time {
	at, now := time.UnixMilli(ms), time.Now()
	if at.After(now) {
		return now
	}
	return at
}

func (t *Tracer) start(ctx context.Context, step Step, at time.Time, links []string) Span {
	opts := []oteltrace.SpanStartOption{oteltrace.WithSpanKind(step.kind()), oteltrace.WithTimestamp(at)}
	for _, link := range links {
		if link != "" {
			opts = append(opts, oteltrace.WithLinks(oteltrace.Link{SpanContext: parse(link)}))
		}
	}
	_, span := t.tracer.Start(ctx, string(step), opts...)
	if !span.IsRecording() {
		return Span{}
	}
	return Span{span: span}
}

// Close sends what is left, until ctx ends.
func (t *Tracer) Close(ctx context.Context) {
	if t != nil {
		_ = t.provider.Shutdown(ctx) // what could not be sent was logged by the exporter
	}
}
