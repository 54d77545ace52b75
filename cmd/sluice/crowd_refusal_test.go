package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// turnedAway sends a crowd and returns what it reported, as JSON and as its exit code and last words.
func (s *site) turnedAway(sale string, users int, flags ...string) (report crowdReport, code int, said string) {
	s.t.Helper()
	crowd := s.crowd(sale, users, append([]string{"--ramp", "0s", "--grab-delay", "0s", "--no-audit"}, flags...)...)
	code = crowd.wait()
	if err := json.Unmarshal([]byte(crowd.out.String()), &report); err != nil {
		s.t.Fatalf("understand the report of the crowd: %v\n%s", err, crowd.err.String())
	}
	truthful(s.t, report)
	want(s.t, "kinds of being cut off", len(report.Cut), 0)
	want(s.t, "unanswered", report.Unanswered, 0)
	return report, code, crowd.err.String()
}

// offered is a sale that everybody can buy in at once, under these access rules.
func (s *site) offered(access string) string {
	s.t.Helper()
	sale := freshID()
	file := fmt.Sprintf(`{"id": %q, "title": "Phone X", "items": [{"id": "main", "stock": 50}],
		"opens_at": "2026-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z", "line": {"turn": "10m"}, "access": %s}`, sale, access)
	eventually(s.t, "the sale is applied", func() bool {
		return s.ask(http.MethodPut, "/admin/sales/"+sale, e2eAdmin, file).status/100 == 2
	})
	return sale
}

// hold keeps a connection of the user from that address open.
func (s *site) hold(from, sale, user string) {
	s.t.Helper()
	conn := s.dial(sale, &net.TCPAddr{IP: net.ParseIP(from)})
	c := &caller{site: s, sale: sale, user: user, conn: conn}
	c.hello()
	c.hear("welcome")
	_ = conn.SetReadDeadline(time.Time{})
	go func() { // who reads answers pings; without that the server would think it gone
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				return
			}
		}
	}()
}

func TestWhoIsNotLetInIsNoUntruthInTheReport(t *testing.T) {
	t.Parallel()
	s := open(t, "--data-dir", t.TempDir(), "--auth", "jwt", "--conns-seat", "1")
	crowded := s.offered("{}")
	s.hold("127.0.0.1", crowded, "tab-1")
	for name, test := range map[string]struct {
		sale  string
		flags []string
		want  map[string]int64
		said  string // beside the outcome, of each shopper who was not let in
		hint  string
	}{
		"no code":        {s.offered(`{"codes": [{"code": "FRIENDS", "uses": 0}]}`), nil, map[string]int64{"code_needed": 4}, "", "--code"},
		"a wrong code":   {s.offered(`{"codes": [{"code": "FRIENDS", "uses": 0}]}`), []string{"--code", "FIENDS"}, map[string]int64{"code_used": 4}, "", "--code"},
		"a code for one": {s.offered(`{"codes": [{"code": "FRIEND"}]}`), []string{"--code", "FRIEND"}, map[string]int64{"success": 1, "code_used": 3}, "", "--code-file"},
		"a list":         {s.offered(`{"deny": ["crowd-2"]}`), nil, map[string]int64{"success": 3, "denied": 1}, "", "--prefix"},
		"an address":     {s.offered(`{"seats_per_address": 1}`), nil, map[string]int64{"success": 1, "denied": 3}, "", "--source"},
		"a challenge":    {s.offered(`{"challenge_url": "https://challenges.example/verify"}`), nil, map[string]int64{"challenge_needed": 4}, "", "challenge_url"},
		"another secret": {s.offered("{}"), []string{"--secret", "another"}, map[string]int64{"unauthenticated": 4}, "the token is not valid", "--secret-file"},
		"another, HTTP":  {s.offered("{}"), []string{"--secret", "another", "--http"}, map[string]int64{"unauthenticated": 4}, "the token is not valid", "--secret-file"},
		"guests":         {s.offered("{}"), []string{"--guests"}, map[string]int64{"forbidden": 4}, "guests are not allowed here: sign in first", "--secret"},
		"guests, HTTP":   {s.offered("{}"), []string{"--guests", "--http"}, map[string]int64{"forbidden": 4}, "guests are not allowed here: sign in first", "--secret"},
		"another tab":    {crowded, []string{"--prefix", "tab"}, map[string]int64{"success": 3, "too_many": 1}, "too many connections for this seat: at most 1", "--prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, code, said := (&site{process: &process{t: t}, url: s.url}).turnedAway(test.sale, 4, test.flags...)
			results(t, report, test.want)
			out := int64(4) - test.want["success"]
			if test.said != "" {
				for o := range test.want {
					if o != "success" {
						want(t, "who heard why", report.Refusals[o][test.said], out)
					}
				}
			}
			if len(report.Hints) != 1 || !strings.Contains(report.Hints[0], test.hint) {
				t.Errorf("the hints are %q, want one with %q", report.Hints, test.hint)
			}
			if shut := out == 4; shut != (code == exitFailed) || shut != strings.HasSuffix(said, "sluice: nobody was let in\n") {
				t.Errorf("exits with %d and says %q", code, tail(said))
			}
		})
	}
}

func TestWhoMeetsALimitUntilTheEndIsNotLeftWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s := open(t, "--data-dir", t.TempDir(), "--limit-address", "1/h")
	report, code, _ := s.turnedAway(s.offered("{}"), 4, "--http", "--timeout", "2s")
	results(t, report, map[string]int64{"no_turn": 1, "limited": 3})
	want(t, "exit code of grabs", code, exitOK)
	report, code, _ = s.turnedAway(s.offered("{}"), 4, "--timeout", "2s")
	results(t, report, map[string]int64{"limited": 4})
	want(t, "who was let in and could not grab", report.Joined, 1)
	want(t, "exit code of joins", code, exitOK)

	s = open(t, "--data-dir", t.TempDir(), "--conns-address", "2")
	sale := s.offered("{}")
	s.hold("127.0.0.3", sale, "one")
	s.hold("127.0.0.3", sale, "two")
	for _, flags := range [][]string{nil, {"--guests"}} {
		report, code, said := s.turnedAway(sale, 4, append(flags, "--source", "127.0.0.3", "--timeout", "2s")...)
		results(t, report, map[string]int64{"limited": 4})
		want(t, "exit code of connections", code, exitFailed)
		for why := range report.Refusals["limited"] {
			if !strings.HasPrefix(why, "too many connections from your address: at most 2") || !strings.HasSuffix(said, "sluice: nobody was let in\n") {
				t.Errorf("somebody heard %q, and it is said %q", why, tail(said))
			}
		}
		want(t, "kinds of what was heard", len(report.Refusals["limited"]), 1)
	}
}

func TestAReportForPeopleSaysOnceWhatMayHelp(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(v *stubVisit) {
		switch v.user {
		case "crowd-1":
			v.buy()
		case "crowd-2":
			_ = v.ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4401, "the token has expired"))
			v.gone()
		default:
			_ = v.ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4403, "code_needed"))
			v.gone()
		}
	})
	code, out, _ := sluice(t, "", "crowd", "--url", s.URL, "--sale", stubSale, "--users", "5", "--ramp", "0s", "--grab-delay", "0s", "--secret", stubSecret)
	want(t, "exit code", code, exitOK)
	want(t, "hints in the report", strings.Count(out, "\nhint: "), 2)
	for _, text := range []string{"code_needed      3\n", "unauthenticated  1\n                 1 × the token has expired\n", "\neveryone was told the truth\nhint: the sale asks for codes"} {
		if !strings.Contains(out, text) {
			t.Errorf("lacks %q:\n%s", text, out)
		}
	}
}

func TestWhoWasLetInIsNotKeptOutLater(t *testing.T) {
	t.Parallel()
	for _, code := range []int{4401, 4403, 4409} {
		s := newStub(t, func(v *stubVisit) {
			if v.n == 1 {
				v.welcome("main")
				v.send("queued", "ahead", 1)
				v.close(websocket.CloseServiceRestart)
				return
			}
			v.close(code)
		})
		report := s.crowd(1)
		untruthful(t, report, "1 shopper refused with an error")
		want(t, "failures", report.Failures[fmt.Sprintf("close %d the test wants it", code)], 1)
	}
}
