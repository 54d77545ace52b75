package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v5"

	"sluice/hub"
	"sluice/queue"
)

func TestEveryFailureReadsAsAProblem(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err    error
		status int
		code   queue.Code
		retry  bool
	}{
		"bad request":      {&queue.Error{Code: queue.BadRequest, Message: "m"}, 400, "bad_request", false},
		"unauthenticated":  {&queue.Error{Code: queue.Unauthenticated, Message: "m"}, 401, "unauthenticated", false},
		"forbidden":        {&queue.Error{Code: queue.Forbidden, Message: "m"}, 403, "forbidden", false},
		"no such sale":     {&queue.Error{Code: queue.NoSuchSale, Message: "m"}, 404, "no_such_sale", false},
		"no such order":    {&queue.Error{Code: queue.NoSuchOrder, Message: "m"}, 404, "no_such_order", false},
		"no such item":     {&queue.Error{Code: queue.NoSuchItem, Message: "m"}, 404, "no_such_item", false},
		"conflict":         {&queue.Error{Code: queue.Conflict, Message: "m"}, 409, "conflict", false},
		"invalid":          {&queue.Error{Code: queue.Invalid, Message: "m"}, 422, "invalid", false},
		"limited":          {&queue.Error{Code: queue.Limited, Message: "m", Limit: 20}, 429, "limited", true},
		"unavailable":      {&queue.Error{Code: queue.Unavailable, Message: "m"}, 503, "unavailable", true},
		"wrapped":          {fmt.Errorf("while: %w", &queue.Error{Code: queue.Conflict, Message: "m"}), 409, "conflict", false},
		"infrastructure":   {errors.New("dial tcp 10.0.0.7: refused"), 503, "unavailable", true},
		"a deadline":       {context.DeadlineExceeded, 503, "unavailable", true},
		"Echo's not found": {echo.ErrNotFound, 404, "not_found", false},
		"Echo's 405":       {echo.ErrMethodNotAllowed, 405, "method_not_allowed", false},
		"Echo's 413":       {echo.ErrStatusRequestEntityTooLarge, 413, "too_large", false},
		"Echo's 415":       {echo.ErrUnsupportedMediaType, 415, "unsupported_media_type", false},
		"Echo's 500":       {echo.ErrInternalServerError, 503, "unavailable", true},
		"Echo's 400":       {echo.ErrBadRequest, 400, "bad_request", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.server.echo.GET("/fail", func(*echo.Context) error { return tc.err })
			a := b.send(http.MethodGet, "/fail", "")
			b.mustFail(a, tc.status, tc.code)
			if a.field(t, "status") != float64(tc.status) || a.field(t, "title") == "" ||
				a.field(t, "instance") != a.header.Get("X-Request-Id") || a.header.Get("X-Request-Id") == "" {
				t.Errorf("got %s with %v", a.body, a.header)
			}
			if got := a.header.Get("Retry-After") != "" && a.field(t, "retry_after_ms") != nil; got != tc.retry {
				t.Errorf("says when to come back: %v, want %v: %s", got, tc.retry, a.body)
			}
			if got := a.header.Get(headerLimit) != ""; got != (tc.code == queue.Limited) {
				t.Errorf("has figures of a limit: %v", got)
			}
			if bytes.Contains(a.body, []byte("10.0.0.7")) {
				t.Errorf("the cause is shown: %s", a.body)
			}
		})
	}
}

func TestThoseRefusedTogetherDoNotComeBackTogether(t *testing.T) {
	t.Parallel()
	different := map[int64]bool{}
	for range 200 {
		ms := retryAfter(3 * time.Second)
		if ms < 3000 || ms > 5000 {
			t.Fatalf("told to come back after %d ms", ms)
		}
		different[ms] = true
		if ms := retryAfter(0); ms < 1000 {
			t.Fatalf("told to come back after %d ms", ms)
		}
	}
	if len(different) < 50 {
		t.Errorf("only %d different moments for 200 callers", len(different))
	}
}

func TestTitlesAreInTheLanguageAskedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for accept, want := range map[string]lang{
		"":                               english,
		"en":                             english,
		"zh":                             chinese,
		"zh-CN,zh;q=0.9,en;q=0.8":        chinese,
		"zh-Hant-TW":                     chinese,
		"en-GB,zh;q=0.5":                 english,
		"de":                             english,
		"de, zh;q=0.3":                   chinese,
		"*":                              english,
		";;;":                            english,
		strings.Repeat("zh-CN,", 100):    english,
		"fr;q=0.9, en;q=0.1, zh;q=0.001": english,
	} {
		a := b.send(http.MethodGet, "/nothing", "", "Accept-Language", accept)
		if got := a.field(t, "title"); got != titleOf(notFound, want) || a.header.Get("Content-Language") != string(want) {
			t.Errorf("%q: got %v in %q, want %s", accept, got, a.header.Get("Content-Language"), want)
		}
	}
}

// logged collects the lines of a JSON log.
func logged(t *testing.T, buffer *bytes.Buffer) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for line := range bytes.Lines(buffer.Bytes()) {
		var fields map[string]any
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fields)
	}
	return lines
}

func TestACauseIsLoggedOnceWithTheRequestsID(t *testing.T) {
	t.Parallel()
	var buffer bytes.Buffer
	b := newBench(t, func(o *Options) {
		o.Logger = slog.New(slog.NewJSONHandler(&buffer, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	b.server.echo.GET("/fail/:what", func(*echo.Context) error { return errors.New("dial tcp: refused") })
	a := b.send(http.MethodGet, "/fail/a%0Ab?token=secret", "", "Authorization", "Bearer secret", "X-Request-Id", "from-the-proxy")
	b.mustFail(a, http.StatusServiceUnavailable, queue.Unavailable)

	var causes int
	for _, line := range logged(t, &buffer) {
		if line["error"] == "dial tcp: refused" {
			causes++
			if line["request"] != "from-the-proxy" || line["level"] != "ERROR" {
				t.Errorf("got %v", line)
			}
		}
	}
	if causes != 1 {
		t.Errorf("the cause is logged %d times:\n%s", causes, &buffer)
	}
	if strings.Contains(buffer.String(), "secret") {
		t.Errorf("a token is in the log:\n%s", &buffer)
	}
}

func TestAnOutageDoesNotFillTheLog(t *testing.T) {
	t.Parallel()
	var buffer bytes.Buffer
	b := newBench(t, func(o *Options) { o.Logger = slog.New(slog.NewJSONHandler(&buffer, nil)) })
	b.server.failures = newThrottle(0, 3)
	b.server.echo.GET("/fail", func(*echo.Context) error { return errors.New("refused") })
	for range 50 {
		b.mustFail(b.send(http.MethodGet, "/fail", ""), http.StatusServiceUnavailable, queue.Unavailable)
	}
	if lines := logged(t, &buffer); len(lines) != 3 {
		t.Errorf("%d lines for 50 failures, want 3", len(lines))
	}
	if _, ok := b.server.failures.take(); ok || b.server.failures.dropped.Load() != 48 {
		t.Errorf("%d are counted as not logged, want 48", b.server.failures.dropped.Load())
	}
}

func TestACallerWhoWentAwayIsNoError(t *testing.T) {
	t.Parallel()
	var buffer bytes.Buffer
	b := newBench(t, func(o *Options) { o.Logger = slog.New(slog.NewJSONHandler(&buffer, nil)) })
	b.server.echo.GET("/fail", func(c *echo.Context) error {
		return fmt.Errorf("grab: %w", c.Request().Context().Err())
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.server.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/fail", nil))
	if buffer.Len() > 0 {
		t.Errorf("logged:\n%s", &buffer)
	}
}

func TestAPanicIsAnsweredAndLogged(t *testing.T) {
	t.Parallel()
	var buffer bytes.Buffer
	b := newBench(t, func(o *Options) { o.Logger = slog.New(slog.NewJSONHandler(&buffer, nil)) })
	b.server.echo.GET("/panic", func(*echo.Context) error { panic("out of order") })
	a := b.send(http.MethodGet, "/panic", "")
	b.mustFail(a, http.StatusServiceUnavailable, queue.Unavailable)
	if !strings.Contains(buffer.String(), "out of order") || !strings.Contains(buffer.String(), "problem_test.go") {
		t.Errorf("the log has neither the panic nor its place:\n%s", &buffer)
	}
	if bytes.Contains(a.body, []byte("out of order")) {
		t.Errorf("the panic is shown: %s", a.body)
	}
}

func TestOnlyAHarmlessRequestIDIsKept(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	seen := map[string]bool{}
	for id, keep := range map[string]bool{
		"abc-1.2_3":             true,
		strings.Repeat("a", 64): true,
		strings.Repeat("a", 65): false,
		"<script>":              false,
		"a b":                   false,
		"é":                     false,
	} {
		got := b.send(http.MethodGet, "/nothing", "", "X-Request-Id", id).header.Get("X-Request-Id")
		if (got == id) != keep || got == "" || seen[got] {
			t.Errorf("%q became %q", id, got)
		}
		seen[got] = true
	}
}

func TestAHandshakeThatIsNoneIsAProblemLikeAnyOther(t *testing.T) {
	t.Parallel()
	sockets := hub.New(hub.Options{})
	defer sockets.Close()
	b := newBench(t, func(o *Options) { o.Hub = sockets })
	upgrade := []string{"Connection", "Upgrade", "Upgrade", "websocket"}
	for name, header := range map[string][]string{
		"without a key":        {"Sec-WebSocket-Version", "13"},
		"with a key too short": {"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "x"},
		"of an old version":    {"Sec-WebSocket-Version", "8", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="},
	} {
		a := b.send(http.MethodGet, "/ws/v1/sales/phone-x", "", append(slices.Clone(upgrade), header...)...)
		b.mustFail(a, http.StatusBadRequest, queue.BadRequest)
		if got := a.header.Get("Sec-WebSocket-Version"); got != "13" {
			t.Errorf("%s: version %q is offered, want 13", name, got)
		}
	}
}
