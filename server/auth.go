package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v5"
	"golang.org/x/sync/singleflight"

	"sluice/queue"
)

// Headers of a proxy that asks about a pass.
const (
	headerPass     = "X-Sluice-Pass"
	headerPassUser = "X-Sluice-User"
)

const (
	// verdictAge is how old an answer about a pass may be, from before Redis was asked. A revocation is to hold within a
	// second, and an answer that others share may be as old as verdictTimeout.
	verdictAge = 500 * time.Millisecond
	// verdictTimeout is how long Redis has to answer, since a page of the shop waits for it.
	verdictTimeout = time.Second
	// maxVerdicts bounds what is remembered, twice: more passes than that in verdictAge are looked up each time.
	maxVerdicts = 1 << 16
)

// authorize is GET /auth?sale=…, for the auth_request of a proxy: 204 and the user when a pass of that sale was shown whose
// turn or order stands, else 401 (no such pass) or 403 (no longer). When that cannot be found out it is 503, never either.
func (s *Server) authorize(c *echo.Context) error {
	sale := c.QueryParam("sale")
	if !queue.ValidID(sale) {
		return badRequest("say of which sale the pass must be: ?sale=phone-x")
	}
	pass, err := s.passes.verify(passOf(c.Request()), sale)
	if err != nil {
		return err
	}
	stands, err := s.verdicts.of(c.Request().Context(), pass)
	if err != nil {
		return err
	}
	if !stands {
		return &queue.Error{Code: queue.Forbidden, Message: "the turn or order of this pass does not stand any more"}
	}
	header := c.Response().Header()
	header.Set(headerPassUser, headerSafe(pass.Subject))
	return c.NoContent(http.StatusNoContent)
}

// passOf takes the pass out of a request. X-Sluice-Pass counts first and Authorization last, because a shop may need that
// one for itself; nothing else is tried when the one that counts is wrong.
func passOf(r *http.Request) string {
	if pass := r.Header.Get(headerPass); pass != "" {
		return pass
	}
	if pass := r.URL.Query().Get("pass"); pass != "" {
		return pass
	}
	pass, ok := bearerOf(r.Header.Get(echo.HeaderAuthorization))
	if !ok {
		return ""
	}
	return pass
}

// headerSafe writes a user id so that any header can hold it and no two are the same: all but letters, digits, - . _ and ~
// becomes %XX, which the decoders of all languages read alike, those for forms as well.
func headerSafe(user string) string { return strings.ReplaceAll(url.QueryEscape(user), "+", "%20") }

// stands asks Redis whether the turn or order of a verified pass does. It blocks on Redis.
func (s *Server) stands(ctx context.Context, pass passClaims) (bool, error) {
	settings, err := s.settings(ctx, pass.Sale)
	if queue.CodeOf(err) == queue.NoSuchSale {
		return false, nil // archived since
	}
	if err != nil {
		return false, err
	}
	seat, err := s.line.Look(ctx, pass.Sale, pass.Subject)
	if queue.IsOver(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at a seat of sale %s: %w", pass.Sale, err)
	}
	if g, ok := groundOf(settings, seat); ok && g.bears(pass) {
		return true, nil
	}
	if seat.State == queue.Recovering {
		return false, errUnsettled()
	}
	return false, nil
}

// verdicts remembers for a moment which passes stand. Each pass has its own: one that was just given is never answered by
// what was true before it. Only passes that were verified come here, so nobody can fill it with made-up ones.
type verdicts struct {
	ask      func(context.Context, passClaims) (bool, error)
	now      func() time.Time
	patience time.Duration // how long ask may take
	most     int           // passes that one generation remembers
	flights  singleflight.Group

	mu         sync.Mutex
	young, old map[string]verdict // by jti; old are those from before the last change of guard
	since      time.Time          // of that
}

// verdict is whether a pass stands, as of some moment.
type verdict struct {
	stands bool
	at     time.Time
}

func newVerdicts(ask func(context.Context, passClaims) (bool, error), now func() time.Time) *verdicts {
	return &verdicts{ask: ask, now: now, patience: verdictTimeout, most: maxVerdicts, young: map[string]verdict{}}
}

// of says whether a pass stands, as of verdictAge ago at most. Those who ask about one at the same time share one question.
// It blocks for its patience at most; errors are Unavailable.
func (v *verdicts) of(ctx context.Context, pass passClaims) (bool, error) {
	if known, ok := v.known(pass.ID); ok {
		return known, nil
	}
	answers := v.flights.DoChan(pass.ID, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), v.patience) // others wait for it too
		defer cancel()
		at := v.now()
		stands, err := v.ask(ctx, pass)
		if err == nil {
			v.keep(pass.ID, verdict{stands: stands, at: at})
		}
		return stands, err
	})
	// Not everything that is asked ends with its context at once.
	timeout := time.NewTimer(v.patience)
	defer timeout.Stop()
	select {
	case a := <-answers:
		stands, _ := a.Val.(bool)
		return stands && a.Err == nil, a.Err
	case <-timeout.C:
	case <-ctx.Done():
	}
	return false, &queue.Error{
		Code: queue.Unavailable, Message: "whether the pass still stands cannot be found out just now; try again in a moment",
		RetryAfter: time.Second, Err: context.DeadlineExceeded,
	}
}

func (v *verdicts) known(id string) (stands, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	found, ok := v.young[id]
	if !ok {
		found, ok = v.old[id]
	}
	if age := v.now().Sub(found.at); !ok || age < 0 || age >= verdictAge {
		return false, false
	}
	return found.stands, true
}

// keep remembers a verdict. What is older than verdictAge, and more, goes with the change of guard.
func (v *verdicts) keep(id string, found verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.young) >= v.most || found.at.Sub(v.since) >= verdictAge {
		v.young, v.old, v.since = map[string]verdict{}, v.young, found.at
	}
	v.young[id] = found
}
