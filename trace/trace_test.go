package trace

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// recorded is a tracer that follows such a share, and what it has recorded.
func recorded(t *testing.T, share float64) (*Tracer, *tracetest.SpanRecorder) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	tracer := newTracer(Options{Sample: share, Node: "here"}, spans)
	t.Cleanup(func() { tracer.Close(context.Background()) })
	return tracer, spans
}

func TestWithoutATracerNothingIsAllocated(t *testing.T) {
	var off *Tracer
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		span := off.Begin(Grab, "")
		span.Set(Sale, "phone-x")
		below := off.Continue(span.Context(), GrabScript)
		below.Count(Together, 3)
		below.Note("here")
		below.End("")
		off.ContinueAt(1, below.ContextOr(""), Outbox).End("late")
		if From(Into(ctx, span.Context())) != "" {
			t.Error("something is followed")
		}
		span.End("")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestWhatIsLinkedToSomethingFollowedIsFollowed(t *testing.T) {
	t.Parallel()
	all, _ := recorded(t, 1)
	none, spans := recorded(t, 0)
	if none.Begin(Grab).On() || none.Begin(Grab, "").On() {
		t.Error("a grab is followed though none is to be")
	}
	join := all.Begin(Join)
	turn := none.Begin(Turn, join.Context())
	below := none.Continue(turn.Context(), Told)
	below.End("")
	turn.End("")
	ended := spans.Ended()
	if len(ended) != 2 || ended[0].Parent().SpanID() != ended[1].SpanContext().SpanID() || len(ended[1].Links()) != 1 {
		t.Fatalf("recorded %v", ended)
	}
	if none.Continue("", Told).On() {
		t.Error("a step of nothing is followed")
	}
}

func TestOnlyAContextOfSomethingFollowedIsTaken(t *testing.T) {
	t.Parallel()
	good := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if Valid(good) != good {
		t.Error("a context is refused")
	}
	for _, bad := range []string{
		"", "x", strings.TrimSuffix(good, "1") + "0", strings.Repeat("0", 55), good + ",", strings.ToUpper(good),
		"00-00000000000000000000000000000000-b7ad6b7169203331-01", strings.Replace(good, "-b7", ",b7", 1),
	} {
		if got := Valid(bad); got != "" {
			t.Errorf("%q is taken as %q", bad, got)
		}
	}
}

func TestURLsOfCollectorsAreReadStrictly(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"http://collector:4318":            "http://collector:4318/v1/traces",
		"https://collector/":               "https://collector/v1/traces",
		"https://collector/tenant/v1/take": "https://collector/tenant/v1/take",
		"collector:4318":                   "",
		"grpc://collector:4317":            "",
		"http://me:hush@collector":         "",
		"http://collector?key=hush":        "",
	} {
		got, err := parseURL(given)
		if got != want || (err == nil) != (want != "") || err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%s is read as %q, %v; want %q", given, got, err, want)
		}
	}
	if tracer, err := New(Options{Sample: 1}); tracer != nil || err != nil {
		t.Errorf("without a URL there is %v, %v", tracer, err)
	}
}

// moody is an exporter that fails while it has an error.
type moody struct {
	sdktrace.SpanExporter
	err error
}

func (m *moody) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return m.err }

func TestACollectorThatIsAwayIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	behind := &moody{err: errors.New("nobody is there")}
	p := &patient{SpanExporter: behind, log: slog.New(slog.NewTextHandler(&text, nil))}
	for range 5 {
		if err := p.ExportSpans(t.Context(), make([]sdktrace.ReadOnlySpan, 2)); err != nil {
			t.Error(err)
		}
	}
	behind.err = nil
	for range 2 {
		_ = p.ExportSpans(t.Context(), nil)
	}
	if got := text.String(); strings.Count(got, "\n") != 2 || strings.Count(got, "cannot be sent") != 1 || !strings.Contains(got, "dropped=10") {
		t.Errorf("logged:\n%s", got)
	}
}
