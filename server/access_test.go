package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/queue"
)

// ask makes a request and returns the status, the headers and the body. It may be called from any goroutine.
func (f *fair) ask(n *node, method, path, token, body string, headers ...string) (int, http.Header, string) {
	req, err := http.NewRequestWithContext(context.Background(), method, n.url+path, strings.NewReader(body))
	if err != nil {
		f.Error(err)
		return 0, nil, ""
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.Error(err)
		return 0, nil, ""
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		f.Error(err)
	}
	return resp.StatusCode, resp.Header, string(data)
}

// seatOver asks for a seat over HTTP and returns the status and the reason of a refusal.
func (s *shopper) seatOver(n *node, body string, headers ...string) (int, queue.Reason) {
	status, _, text := s.ask(n, http.MethodPost, "/api/v1/sales/"+s.sale+"/seat", s.token, body, headers...)
	var answer problem
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		s.Errorf("%s: %v: %s", s.user, err, text)
	}
	if (status == http.StatusForbidden) != (answer.Code == queue.Forbidden) || (status == http.StatusForbidden) != (answer.Reason != "") {
		s.Errorf("%s got %d %s", s.user, status, text)
	}
	return status, answer.Reason
}

// helloWith says hello and brings something along.
func (t *tab) helloWith(code, challenge string) {
	t.Helper()
	t.say(fmt.Sprintf(`{"type":"hello","token":%q,"code":%q,"challenge":%q}`, t.token, code, challenge))
}

// stored is everything that Redis has of the sale, but for what nodes note of themselves.
func (f *fair) stored() map[string]any {
	f.Helper()
	all := map[string]any{}
	for _, name := range []string{"seats", "codes", "used", "coded", "addresses", "conn", "away"} {
		key := "sluice:{" + f.sale + "}:" + name
		if f.rdb.Type(f.Context(), key).Val() == "hash" {
			all[name] = f.rdb.HGetAll(f.Context(), key).Val()
		} else {
			all[name] = f.rdb.Exists(f.Context(), key).Val()
		}
	}
	all["issued"] = f.rdb.HGet(f.Context(), "sluice:{"+f.sale+"}:meta", "issued").Val()
	return all
}

func TestAccessRulesRefuseOverHTTPAndSocketsAlike(t *testing.T) {
	t.Parallel()
	trusting := change{server: func(o *Options) { o.TrustedProxies = []string{"127.0.0.0/8"} }}
	for name, rule := range map[string]struct {
		file   string
		reason queue.Reason
		code   string // of somebody who is let in
		bad    string // of somebody who is not
		from   string
		badOne string // the address of somebody who is not
	}{
		"no code":                       {file: "codes: [ { code: OPEN-SESAME, uses: 2 } ]", reason: queue.CodeNeeded, code: " OPEN-SESAME\n"},
		"a wrong code":                  {file: "codes: [ { code: OPEN-SESAME, uses: 2 } ]", reason: queue.CodeUsed, code: "OPEN-SESAME", bad: "open-sesame"},
		"a code that cannot be one":     {file: "codes: [ { code: OPEN-SESAME, uses: 2 } ]", reason: queue.CodeUsed, code: "OPEN-SESAME", bad: strings.Repeat("x ", 1000)},
		"an address that is denied":     {file: "deny: [ 192.0.2.0/24 ]", reason: queue.Denied, from: "198.51.100.7", badOne: "192.0.2.7"},
		"a network that is not allowed": {file: "allow: [ '2001:db8:1::/48' ]", reason: queue.Denied, from: "2001:db8:1::7", badOne: "2001:db8:2::7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFair(t, saleOf(5, `opens_at: "+1h"`, "access: { "+rule.file+" }"), trusting)
			from := func(address string) http.Header {
				if address == "" {
					return nil
				}
				return http.Header{"X-Forwarded-For": {address}}
			}
			flat := func(h http.Header) []string {
				if h == nil {
					return nil
				}
				return []string{"X-Forwarded-For", h.Get("X-Forwarded-For")}
			}
			before := f.stored()
			eve := f.shopper("eve")
			body := func(code string) string { return fmt.Sprintf(`{"code":%q}`, code) }
			if status, why := eve.seatOver(f.main, body(rule.bad), flat(from(rule.badOne))...); status != http.StatusForbidden || why != rule.reason {
				t.Errorf("over HTTP eve got %d %q, want %q", status, why, rule.reason)
			}
			tab := eve.dial(f.main, from(rule.badOne))
			tab.helloWith(rule.bad, "")
			tab.mustEnd(closeNotAllowed, string(rule.reason))
			if diff := cmp.Diff(before, f.stored()); diff != "" {
				t.Errorf("a refusal changed something: %s", diff)
			}
			ann, bob := f.shopper("ann"), f.shopper("bob")
			if status, why := ann.seatOver(f.main, body(rule.code), flat(from(rule.from))...); status != http.StatusOK {
				t.Errorf("over HTTP ann got %d %q", status, why)
			}
			tab = bob.dial(f.main, from(rule.from))
			tab.helloWith(rule.code, "")
			tab.await("welcome")
			// Both come back without anything, from where they would not be let in.
			if status, why := ann.seatOver(f.main, "", flat(from(rule.badOne))...); status != http.StatusOK {
				t.Errorf("ann has a seat and got %d %q", status, why)
			}
			for _, seat := range []string{"", bob.seat} {
				tab := bob.dial(f.main, from(rule.badOne))
				tab.hello(seat)
				tab.await("welcome")
			}
		})
	}
}

func TestOneOfAHundredShoppersGetsInByACodeForOne(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5, `opens_at: "+1h"`, "access: { codes: [ { code: JUST-ME } ] }"))
	second := f.node("second")
	nodes := []*node{f.main, second}
	eventually(t, "the second node knows the sale", func() bool { return second.server.opts.Snapshots.Snapshot(f.sale) != nil })
	var in, used atomic.Int64
	var wg sync.WaitGroup
	for i := range 100 {
		s, n := f.shopper(fmt.Sprint("u", i)), nodes[i%2]
		if i%4 < 2 {
			tab := s.dial(n, nil)
			wg.Go(func() {
				tab.helloWith("JUST-ME", "")
				select {
				case fr := <-tab.frames:
					if fr.Type == "welcome" && fr.Seat != "" {
						in.Add(1)
					}
				case <-tab.stopped:
					if tab.code == closeNotAllowed && tab.reason == "code_used" {
						used.Add(1)
					}
				case <-time.After(patient):
				}
			})
			continue
		}
		wg.Go(func() {
			switch status, why := s.seatOver(n, `{"code":"JUST-ME"}`); {
			case status == http.StatusOK:
				in.Add(1)
			case why == queue.CodeUsed:
				used.Add(1)
			}
		})
	}
	wg.Wait()
	if in.Load() != 1 || used.Load() != 99 {
		t.Errorf("%d are in, and %d heard that the code is used", in.Load(), used.Load())
	}
}

func TestSeatsOfAnAddressAreCountedByItsNetwork(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5, `opens_at: "+1h"`, "access: { seats_per_address: 2 }"), change{server: func(o *Options) { o.TrustedProxies = []string{"127.0.0.0/8"} }})
	for i, test := range []struct {
		from string
		want int
	}{
		{"2001:db8::1", 200}, {"2001:db8::2", 200}, {"2001:db8::2:3", 403}, {"2001:db8:0:1::1", 200},
		{"192.0.2.1", 200}, {"::ffff:192.0.2.1", 200}, {"192.0.2.1", 403}, {"192.0.2.2", 200},
	} {
		if got, why := f.shopper(fmt.Sprint("u", i)).seatOver(f.main, "", "X-Forwarded-For", test.from); got != test.want {
			t.Errorf("request %d, from %s, got %d %q, want %d", i, test.from, got, why, test.want)
		}
	}
}

// TestNobodyIsShownTheCodesOfASale reads everything that a server says of a sale, and applies what an operator is shown.
func TestNobodyIsShownTheCodesOfASale(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	var mu sync.Mutex
	record := &recordedChanges{}
	file := saleOf(5, `opens_at: "+1h"`, "access: { codes: [ { code: SECRET-1 }, { code: SECRET-2, uses: 0 } ], challenge_url: 'http://127.0.0.1:9/', allow: [ ann, bob ] }")
	f := newFair(t, file, change{server: func(o *Options) {
		o.AuditLog = record
		o.Logger = slog.New(slog.NewTextHandler(lockedWriter{&mu, &logged}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}})
	admin := "/api/v1/admin/sales"
	var said []string
	for _, what := range [][3]string{
		{http.MethodGet, "/api/v1/sales", ""}, {http.MethodGet, "/api/v1/sales/" + f.sale, ""},
		{http.MethodGet, admin, testAdminToken}, {http.MethodGet, admin + "/" + f.sale, testAdminToken},
		{http.MethodPut, admin + "/" + f.sale, testAdminToken}, {http.MethodPut, admin + "/" + f.sale + "?dry_run=true", testAdminToken},
		{http.MethodPost, admin + "/" + f.sale + "/pause", testAdminToken}, {http.MethodPost, admin + "/" + f.sale + "/resume", testAdminToken},
		{http.MethodPatch, admin + "/" + f.sale + "/line", testAdminToken},
	} {
		body := ""
		switch what[0] {
		case http.MethodPut:
			body = file(f.sale)
		case http.MethodPatch:
			body = `{"rate":7}`
		}
		status, _, text := f.ask(f.main, what[0], what[1], what[2], body)
		if status != http.StatusOK {
			t.Errorf("%s %s: %d %s", what[0], what[1], status, text)
		}
		said = append(said, text)
	}
	if !strings.Contains(said[1], `"access":{"code":true,"challenge":true}`) || strings.Contains(said[1], "127.0.0.1") || strings.Contains(said[1], "bob") {
		t.Errorf("everybody is told %s", said[1])
	}
	said = append(said, string(encode(f.main.server.liveFrame(t.Context(), f.sale))))
	eve := f.shopper("eve")
	eve.seatOver(f.main, `{"code":"SECRET-2"}`)
	ann := f.shopper("ann")
	ann.seatOver(f.main, `{"code":"SECRET-2"}`)
	changes, err := json.Marshal(record.all())
	if err != nil || !strings.Contains(string(changes), `"codes":"2 kept"`) {
		t.Errorf("the audit log says %s, %v", changes, err)
	}
	mu.Lock()
	said = append(said, string(changes), logged.String())
	mu.Unlock()
	for _, text := range said {
		if strings.Contains(text, "SECRET") {
			t.Errorf("a code is shown: %s", text)
		}
	}

	// What an operator sees can be applied, and changes nothing.
	var view struct{ Access json.RawMessage }
	if err := json.Unmarshal([]byte(said[3]), &view); err != nil {
		t.Fatal(err)
	}
	before := f.stored()["codes"]
	f.apply(saleOf(6, `opens_at: "+1h"`, "access: "+string(view.Access)))
	if diff := cmp.Diff(before, f.stored()["codes"]); diff != "" || len(before.(map[string]string)) != 2 {
		t.Errorf("the codes are not what they were: %s", diff)
	}
	if status, _, text := f.ask(f.main, http.MethodPut, admin+"/"+f.sale, testAdminToken, saleOf(6, `opens_at: "+1h"`, "access: { codes: 3 kept }")(f.sale)); status != http.StatusConflict {
		t.Errorf("codes that there are not were kept: %d %s", status, text)
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// recordedChanges is an audit log in memory.
type recordedChanges struct {
	mu      sync.Mutex
	changes []Change
}

func (r *recordedChanges) Log(_ context.Context, change Change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, change)
	return nil
}

func (r *recordedChanges) Entries(context.Context, string, int64, int) ([]LogEntry, error) {
	return nil, nil
}

func (r *recordedChanges) all() []Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.changes)
}

// referee is a verifier of challenges: a solution counts once, and is right when it begins with "good".
type referee struct {
	*httptest.Server
	answer func(http.ResponseWriter, *http.Request) bool // true = it has answered

	mu    sync.Mutex
	asked []url.Values
}

func newReferee(t *testing.T, answer func(http.ResponseWriter, *http.Request) bool) *referee {
	t.Helper()
	r := &referee{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_ = req.ParseForm()
		r.mu.Lock()
		seen := slices.ContainsFunc(r.asked, func(v url.Values) bool { return v.Get("response") == req.PostForm.Get("response") })
		r.asked = append(r.asked, req.PostForm)
		r.mu.Unlock()
		if r.answer != nil && r.answer(w, req) {
			return
		}
		fmt.Fprintf(w, `{"success":%v,"hostname":"shop.example"}`, !seen && strings.HasPrefix(req.PostForm.Get("response"), "good"))
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *referee) questions() []url.Values {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked)
}

func (r *referee) file(more string) func(string) string {
	return saleOf(5, `opens_at: "+1h"`, "access: { challenge_url: '"+r.URL+"/verify'"+more+" }")
}

func TestAVerifierOfChallengesIsAskedOnceAndLast(t *testing.T) {
	t.Parallel()
	r := newReferee(t, nil)
	f := newFair(t, r.file(", codes: [ { code: JUST-US, uses: 2 } ]"), change{server: func(o *Options) { o.ChallengeSecret = "known there" }})
	before := f.stored()
	eve := f.shopper("eve")
	for body, want := range map[string]queue.Reason{
		`{"code":"JUST-US"}`:                    queue.ChallengeNeeded,
		`{"code":"JUST-US","challenge":"bad"}`:  queue.ChallengeNeeded,
		`{"challenge":"good 0"}`:                queue.CodeNeeded,
		`{"code":"wrong","challenge":"good 0"}`: queue.CodeUsed,
		`{"code":"JUST-US","challenge":"good ` + strings.Repeat("x", longestSolution) + `"}`: queue.ChallengeNeeded,
	} {
		if status, why := eve.seatOver(f.main, body); why != want {
			t.Errorf("with %.60s eve got %d %q, want %q", body, status, why, want)
		}
	}
	tab := eve.dial(f.main, nil)
	tab.helloWith("JUST-US", "bad again")
	tab.mustEnd(closeNotAllowed, "challenge_needed")
	if diff := cmp.Diff(before, f.stored()); diff != "" {
		t.Errorf("a refusal changed something: %s", diff)
	}
	if asked := r.questions(); len(asked) != 2 {
		t.Errorf("the verifier was asked %v, and was to be about two", asked)
	}

	ann, bob := f.shopper("ann"), f.shopper("bob")
	tab = ann.dial(f.main, nil)
	tab.helloWith("JUST-US", "good 1")
	tab.await("welcome")
	if status, why := bob.seatOver(f.main, `{"code":"JUST-US","challenge":"good 1"}`); why != queue.ChallengeNeeded {
		t.Errorf("with ann's solution bob got %d %q", status, why)
	}
	if status, _ := bob.seatOver(f.main, `{"code":"JUST-US","challenge":"good 2"}`); status != http.StatusOK {
		t.Errorf("bob got %d", status)
	}
	asked := r.questions()
	want := url.Values{"response": {"good 2"}, "remoteip": {"127.0.0.1"}, "secret": {"known there"}}
	if diff := cmp.Diff(want, asked[len(asked)-1]); diff != "" {
		t.Errorf("the verifier is asked in another way: %s", diff)
	}
	// Who holds a seat is not asked again, whatever they bring.
	if status, _ := bob.seatOver(f.main, `{"challenge":"good 3"}`); status != http.StatusOK {
		t.Errorf("bob came back and got %d", status)
	}
	tab = ann.dial(f.main, nil)
	tab.helloWith("", "good 4")
	tab.await("welcome")
	if n := len(r.questions()); n != len(asked) {
		t.Errorf("the verifier was asked about somebody who holds a seat")
	}
}

// TestAVerifierThatDoesNotAnswerLetsNobodyInAndTurnsNobodyAway: whatever is wrong with it, shoppers are told to come again.
func TestAVerifierThatDoesNotAnswerLetsNobodyInAndTurnsNobodyAway(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"it fails": func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(500); return true },
		"it sends elsewhere": func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/verify" {
				http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
				return true
			}
			return false
		},
		"it says nothing": func(http.ResponseWriter, *http.Request) bool { return true },
		"it says no word of it": func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, `{"ok":true}`)
			return true
		},
		"it says true alone": func(w http.ResponseWriter, _ *http.Request) bool { _, _ = io.WriteString(w, `true`); return true },
		"it says too much": func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, strings.Repeat(" ", longestAnswer)+`{"success":true}`)
			return true
		},
		"its headers have no end": func(w http.ResponseWriter, _ *http.Request) bool {
			for i := range 16 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", longestAnswer/8))
			}
			return false
		},
		"it hangs up": func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReferee(t, answer)
			f := newFair(t, r.file(""))
			before := f.stored()
			ann := f.shopper("ann")
			status, header, text := f.ask(f.main, http.MethodPost, "/api/v1/sales/"+f.sale+"/seat", ann.token, `{"challenge":"good"}`)
			if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || !strings.Contains(text, "challenge") {
				t.Errorf("got %d %v %s", status, header, text)
			}
			tab := ann.dial(f.main, nil)
			tab.helloWith("", "good")
			if fr := tab.await("error"); fr.Code != queue.Unavailable || fr.RetryAfter < 1000 {
				t.Errorf("got %s", fr.text)
			}
			if diff := cmp.Diff(before, f.stored()); diff != "" {
				t.Errorf("something changed: %s", diff)
			}
		})
	}
}

func TestTheURLOfAVerifierIsInNoError(t *testing.T) {
	t.Parallel()
	nobody := httptest.NewServer(nil)
	nobody.Close()
	err := newVerifier().solved(t.Context(), "", nobody.URL+"/verify?key=hush", "good", netip.Addr{})
	if text := fmt.Sprint(err, errors.Unwrap(err)); queue.CodeOf(err) != queue.Unavailable || strings.Contains(text, "hush") {
		t.Errorf("got %s", text)
	}
}

// TestASlowVerifierHoldsUpNobodyElse: while as many shoppers are asked about as may be, others come and go.
func TestASlowVerifierHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	release, held := make(chan struct{}), make(chan struct{}, 1000)
	r := newReferee(t, func(_ http.ResponseWriter, req *http.Request) bool {
		if strings.Contains(req.PostForm.Get("response"), "slow") {
			held <- struct{}{}
			<-release
		}
		return false
	})
	f := newFair(t, r.file(""))
	f.main.server.verifier.timeout = time.Hour // the test's own is shorter
	bob := f.shopper("bob")
	if status, why := bob.seatOver(f.main, `{"challenge":"good bob"}`); status != http.StatusOK {
		t.Fatalf("bob got %d %q", status, why)
	}
	var slow []*tab
	for i := range challengeAtOnce + 5 {
		tab := f.shopper(fmt.Sprint("slow", i)).dial(f.main, nil)
		tab.helloWith("", fmt.Sprint("good slow ", i))
		slow = append(slow, tab)
	}
	for range challengeAtOnce {
		<-held
	}
	tab, _, _ := bob.enter(f.main)
	tab.quiet()
	if eve := f.shopper("eve").dial(f.main, nil); eve != nil {
		eve.hello("")
		eve.mustEnd(closeNotAllowed, "challenge_needed")
	}
	if status, _, text := f.ask(f.main, http.MethodGet, "/api/v1/sales/"+f.sale, "", ""); status != http.StatusOK {
		t.Errorf("the sale is answered %d %s", status, text)
	}
	close(release)
	for _, tab := range slow {
		tab.await("welcome")
	}
}

// A node may have sales with different verifiers: what one of them does is no matter of the others'.
func TestASlowVerifierHoldsUpNoOtherVerifier(t *testing.T) {
	t.Parallel()
	release, held := make(chan struct{}), make(chan struct{}, challengeAtOnce)
	slow := newReferee(t, func(http.ResponseWriter, *http.Request) bool {
		held <- struct{}{}
		<-release
		return false
	})
	quick := newReferee(t, nil)
	v := newVerifier()
	v.timeout = time.Hour // the test's own is shorter
	var waiting sync.WaitGroup
	for i := range challengeWaiting {
		waiting.Go(func() { _ = v.solved(t.Context(), "", slow.URL+"/verify", fmt.Sprint("good ", i), netip.Addr{}) })
	}
	for range challengeAtOnce {
		<-held
	}
	for i := range challengeAtOnce + 1 {
		if err := v.solved(t.Context(), "", quick.URL, fmt.Sprint("good ", i), netip.Addr{}); err != nil {
			t.Fatalf("the other verifier was asked and said yes, and the answer is %v", err)
		}
	}
	for v.waitingFor(slow) < challengeWaiting { // until all are there
		runtime.Gosched()
	}
	if err := v.solved(t.Context(), "", slow.URL+"/verify", "good", netip.Addr{}); queue.CodeOf(err) != queue.Unavailable {
		t.Errorf("one too many for the slow one got %v", err)
	}
	close(release)
	go func() {
		for range held { // the others come after those
		}
	}()
	waiting.Wait()
	close(held)
	if len(v.crowds) != 0 {
		t.Errorf("after the last one %d hosts are remembered", len(v.crowds))
	}
}

// waitingFor is how many wait for a verifier.
func (v *verifier) waitingFor(r *referee) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if there := v.crowds[strings.TrimPrefix(r.URL, "http://")]; there != nil {
		return there.waiting
	}
	return 0
}
