package server

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v5"
	"golang.org/x/time/rate"

	"sluice/queue"
)

// Failures are logged at most this often a second, in bursts of failureLogBurst: when Redis is away every request
// fails, and the log must not become the next thing that breaks.
const (
	failureLogRate  = 1
	failureLogBurst = 10
)

// observe is around every request. It names it, turns panics and errors into answers, and logs it: at debug level what
// went well, since a grab takes less time than its line in a log.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		id := s.requests.of(c.Request())
		header := c.Response().Header()
		header.Set(echo.HeaderXRequestID, id)
		// What is no page is never to be run, shown or taken for another kind of thing. Pages set their own.
		header.Set(echo.HeaderXContentTypeOptions, "nosniff")
		header.Set(echo.HeaderContentSecurityPolicy, "default-src 'none'; frame-ancestors 'none'")
		header.Set(echo.HeaderReferrerPolicy, "no-referrer")
		if s.opts.Secure {
			header.Set(echo.HeaderStrictTransportSecurity, "max-age=31536000")
		}
		header.Set(echo.HeaderCacheControl, "no-store") // what is for everybody says so itself
		began := time.Now()

		if err := guarded(next, c); err != nil {
			s.fail(c, err)
		}
		if ctx := c.Request().Context(); s.log.Enabled(ctx, slog.LevelDebug) {
			_, status := echo.ResolveResponseStatus(c.Response(), nil)
			s.log.LogAttrs(ctx, slog.LevelDebug, "request", append(about(c, id),
				slog.String("method", c.Request().Method),
				slog.String("path", c.Request().URL.Path), // never the query, and never a header
				slog.Int("status", status),
				slog.Duration("took", time.Since(began)))...)
		}
		return nil
	}
}

// about are the ids that a line about a request carries, as far as its route has them. What is no id is left out: it may be
// anything.
func about(c *echo.Context, request string) []slog.Attr {
	attrs := make([]slog.Attr, 1, 8) // room for what the caller adds
	attrs[0] = slog.String("request", request)
	if sale := c.Param("sale"); queue.ValidID(sale) {
		attrs = append(attrs, slog.String("sale", sale))
	}
	if order := c.Param("order"); len(order) == 36 && uuid.Validate(order) == nil {
		attrs = append(attrs, slog.String("order", order))
	}
	return attrs
}

// guarded is next(c), with a panic as an error that carries the stack.
func guarded(next echo.HandlerFunc, c *echo.Context) (err error) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler: // net/http's own way to drop a connection
			panic(v)
		default:
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return next(c)
}

// requestIDs names requests: what the caller or its proxy calls them when that is fit for a log, else a number which
// is unique to this process.
type requestIDs struct {
	prefix string
	last   *atomic.Uint64
}

func newRequestIDs() requestIDs {
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	return requestIDs{prefix: hex.EncodeToString(random[:]) + "-", last: new(atomic.Uint64)}
}

func (r requestIDs) of(req *http.Request) string {
	if id := req.Header.Get(echo.HeaderXRequestID); id != "" && len(id) <= 64 && strings.Trim(id, tokenChars) == "" {
		return id
	}
	return r.next()
}

// next is a name that no other request has, of this process or another.
func (r requestIDs) next() string { return r.prefix + strconv.FormatUint(r.last.Add(1), 36) }

// tokenChars are the characters that mean nothing to any log, shell or page.
const tokenChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// throttle lets through so many a second, and counts the others for the next one let through.
type throttle struct {
	limiter *rate.Limiter
	dropped atomic.Int64
}

func newThrottle(perSecond float64, burst int) *throttle {
	return &throttle{limiter: rate.NewLimiter(rate.Limit(perSecond), burst)}
}

// take says whether this one may pass, and how many could not since the last that did.
func (t *throttle) take() (dropped int64, ok bool) {
	if !t.limiter.Allow() {
		t.dropped.Add(1)
		return 0, false
	}
	return t.dropped.Swap(0), true
}
