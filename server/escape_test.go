package server

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestNothingThatACallerSendsForgesALineOfTheLog(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"text": func(b *bytes.Buffer) slog.Handler {
			return slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})
		},
		"json": func(b *bytes.Buffer) slog.Handler {
			return slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			b := newBench(t, func(o *Options) { o.Logger, o.TrustedProxies = slog.New(handler(&log)), []string{"192.0.2.1"} })
			const forged = "x\r\nforged level=ERROR msg=\"sold out\"\x1b[2J"
			headers := []string{
				"X-Request-Id", forged, "Origin", forged, "User-Agent", forged, "X-Forwarded-For", forged, "Accept-Language", forged, "X-User-Id", forged, "X-Token", forged,
			}
			requests := 0
			for _, call := range []struct{ method, path, body string }{
				{http.MethodGet, "/api/v1/sales/x%0D%0Aforged%1B%5B2J", ""},
				{http.MethodPost, "/api/v1/sales/solo/grab", `{"item":"x\r\nforged"}`},
				{http.MethodGet, "/api/v1/orders?sale=x%0D%0Aforged", ""},
				{http.MethodGet, "/%0D%0Aforged", ""},
			} {
				for _, more := range [][]string{nil, b.as("ann")} {
					b.send(call.method, call.path, call.body, append(headers, more...)...)
					requests++
				}
			}
			b.send(http.MethodGet, "/api/v1/admin/x%0D%0Aforged", "", append(headers, "Authorization", "Bearer "+forged)...)
			b.send(http.MethodGet, "/api/v1/admin/sales/x%0D%0Aforged", "", append(headers, "Authorization", "Bearer x")...)
			for line := range strings.Lines(log.String()) {
				if strings.HasPrefix(line, "forged") || strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\r\x1b") {
					t.Errorf("a forged line: %q", line)
				}
			}
			if lines := strings.Count(log.String(), "\n"); lines < requests {
				t.Errorf("%d lines for %d requests", lines, requests)
			}
		})
	}
}

func TestWhatCallersMakeUpBecomesNoLabel(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	b := newBench(t, func(o *Options) { o.Registerer, o.Gatherer = registry, registry })
	series := func() int {
		n, err := testutil.GatherAndCount(registry)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	ask := func(i int) {
		b.send(http.MethodPost, fmt.Sprintf("/api/v1/sales/made-up-%d/grab", i), "", b.as("ann")...)
		b.send(http.MethodPost, "/api/v1/seckill/solo", fmt.Sprintf(`{"item":"made-up-%d"}`, i), b.as("ann")...)
		b.send(http.MethodPost, fmt.Sprintf("/api/v1/sales/made-up-%d/seat", i), "", b.as("ann")...)
		b.send(http.MethodGet, fmt.Sprintf("/api/v1/admin/sales/made-up-%d", i), "", "Authorization", "Bearer wrong")
	}
	for i := range 20 {
		ask(i) // everything that there is a word of ours for has been counted
	}
	before := series()
	for i := range 1000 {
		ask(100 + i)
	}
	if after := series(); after != before {
		t.Errorf("there were %d series, and now there are %d", before, after)
	}
}
