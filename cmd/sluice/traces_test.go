package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver is a collector of traces.
type receiver struct {
	t   *testing.T
	url string

	mu    sync.Mutex
	spans []span
	raw   []byte // all that came
}

// span is one of them, with the process that it came from.
type span struct {
	*otlp.Span
	node string
}

// newReceiver starts one, which ends with the test.
func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{t: t}
	server := httptest.NewServer(http.HandlerFunc(r.take))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *receiver) take(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var traces collector.ExportTraceServiceRequest
	if err != nil || req.URL.Path != "/v1/traces" || proto.Unmarshal(body, &traces) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.raw = append(r.raw, body...)
	for _, of := range traces.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				r.spans = append(r.spans, span{s, attributeOf(of.Resource.Attributes, "service.instance.id")})
			}
		}
	}
}

func attributeOf(attributes []*common.KeyValue, key string) string {
	for _, a := range attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// about finds the one span of that name that is about an order, or without one the only one of that name.
func (r *receiver) about(name, order string) span {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []span
	for _, s := range r.spans {
		if s.Name == name && (order == "" || attributeOf(s.Attributes, "sluice.order") == order) {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		r.t.Fatalf("%d spans %q about order %q, want 1; there are %q", len(found), name, order, r.names())
	}
	return found[0]
}

func (r *receiver) names() []string {
	var names []string
	for _, s := range r.spans {
		names = append(names, s.Name)
	}
	return names
}

// above are the names of a span and those it is below, up to the beginning of its trace. All are of one trace.
func (r *receiver) above(s span) []string {
	r.t.Helper()
	names := []string{s.Name}
	for len(s.ParentSpanId) > 0 {
		i := slices.IndexFunc(r.spans, func(p span) bool { return string(p.SpanId) == string(s.ParentSpanId) })
		if i < 0 || string(r.spans[i].TraceId) != string(s.TraceId) {
			r.t.Fatalf("span %q has a parent %x that is not in its trace", s.Name, s.ParentSpanId)
		}
		s = r.spans[i]
		names = append(names, s.Name)
	}
	return names
}

// wantLink checks that a span is linked to another one.
func (r *receiver) wantLink(from, to span) {
	r.t.Helper()
	if !slices.ContainsFunc(from.Links, func(l *otlp.Span_Link) bool {
		return string(l.SpanId) == string(to.SpanId) && string(l.TraceId) == string(to.TraceId)
	}) {
		r.t.Errorf("span %q is not linked to %q", from.Name, to.Name)
	}
}

// until reads frames up to one of a type, and with that status where it is about an order.
func until(t *testing.T, ws *websocket.Conn, kind, status string) object {
	t.Helper()
	for {
		frame := next(t, ws)
		order, _ := frame["order"].(map[string]any)
		if frame["type"] == kind && (status == "" || order["status"] == status) {
			return frame
		}
	}
}

// lined is a sale with a line that has been open for long.
const lined = `opens_at: 2026-01-01T00:00:00Z
closes_at: 2099-01-01T00:00:00Z
line: { order: fifo, rate: 200, turn: 60s }
hold: `

func TestAGrabIsOneTraceFromItsFrameToItsConfirmation(t *testing.T) {
	t.Parallel()
	g, r := newGround(t, "mysql"), newReceiver(t)
	flags := append(slices.Clone(g.flags), "--otlp-url", r.url, "--otlp-sample", "1")
	s := open(t, append(flags, "--no-worker", "--log-level", "debug")...)
	w := begin(t, append([]string{"worker", "--ops-listen", "127.0.0.1:0"}, flags...)...)
	sale, brief := freshID(), freshID()
	s.apply(saleFile(t, sale, 5, lined+"1h"))
	s.apply(saleFile(t, brief, 5, lined+"1ms"))

	buy := func(sale, user string) (*websocket.Conn, string) {
		ws := s.connect(sale, user)
		until(t, ws, "turn", "")
		if err := ws.WriteJSON(object{"type": "grab", "id": "request-of-" + user[:4]}); err != nil {
			t.Fatal(err)
		}
		order, _ := until(t, ws, "success", "")["order"].(map[string]any)
		return ws, order["id"].(string)
	}
	payer, paid := buy(sale, "ann-who-is-in-no-trace")
	until(t, payer, "order", "confirmed")
	want(t, "status of the payment", s.ask(http.MethodPost, "/orders/"+paid+"/pay", tokenOf(t, "ann-who-is-in-no-trace"), "").status, 200)
	until(t, payer, "order", "paid")
	expirer, expired := buy(brief, "bob-who-is-in-no-trace")
	until(t, expirer, "order", "expired")
	s.says(`msg=grab .*request=request-of-ann- session=\S+ sale=` + sale + ` result=success order=(` + paid + `)`)
	s.end() // what it has seen is sent first
	w.end()

	grab := r.about("grab", paid)
	want(t, "sale of the grab", attributeOf(grab.Attributes, "sluice.sale"), sale)
	want(t, "request of the grab", attributeOf(grab.Attributes, "sluice.request"), "request-of-ann-")
	want(t, "result of the grab", attributeOf(grab.Attributes, "sluice.result"), "success")
	var told span
	for _, one := range r.spans {
		if one.Name == "told" && attributeOf(one.Attributes, "sluice.order") == paid && attributeOf(one.Attributes, "sluice.status") == "confirmed" {
			told = one
		}
	}
	if told.Span == nil {
		t.Fatalf("the confirmation is in no trace; there are %q", r.names())
	}
	want(t, "the walk of a grab, backwards", strings.Join(r.above(told), " < "), "told < write < publish < outbox < grab.lua < grab")
	want(t, "trace of the confirmation", hex.EncodeToString(told.TraceId), hex.EncodeToString(grab.TraceId))
	want(t, "node of the confirmation", told.node, grab.node)

	write := r.about("write", paid)
	if write.node == grab.node || len(write.Events) != 1 || write.Events[0].Name != "row written" {
		t.Errorf("the order was written by %s, with %v", write.node, write.Events)
	}
	batch := batchOf(t, r, write)
	want(t, "what a batch is below", strings.Join(r.above(batch), " < "), "write batch")
	for _, below := range []string{"rows", "announce"} {
		if !slices.ContainsFunc(r.spans, func(one span) bool { return one.Name == below && string(one.ParentSpanId) == string(batch.SpanId) }) {
			t.Errorf("the batch has no %q", below)
		}
	}
	turn := linkedTo(t, r, grab)
	want(t, "what the grab came after", turn.Name, "turn")
	want(t, "what the turn came after", linkedTo(t, r, turn).Name, "join")

	want(t, "the walk of a payment", r.walk(paid, "paid"), "told < pay")
	want(t, "the walk of the end of a hold", r.walk(expired, "expired"), "told < expire")
	for _, secret := range []string{"in-no-trace", "eyJ", e2eSecret} {
		if strings.Contains(string(r.raw), secret) {
			t.Errorf("the traces tell of %q", secret)
		}
	}
}

// walk is what led to a shopper's being told that an order has a status, backwards.
func (r *receiver) walk(order, status string) string {
	r.t.Helper()
	i := slices.IndexFunc(r.spans, func(one span) bool {
		return one.Name == "told" && attributeOf(one.Attributes, "sluice.order") == order && attributeOf(one.Attributes, "sluice.status") == status
	})
	if i < 0 {
		r.t.Errorf("nobody was told that order %s is %s; there are %q", order, status, r.names())
		return ""
	}
	return strings.Join(r.above(r.spans[i]), " < ")
}

func TestACancellationAndAnEventOfAPaymentAreTracedToTheShopper(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	s := open(t, "--data-dir", t.TempDir(), "--otlp-url", r.url, "--otlp-sample", "1", "--webhook-secret", "the provider's secret")
	sale := freshID()
	s.apply(saleFile(t, sale, 5, fmt.Sprintf(heldSale, "1h")))
	orders := map[string]string{}
	for _, user := range []string{"ann", "bob"} {
		ws := s.connect(sale, user)
		until(t, ws, "welcome", "")
		orders[user] = s.buy(sale, user)
		until(t, ws, "order", "confirmed")
		if user == "ann" {
			body := fmt.Sprintf(`{"order":%q,"status":"paid","event_id":"one"}`, orders[user])
			want(t, "the answer to the event", s.event("the provider's secret", body), http.StatusOK)
			until(t, ws, "order", "paid")
		} else {
			want(t, "what a cancellation makes of the order", s.act(user, orders[user], "cancel"), "cancelled")
			until(t, ws, "order", "cancelled")
		}
	}
	s.end() // what it has seen is sent first
	want(t, "the walk of an event", r.walk(orders["ann"], "paid"), "told < payment")
	want(t, "the walk of a cancellation", r.walk(orders["bob"], "cancelled"), "told < cancel")
}

// linkedTo is what a span is linked to first.
func linkedTo(t *testing.T, r *receiver, s span) span {
	t.Helper()
	if len(s.Links) == 0 {
		t.Fatalf("span %q is linked to nothing", s.Name)
	}
	i := slices.IndexFunc(r.spans, func(one span) bool { return string(one.SpanId) == string(s.Links[0].SpanId) })
	if i < 0 {
		t.Fatalf("span %q is linked to one that is not there", s.Name)
	}
	return r.spans[i]
}

// batchOf is the batch that an order was written in; each of them is linked to the other.
func batchOf(t *testing.T, r *receiver, write span) span {
	t.Helper()
	batch := linkedTo(t, r, write)
	want(t, "what an order is written in", batch.Name, "write batch")
	i := slices.IndexFunc(r.spans, func(one span) bool { return string(one.SpanId) == string(write.ParentSpanId) })
	r.wantLink(batch, r.spans[i])
	return batch
}

func TestACollectorThatIsAwayHarmsNobody(t *testing.T) {
	t.Parallel()
	nowhere := httptest.NewServer(http.NotFoundHandler())
	nowhere.Close()
	s := open(t, "--data-dir", t.TempDir(), "--otlp-url", nowhere.URL, "--otlp-sample", "1")
	sale := freshID()
	s.apply(saleFile(t, sale, 9, running))
	for _, user := range []string{"ann", "bob", "cat"} {
		result, _ := s.grab(sale, user)
		want(t, "the result for "+user, result, "success")
	}
	want(t, "number of units that the audit counts", s.audit(sale).sold(), 3)
	s.end()
	want(t, "exit code", s.wait(), exitOK)
	want(t, "number of lines about it", strings.Count(s.err.String(), "traces cannot be sent"), 1)
}

func TestWrongSettingsOfTracesAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags []string
		says  string
	}{
		"no URL":                 {[]string{"--otlp-url", "collector:4318"}, "--otlp-url: write it like http://collector:4318"},
		"a URL with a password":  {[]string{"--otlp-url", "http://me:hush@collector:4318"}, "OTEL_EXPORTER_OTLP_HEADERS"},
		"more than everything":   {[]string{"--otlp-url", "http://collector:4318", "--otlp-sample", "2"}, "--otlp-sample: give a share from 0 to 1"},
		"a share without a URL":  {[]string{"--otlp-sample", "-1"}, "--otlp-sample"},
		"a share that is a word": {[]string{"--otlp-sample", "some"}, "--otlp-sample"},
	} {
		code, _, said := command(t, append([]string{"serve", "--data-dir", t.TempDir()}, c.flags...)...)
		want(t, "exit code for "+name, code, exitUsage)
		if !strings.Contains(said, c.says) || strings.Contains(said, "hush") {
			t.Errorf("%s: it says %q, want %q", name, said, c.says)
		}
	}
}
