package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v5"

	"sluice/queue"
)

// The kinds of failure which only HTTP knows.
const (
	notFound         queue.Code = "not_found"
	methodNotAllowed queue.Code = "method_not_allowed"
	tooLarge         queue.Code = "too_large"
	unsupportedMedia queue.Code = "unsupported_media_type"
)

// Headers that say how much of a limit is left. Reset is when it is one more, in Unix seconds.
const (
	headerLimit     = "X-RateLimit-Limit"
	headerRemaining = "X-RateLimit-Remaining"
	headerReset     = "X-RateLimit-Reset"
)

// retrySpread is how long after a failure without a hint everybody comes back, at the earliest and spread over as long.
const retrySpread = time.Second

// problem is a failure as RFC 9457 writes it.
type problem struct {
	Type         string       `json:"type"`
	Title        string       `json:"title"` // of the code, in the caller's language
	Status       int          `json:"status"`
	Detail       string       `json:"detail,omitempty"` // of this one failure
	Code         queue.Code   `json:"code"`
	Reason       queue.Reason `json:"reason,omitempty"` // of forbidden: the access rule
	Instance     string       `json:"instance"`         // the request id
	RetryAfterMS int64        `json:"retry_after_ms,omitempty"`
}

// fail answers with the problem that err is. What is no *queue.Error says nothing about the outcome, so it reads as
// unavailable, and its cause goes to the log and nowhere else.
func (s *Server) fail(c *echo.Context, err error) {
	e, status := explain(err)
	if status >= http.StatusInternalServerError {
		s.logFailure(c, err)
	}
	if begun(c) {
		return
	}
	if said := s.forOperators(c, err); said != "" {
		e = &queue.Error{Code: e.Code, Message: said, RetryAfter: e.RetryAfter}
	}
	id := c.Response().Header().Get(echo.HeaderXRequestID)
	lang := s.languageOf(c.Request())
	p := problem{
		Type:     "urn:sluice:problem:" + string(e.Code),
		Title:    titleOf(e.Code, lang),
		Status:   status,
		Detail:   e.Message,
		Code:     e.Code,
		Reason:   e.Reason,
		Instance: id,
	}
	header := c.Response().Header()
	switch e.Code {
	case queue.Limited:
		setFigures(header, e.Limit, e.Remaining, s.resetOf(e))
		p.RetryAfterMS = retryAfter(e.RetryAfter)
	case queue.Unavailable:
		p.RetryAfterMS = retryAfter(e.RetryAfter)
	case queue.Unauthenticated:
		header.Set(echo.HeaderWWWAuthenticate, "Bearer")
	}
	if p.RetryAfterMS > 0 {
		header.Set(echo.HeaderRetryAfter, strconv.FormatInt((p.RetryAfterMS+999)/1000, 10))
	}
	// Also where an answer of another kind, or for everybody, was begun.
	header.Set(echo.HeaderContentType, "application/problem+json")
	header.Set(echo.HeaderCacheControl, "no-store")
	header.Set("Content-Language", string(lang))
	body, err := json.Marshal(p)
	if err == nil {
		err = c.Blob(status, header.Get(echo.HeaderContentType), body)
	}
	if err != nil {
		s.log.DebugContext(c.Request().Context(), "a problem could not be answered", "request", id, "error", err)
	}
}

// begun says whether a part of the answer is on its way, so that it cannot become another one.
func begun(c *echo.Context) bool {
	sent, _ := echo.UnwrapResponse(c.Response())
	return sent != nil && sent.Committed
}

// forOperators is what the operator whose request failed is told beyond what shoppers are: what is away, and where; "" where nothing
// is known to be, or nobody with the admin token asks: what comes before it is a *queue.Error without a cause.
func (s *Server) forOperators(c *echo.Context, err error) string {
	var known *queue.Error
	_, status := explain(err)
	if s.opts.Away == nil || status < http.StatusInternalServerError || errors.As(err, &known) && known.Err == nil ||
		!strings.HasPrefix(c.Path(), adminAPI+"/") {
		return ""
	}
	return strings.Join(s.opts.Away(c.Request().Context()), "; ")
}

// resetOf is when one more may pass.
func (s *Server) resetOf(e *queue.Error) time.Time {
	if e.Reset.IsZero() {
		return s.now().Add(e.RetryAfter)
	}
	return e.Reset
}

// retryAfter is when to come back, in milliseconds: never before hint, at least a second, and spread so that those who
// were refused together do not return together.
func retryAfter(hint time.Duration) int64 {
	hint = max(hint, retrySpread)
	return (hint + rand.N(max(hint/2, retrySpread))).Milliseconds()
}

// explain finds what a person can be told about err, and the HTTP status of that.
func explain(err error) (*queue.Error, int) {
	var known *queue.Error
	if errors.As(err, &known) {
		return known, statusOf(known.Code)
	}
	if status := echo.StatusCode(err); status != 0 {
		return explainHTTP(err, status)
	}
	return &queue.Error{
		Code:    queue.Unavailable,
		Message: "something this needs does not answer right now; try again, with the same request_id where there is one",
	}, statusOf(queue.Unavailable)
}

// explainHTTP explains what the router or a handler refused by its status.
func explainHTTP(err error, status int) (*queue.Error, int) {
	var said *echo.HTTPError
	message := ""
	if errors.As(err, &said) {
		message = said.Message
	}
	switch status {
	case http.StatusNotFound:
		return &queue.Error{Code: notFound, Message: "there is nothing at this address"}, status
	case http.StatusMethodNotAllowed:
		return &queue.Error{Code: methodNotAllowed, Message: "this address does not take this method"}, status
	case http.StatusRequestEntityTooLarge:
		return &queue.Error{Code: tooLarge, Message: message}, status
	case http.StatusUnsupportedMediaType:
		return &queue.Error{Code: unsupportedMedia, Message: message}, status
	}
	if status >= http.StatusInternalServerError {
		return &queue.Error{Code: queue.Unavailable, Message: message}, statusOf(queue.Unavailable)
	}
	return &queue.Error{Code: queue.BadRequest, Message: message}, status
}

// statusOf is the HTTP status of a code.
func statusOf(code queue.Code) int {
	switch code {
	case queue.BadRequest:
		return http.StatusBadRequest
	case queue.Unauthenticated:
		return http.StatusUnauthorized
	case queue.Forbidden:
		return http.StatusForbidden
	case queue.NoSuchSale, queue.NoSuchOrder, queue.NoSuchItem:
		return http.StatusNotFound
	case queue.Conflict:
		return http.StatusConflict
	case queue.Invalid:
		return http.StatusUnprocessableEntity
	case queue.Limited:
		return http.StatusTooManyRequests
	}
	return http.StatusServiceUnavailable
}

// logFailure logs what the answer hides. A caller who went away before the answer is no failure of ours.
func (s *Server) logFailure(c *echo.Context, err error) {
	ctx := c.Request().Context()
	level := slog.LevelError
	var known *queue.Error
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		level = slog.LevelDebug
	case errors.As(err, &known) && known.Err == nil:
		level = slog.LevelDebug // said on purpose: come again in a moment
	}
	if !s.log.Enabled(ctx, level) {
		return
	}
	dropped, ok := s.failures.take()
	if !ok {
		return
	}
	attrs := append(about(c, c.Response().Header().Get(echo.HeaderXRequestID)),
		slog.String("method", c.Request().Method),
		slog.String("route", c.Path()),
		slog.Any("error", err))
	if dropped > 0 {
		attrs = append(attrs, slog.Int64("not_logged_before", dropped))
	}
	s.log.LogAttrs(ctx, level, "request failed", attrs...)
}
