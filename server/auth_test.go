package server

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/queue"
)

// clock is the time of a test, in ms after testNow.
type clock struct{ after atomic.Int64 }

func (c *clock) now() time.Time {
	return testNow().Add(time.Duration(c.after.Load()) * time.Millisecond)
}

// door is a server that a proxy asks, and how it is answered.
type door struct {
	*bench
	clock clock
	looks atomic.Int64

	mu   sync.Mutex
	seat func(user string) queue.Seat
	err  error
}

func newDoor(t *testing.T, change func(*Options)) *door {
	d := &door{seat: onTurn}
	d.bench = newBench(t, func(o *Options) {
		o.Now = d.clock.now
		if change != nil {
			change(o)
		}
	})
	d.line.look = func(_, user string) (queue.Seat, error) {
		d.looks.Add(1)
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.seat(user), d.err
	}
	d.line.join = func(req queue.JoinRequest) (queue.Seat, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.seat(req.User), d.err
	}
	return d
}

// becomes is what the line says from now on.
func (d *door) becomes(seat func(user string) queue.Seat, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seat, d.err = seat, err
}

// ask shows a pass and returns the status.
func (d *door) ask(pass string) int {
	d.Helper()
	a := d.send(http.MethodGet, "/api/v1/auth?sale=phone-x", "", "X-Sluice-Pass", pass)
	if user := a.header.Get("X-Sluice-User"); (a.status == http.StatusNoContent) != (user != "") || a.header.Get("Cache-Control") != "no-store" {
		d.Errorf("%d with the user %q and %v", a.status, user, a.header)
	}
	return a.status
}

// is returns a seat like onTurn's with another status.
func is(status queue.SeatStatus) func(string) queue.Seat {
	return func(user string) queue.Seat { s := onTurn(user); s.Status = status; return s }
}

func TestARevokedPassIsRefusedWithinASecond(t *testing.T) {
	t.Parallel()
	paid := func(user string) queue.Seat { return buyer(user, queue.Paid, 0) }
	off := func(user string) queue.Seat {
		return queue.Seat{User: user, State: queue.Open, Stock: queue.Available, Epoch: 2}
	}
	for name, c := range map[string]struct{ before, after func(string) queue.Seat }{
		"the turn has ended":                       {onTurn, is(queue.Missed)},
		"the turn has ended as the stock is gone":  {onTurn, is(queue.Waiting)},
		"the seat was left":                        {onTurn, off},
		"another seat was taken, and has a turn":   {onTurn, func(user string) queue.Seat { s := onTurn(user); s.Ticket++; return s }},
		"the sale has closed":                      {onTurn, func(user string) queue.Seat { s := onTurn(user); s.State = queue.Closed; return s }},
		"the order was cancelled":                  {paid, is(queue.Missed)},
		"the order was cancelled, there is a turn": {paid, onTurn},
		"the order was cancelled, there is another": {paid, func(user string) queue.Seat {
			s := buyer(user, queue.Reserved, 0)
			s.Order.ID = "another"
			return s
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDoor(t, nil)
			d.becomes(c.before, nil)
			pass := d.renew("ann")
			if got := d.ask(pass); got != http.StatusNoContent {
				t.Fatalf("while it stands: got %d", got)
			}
			d.becomes(c.after, nil)
			for d.clock.after.Load() < 999 {
				d.clock.after.Add(37)
				d.ask(pass)
			}
			if got := d.ask(pass); got != http.StatusForbidden {
				t.Errorf("a second later: got %d, want 403", got)
			}
		})
	}
}

func TestATurnThatBecameAnOrderOrWasGivenBackStillStands(t *testing.T) {
	t.Parallel()
	d := newDoor(t, nil)
	pass := d.renew("ann")
	for name, seat := range map[string]func(string) queue.Seat{
		"bought":   func(user string) queue.Seat { return buyer(user, queue.Reserved, 0) },
		"reclaims": func(user string) queue.Seat { s := onTurn(user); s.Epoch++; return s },
		"paused":   func(user string) queue.Seat { s := onTurn(user); s.State = queue.Paused; return s },
	} {
		d.becomes(seat, nil)
		d.clock.after.Add(1000)
		if got := d.ask(pass); got != http.StatusNoContent {
			t.Errorf("%s: got %d", name, got)
		}
	}
}

func TestAPassIsLookedUpOnceInAWhileAndANewOneAtOnce(t *testing.T) {
	t.Parallel()
	d := newDoor(t, nil)
	pass := d.renew("ann")
	for range 100 {
		d.ask(pass)
	}
	if got := d.looks.Load(); got != 1 {
		t.Errorf("Redis was asked %d times at one moment", got)
	}
	d.becomes(is(queue.Missed), nil)
	d.clock.after.Add(500)
	if got := d.ask(pass); got != http.StatusForbidden {
		t.Errorf("got %d", got)
	}
	// The verdict on the old pass says nothing about one that was given after it.
	d.becomes(func(user string) queue.Seat { return buyer(user, queue.Reserved, 0) }, nil)
	if got := d.ask(d.renew("ann")); got != http.StatusNoContent {
		t.Errorf("a pass from after that: got %d", got)
	}
}

func TestThoseWhoAskAtOnceShareOneLook(t *testing.T) {
	t.Parallel()
	const many = 50
	asked, answer := make(chan struct{}, many), make(chan struct{})
	v := newVerdicts(func(context.Context, passClaims) (bool, error) { asked <- struct{}{}; <-answer; return true, nil }, testNow)
	v.patience = patient
	var group sync.WaitGroup
	for range many {
		group.Go(func() {
			if ok, err := v.of(t.Context(), passClaims{ID: "one"}); !ok || err != nil {
				t.Errorf("got %v, %v", ok, err)
			}
		})
	}
	<-asked
	close(answer)
	group.Wait()
	if got := len(asked); got != 0 {
		t.Errorf("Redis was asked %d times more", got)
	}
}

func TestWhileRedisIsAwayAPassIsNeitherTakenNorRefused(t *testing.T) {
	t.Parallel()
	d := newDoor(t, nil)
	pass := d.renew("ann")
	for name, err := range map[string]error{"away": errDown, "broken": fmt.Errorf("read: connection reset")} {
		d.becomes(onTurn, err)
		if got := d.ask(pass); got != http.StatusServiceUnavailable {
			t.Errorf("%s: got %d", name, got)
		}
	}
	// What Redis has lost is not revoked.
	d.becomes(func(user string) queue.Seat { s := is(queue.NoSeat)(user); s.State = queue.Recovering; return s }, nil)
	if got := d.ask(pass); got != http.StatusServiceUnavailable {
		t.Errorf("while the sale is put right: got %d", got)
	}
	b := d.send(http.MethodPost, "/api/v1/sales/phone-x/pass", "", d.as("ann")...)
	d.mustFail(b, http.StatusServiceUnavailable, queue.Unavailable)
	d.becomes(onTurn, nil)
	if got := d.ask(pass); got != http.StatusNoContent {
		t.Errorf("when it is back: got %d", got)
	}
}

func TestARedisThatDoesNotAnswerHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	d := newDoor(t, nil)
	pass := d.renew("ann")
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	d.line.look = func(string, string) (queue.Seat, error) { <-ended; return queue.Seat{}, errDown }
	d.server.verdicts.patience = 10 * time.Millisecond
	if got := d.ask(pass); got != http.StatusServiceUnavailable {
		t.Errorf("got %d", got)
	}
}

func TestASaleThatIsNoMoreHasNoPasses(t *testing.T) {
	t.Parallel()
	d := newDoor(t, nil)
	pass := d.renew("ann")
	delete(d.snaps, "phone-x")
	d.line.mu.Lock()
	delete(d.line.sales, "phone-x")
	d.line.mu.Unlock()
	d.store.set(func() { delete(d.store.sales, "phone-x") })
	if got := d.ask(pass); got != http.StatusForbidden {
		t.Errorf("got %d", got)
	}
}

func TestAProxyMustSayOfWhichSale(t *testing.T) {
	t.Parallel()
	d := newDoor(t, nil)
	pass := d.renew("ann")
	for _, query := range []string{"", "?sale=", "?sale=Phone%20X", "?pass=" + pass} {
		d.mustFail(d.send(http.MethodGet, "/api/v1/auth"+query, "", "X-Sluice-Pass", pass), http.StatusBadRequest, queue.BadRequest)
	}
}

func TestAPassMayComeInAHeaderOrTheQuery(t *testing.T) {
	t.Parallel()
	d := newDoor(t, nil)
	pass := d.renew("ann")
	for name, c := range map[string]struct {
		query  string
		header []string
		want   int
	}{
		"as a bearer token":                       {"", []string{"Authorization", "Bearer " + pass}, http.StatusNoContent},
		"in its own header":                       {"", []string{"X-Sluice-Pass", pass}, http.StatusNoContent},
		"in the query":                            {"&pass=" + pass, nil, http.StatusNoContent},
		"beside the shop's own bearer token":      {"", []string{"X-Sluice-Pass", pass, "Authorization", "Bearer of-the-shop"}, http.StatusNoContent},
		"in the query, beside the shop's own one": {"&pass=" + pass, []string{"Authorization", "Bearer of-the-shop"}, http.StatusNoContent},
		"a wrong one before a good one":           {"&pass=" + pass, []string{"X-Sluice-Pass", "wrong"}, http.StatusUnauthorized},
		"not as a bearer token":                   {"", []string{"Authorization", "Basic " + pass}, http.StatusUnauthorized},
		"nowhere":                                 {"", nil, http.StatusUnauthorized},
	} {
		if a := d.send(http.MethodGet, "/api/v1/auth?sale=phone-x"+c.query, "", c.header...); a.status != c.want {
			t.Errorf("%s: got %d %s, want %d", name, a.status, a.body, c.want)
		}
	}
}

func TestAUserIsSafeAsAHeader(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, user := range []string{"ann", "a b", "a+b", "a%20b", "a@b.example", "手机", "a,b", `a"b;c=d`, "\u2028", "a/b?c#d", "\u00a0", "%"} {
		got := headerSafe(user)
		if strings.Trim(got, tokenChars+"%~") != "" {
			t.Errorf("%q is %q", user, got)
		}
		for name, decode := range map[string]func(string) (string, error){"path": url.PathUnescape, "form": url.QueryUnescape} {
			if back, err := decode(got); err != nil || back != user {
				t.Errorf("%q is %q, which as a %s is %q, %v", user, got, name, back, err)
			}
		}
		if other, twice := seen[got]; twice {
			t.Errorf("%q and %q are both %q", user, other, got)
		}
		seen[got] = user
	}
	d := newDoor(t, nil)
	a := d.send(http.MethodGet, "/api/v1/auth?sale=phone-x", "", "X-Sluice-Pass", d.renew("安 e\u0301+"))
	if got, want := a.header.Get("X-Sluice-User"), "%E5%AE%89%20e%CC%81%2B"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheNodesLimitIsForPassesToo(t *testing.T) {
	t.Parallel()
	d := newDoor(t, func(o *Options) { o.NodeLimit = queue.Rate{N: 2, Per: time.Second} })
	pass := d.renew("ann")
	if got := d.ask(pass); got != http.StatusNoContent {
		t.Errorf("got %d", got)
	}
	if got := d.ask(pass); got != http.StatusTooManyRequests {
		t.Errorf("beyond the limit: got %d", got)
	}
}

func TestWhatIsRememberedOfPassesIsBounded(t *testing.T) {
	t.Parallel()
	var now clock
	v := newVerdicts(func(context.Context, passClaims) (bool, error) { return true, nil }, now.now)
	v.most = 100
	size := func() int { return len(v.young) + len(v.old) }
	for i := range 3*v.most + 5 {
		v.keep(fmt.Sprint(i), verdict{stands: true, at: now.now()})
		if size() > 2*v.most {
			t.Fatalf("%d passes are remembered", size())
		}
	}
	for range 3 {
		now.after.Add(500)
		v.keep("one", verdict{stands: true, at: now.now()})
	}
	if size() > 2 {
		t.Errorf("%d passes are remembered of a second ago", size())
	}
}

func TestPassesAreInNoLog(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	d := newDoor(t, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	pass := d.renew("ann")
	at := "/api/v1/auth?sale=phone-x&pass="
	d.send(http.MethodGet, at+pass, "")
	d.send(http.MethodGet, at+pass[:len(pass)-9], "", "Authorization", "Bearer "+pass)
	d.clock.after.Add(1000)
	d.becomes(onTurn, fmt.Errorf("read: connection reset"))
	d.send(http.MethodGet, at+pass, "", "X-Sluice-Pass", pass)
	if got := text.String(); strings.Contains(got, pass[:len(pass)-9]) || strings.Contains(got, "pass=") || !strings.Contains(got, "connection reset") {
		t.Errorf("logged:\n%s", got)
	}
}
