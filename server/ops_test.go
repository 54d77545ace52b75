package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/docs/spec"
)

func TestTheOperationsListenerTellsHealthReadinessAndFigures(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	var failure error
	b := newBench(t, func(o *Options) {
		o.Registerer, o.Gatherer = registry, registry
		o.Ready = func(context.Context) error { return failure }
	})
	b.send(http.MethodGet, "/api/v1/sales", "")
	get := func(path string) (int, string) {
		rec := httptest.NewRecorder()
		b.server.Ops().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
		err := specification(t).Operated(spec.Answer{Method: http.MethodGet, Path: path, Status: rec.Code, Header: rec.Header(), Body: rec.Body.Bytes()})
		if err != nil {
			t.Error(err)
		}
		return rec.Code, rec.Body.String()
	}
	expect := func(path string, status int, text string) {
		t.Helper()
		if code, body := get(path); code != status || !strings.Contains(body, text) {
			t.Errorf("%s: got %d %s", path, code, body)
		}
	}
	expect("/healthz", http.StatusOK, "ok")
	expect("/readyz", http.StatusOK, "ready")
	expect("/metrics", http.StatusOK, "sluice_grab_seconds")
	expect("/debug/pprof/", http.StatusOK, "goroutine")
	failure = errors.New("redis does not answer")
	expect("/readyz", http.StatusServiceUnavailable, "redis does not answer")
	failure = nil
	b.server.SetReady(false)
	expect("/readyz", http.StatusServiceUnavailable, "draining")
	expect("/healthz", http.StatusOK, "ok")
	if a := b.send(http.MethodGet, "/api/v1/sales", ""); a.status != http.StatusOK {
		t.Errorf("while draining, the API answers %d", a.status)
	}
	b.server.SetReady(true)
	expect("/readyz", http.StatusOK, "ready")
	for _, path := range []string{"/healthz", "/metrics", "/debug/pprof/"} {
		b.mustFail(b.send(http.MethodGet, path, ""), http.StatusNotFound, notFound)
	}
}
