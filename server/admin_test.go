package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/queue"
)

// adminCalls are all calls of the admin API.
func adminCalls() []struct{ method, path string } {
	return []struct{ method, path string }{
		{http.MethodGet, "/api/v1/admin/sales"},
		{http.MethodPut, "/api/v1/admin/sales/solo"},
		{http.MethodGet, "/api/v1/admin/sales/solo"},
		{http.MethodPost, "/api/v1/admin/sales/solo/open"},
		{http.MethodPost, "/api/v1/admin/sales/solo/pause"},
		{http.MethodPost, "/api/v1/admin/sales/solo/resume"},
		{http.MethodPost, "/api/v1/admin/sales/solo/close"},
		{http.MethodGet, "/api/v1/admin/sales/solo/audit"},
		{http.MethodGet, "/api/v1/admin/sales/solo/live"},
		{http.MethodGet, "/api/v1/admin/sales/solo/orders"},
		{http.MethodGet, "/api/v1/admin/sales/solo/orders.csv"},
		{http.MethodGet, "/api/v1/admin/audit-log"},
		{http.MethodGet, "/api/v1/admin/about"},
	}
}

func TestOnlyTheAdminTokenOpensTheAdminAPI(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for name, header := range map[string][]string{
		"nothing":              {},
		"a user's token":       b.as("admin"),
		"part of the token":    {"Authorization", "Bearer " + testAdminToken[:10]},
		"the token and more":   {"Authorization", "Bearer " + testAdminToken + "x"},
		"an empty token":       {"Authorization", "Bearer "},
		"without Bearer":       {"Authorization", testAdminToken},
		"the token as a user":  {"X-User-Id", "admin", "X-Token", testAdminToken},
		"the server's secret":  {"Authorization", "Bearer " + string(testSecret())},
		"the token in a query": {"X-Nothing", "x"},
	} {
		for _, call := range adminCalls() {
			b.server.attempts = newAttempts() // what is told to somebody who guesses and guesses has tests of its own
			a := b.send(call.method, call.path+"?token="+strings.ReplaceAll(testAdminToken, " ", "+"), "", header...)
			if a.status != http.StatusUnauthorized && a.status != http.StatusTooManyRequests {
				t.Errorf("%s: %s %s: got %d", name, call.method, call.path, a.status)
			}
		}
	}
	if len(b.line.steps) > 0 {
		t.Errorf("the line was told to %v", b.line.steps)
	}
}

func TestWithoutAnAdminTokenTheAdminAPIIsOff(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *Options) { o.AdminToken = "" })
	for _, call := range adminCalls() {
		for _, token := range []string{"Bearer ", "Bearer x", ""} {
			a := b.send(call.method, call.path, "", "Authorization", token)
			b.mustFail(a, http.StatusForbidden, queue.Forbidden)
			if detail, _ := a.field(t, "detail").(string); !strings.Contains(detail, "--admin-token") {
				t.Errorf("says %q", detail)
			}
		}
	}
}

func TestTheOperatorSeesSettingsAndLiveFigures(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	a := b.send(http.MethodGet, "/api/v1/admin/sales/phone-x", "", b.asAdmin()...)
	if a.status != http.StatusOK || a.field(t, "waiting") != 7.0 || a.field(t, "state") != "open" || a.field(t, "lobby") != "30m0s" ||
		a.field(t, "opens_at") != "2026-12-01T11:59:00Z" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %d %s", a.status, a.body)
	}
	delete(b.snaps, "phone-x")
	a = b.send(http.MethodGet, "/api/v1/admin/sales/phone-x", "", b.asAdmin()...)
	if a.status != http.StatusOK || a.field(t, "waiting") != nil || a.field(t, "state") != "open" {
		t.Errorf("of a sale that is not read yet: got %d %s", a.status, a.body)
	}
	a = b.send(http.MethodGet, "/api/v1/admin/sales", "", b.asAdmin()...)
	if sales, _ := a.field(t, "sales").([]any); len(sales) != 2 {
		t.Errorf("got %d %s", a.status, a.body)
	}
	b.mustFail(b.send(http.MethodGet, "/api/v1/admin/sales/nowhere", "", b.asAdmin()...), http.StatusNotFound, queue.NoSuchSale)
}

func TestTheStateFollowsFromTheTimes(t *testing.T) {
	t.Parallel()
	sale := phoneX()
	for _, tc := range []struct {
		at     time.Duration // from the opening
		change func(*queue.Sale)
		want   queue.State
	}{
		{-31 * time.Minute, nil, queue.Scheduled},
		{-30 * time.Minute, nil, queue.Lobby},
		{-time.Millisecond, nil, queue.Lobby},
		{0, nil, queue.Open},
		{61*time.Minute - time.Millisecond, nil, queue.Open},
		{61 * time.Minute, nil, queue.Closed},
		{-24 * time.Hour, func(s *queue.Sale) { s.Lobby = 0 }, queue.Lobby},
		{-time.Minute, func(s *queue.Sale) { s.Line.Order = queue.Off }, queue.Scheduled},
	} {
		changed := sale
		if tc.change != nil {
			tc.change(&changed)
		}
		if got := stateAt(changed, sale.OpensAt.Add(tc.at)); got != tc.want {
			t.Errorf("%s from the opening: %s, want %s", tc.at, got, tc.want)
		}
	}
}

// fakeAuditor answers with what a test wants.
type fakeAuditor struct {
	audit any
	err   error
}

func (f fakeAuditor) Audit(context.Context, string) (any, error) { return f.audit, f.err }

const anAudit = `{"sale":"solo","at":1,"balanced":true,"items":[],"redis":{"balanced":true},
	"database":{"balanced":true,"double_live":0,"over_limit":0},"unmatched":[],"in_flight":0,"outbox":0,
	"broker":{"orders":0,"dead":0,"away":false},"problems":[]}`

func TestTheAuditIsPassedOnAsItIs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		auditor Auditor
		status  int
	}{
		"an audit":   {fakeAuditor{audit: json.RawMessage(anAudit)}, http.StatusOK},
		"no auditor": {nil, http.StatusServiceUnavailable},
		"no sale":    {fakeAuditor{err: &queue.Error{Code: queue.NoSuchSale, Message: "m"}}, http.StatusNotFound},
		"a failure":  {fakeAuditor{err: errors.New("refused")}, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(o *Options) { o.Auditor = tc.auditor })
			a := b.send(http.MethodGet, "/api/v1/admin/sales/solo/audit", "", b.asAdmin()...)
			if a.status != tc.status || (tc.status == http.StatusOK && a.field(t, "balanced") != true) {
				t.Errorf("got %d %s", a.status, a.body)
			}
		})
	}
}

// Only a sale file can be tried out. Whoever thinks that this goes for every change is told so before anything has changed.
func TestAChangeThatCannotBeTriedOutIsNotMade(t *testing.T) {
	t.Parallel()
	log := &memoryLog{}
	b := newBench(t, func(o *Options) { o.AuditLog = log })
	writes := b.journal()
	for _, call := range [][3]string{
		{http.MethodPost, "/pause", ""}, {http.MethodPost, "/close", ""}, {http.MethodPost, "/recover", ""},
		{http.MethodPatch, "/line", `{"rate":5}`}, {http.MethodPost, "/stock", `{"total":9}`},
		{http.MethodPost, "/extend", `{"closes_at":"2026-12-01T14:00:00Z"}`},
	} {
		a := b.send(call[0], "/api/v1/admin/sales/solo"+call[1]+"?dry_run=true", call[2], b.asAdmin()...)
		b.mustFail(a, http.StatusUnprocessableEntity, queue.Invalid)
	}
	if len(*writes) > 0 || len(log.changes) > 0 {
		t.Errorf("wrote %v and logged %v", *writes, log.changes)
	}
}

func TestWhoGuessesTheAdminTokenIsLimitedAndLocksNobodyOut(t *testing.T) {
	t.Parallel()
	now := testNow()
	b := newBench(t, func(o *Options) {
		o.TrustedProxies, o.Now = []string{"192.0.2.1"}, func() time.Time { return now }
	})
	guess := func(address string) answer {
		return b.send(http.MethodGet, "/api/v1/admin/sales", "", "Authorization", "Bearer guess", "X-Forwarded-For", address)
	}
	for range attemptsAddress {
		b.mustFail(guess("203.0.113.7"), http.StatusUnauthorized, queue.Unauthenticated)
	}
	a := guess("203.0.113.7")
	b.mustFail(a, http.StatusTooManyRequests, queue.Limited)
	if a.header.Get("Retry-After") == "" || a.header.Get(headerLimit) != "10" || a.header.Get(headerRemaining) != "0" {
		t.Errorf("got %v", a.header)
	}
	if a := b.send(http.MethodGet, "/api/v1/admin/sales", "", append(b.asAdmin(), "X-Forwarded-For", "203.0.113.7")...); a.status != http.StatusOK {
		t.Errorf("the operator at the guesser's address got %d", a.status)
	}
	// With ever new addresses all together are limited, and no more than so many are remembered.
	limited := 0
	for i := range 2 * attemptsKept {
		if guess(fmt.Sprintf("198.51.%d.%d", i/250, i%250)).status == http.StatusTooManyRequests {
			limited++
		}
	}
	if limited != 2*attemptsKept-(attemptsNode-attemptsAddress) || len(b.server.attempts.addresses) > attemptsKept {
		t.Errorf("%d of %d guesses were limited, with %d addresses in memory", limited, 2*attemptsKept, len(b.server.attempts.addresses))
	}
	now = now.Add(attemptsPer)
	b.mustFail(guess("203.0.113.7"), http.StatusUnauthorized, queue.Unauthenticated)
	if a := b.send(http.MethodGet, "/api/v1/admin/sales", ""); a.status != http.StatusUnauthorized {
		t.Errorf("without a token: got %d", a.status)
	}
}
