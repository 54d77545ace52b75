package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// audited lets the crowd read the stub's audit.
func audited(s *stub) func(*crowdOptions) {
	return func(o *crowdOptions) {
		o.Audit = func(context.Context) (auditReport, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			var a auditReport
			data, err := json.Marshal(s.audit)
			if err != nil {
				return a, err
			}
			return a, json.Unmarshal(data, &a)
		}
	}
}

// sellAndCount sells an order to everyone and counts them in the audit, miscount more than there are.
func sellAndCount(t *testing.T, miscount int, before ...func(*stubVisit)) *stub {
	var sold atomic.Int64
	var s *stub
	s = newStub(t, func(v *stubVisit) {
		v.welcome("main")
		for _, play := range before {
			play(v)
		}
		id := turnAndGrab(v)
		s.mu.Lock()
		s.audit = auditOf(int(sold.Add(1)) + 10 + miscount)
		s.mu.Unlock()
		v.send("success", "id", id, "order", v.order("confirmed"))
		v.gone()
	})
	s.setAudit(10) // others bought before the crowd came
	return s
}

func TestUnitsSoldMustBeThoseTheShoppersWereToldOf(t *testing.T) {
	t.Parallel()
	s := sellAndCount(t, 0)
	report := s.crowd(5, audited(s))
	truthful(t, report)
	want(t, "sold", report.Sold, 5)
	want(t, "told", report.ToldUnits, 5)

	s = sellAndCount(t, 1)
	untruthful(t, s.crowd(5, audited(s)), "6 units sold, and the shoppers were told of 5")
	s = sellAndCount(t, -1)
	untruthful(t, s.crowd(5, audited(s)), "4 units sold, and the shoppers were told of 5")
}

func TestAuditThatDoesNotHoldIsAProblem(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(v *stubVisit) { v.welcome("main"); v.send("closed"); v.gone() })
	s.audit["balanced"] = false
	s.audit["problems"] = []string{"item main: 3 + 4 is not 8"}
	untruthful(t, s.crowd(1, audited(s)), "the audit does not hold: item main: 3 + 4 is not 8")

	s.setAudit(0)
	s.audit["outbox"] = 1
	untruthful(t, s.crowd(1, audited(s)), "some orders never reached the database")
}

func TestAuditIsReadAgainUntilTheLastOrdersHaveArrived(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(v *stubVisit) { v.welcome("main"); v.send("closed"); v.gone() })
	calls := 0
	report := s.crowd(1, func(o *crowdOptions) {
		o.AuditPatience = patience
		o.Audit = func(context.Context) (auditReport, error) {
			calls++
			a := auditReport{Balanced: true}
			switch calls {
			case 2:
				a.InFlight = 1
			case 3:
				return a, errors.New("busy")
			case 4:
				a.Balanced = false
			}
			return a, nil
		}
	})
	truthful(t, report)
	want(t, "audits", calls, 5)
}

func TestAuditThatCannotBeTakenIsAProblem(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(v *stubVisit) { v.welcome("main"); v.send("closed"); v.gone() })
	calls := 0
	report := s.crowd(1, func(o *crowdOptions) {
		o.AuditPatience = time.Millisecond
		o.Audit = func(context.Context) (auditReport, error) {
			if calls++; calls == 1 {
				return auditReport{}, nil
			}
			return auditReport{}, errors.New("the server has gone")
		}
	})
	untruthful(t, report, "the audit could not be taken: the server has gone")
}

func TestUnpaidOrderMayHaveGivenItsUnitsBack(t *testing.T) {
	t.Parallel()
	at := wireTime{time.UnixMilli(1000)}
	orders := map[string][]wireOrder{
		"paid":    {{ID: "1", Qty: 1, Status: "paid", PayBy: 900}},
		"lapsed":  {{ID: "2", Qty: 2, Status: "confirmed", PayBy: 900}},
		"in time": {{ID: "3", Qty: 4, Status: "confirmed", PayBy: 1100}},
		"free":    {{ID: "4", Qty: 8, Status: "confirmed"}},
		"undone":  {{ID: "5", Qty: 16, Status: "rejected"}},
	}
	for sold, explained := range map[int64]bool{12: false, 13: true, 14: true, 15: true, 16: false} {
		r := crowdReport{Orders: orders, Sold: sold, Audit: &auditReport{At: at}}
		want(t, "explanation of what was sold", r.explains(), explained)
	}
}

func TestTurnIsMeasuredWhateverTheServersClockSays(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-time.Hour, 0, time.Hour} {
		var times turnTimes
		times.fastest.Store(math.MaxInt64)
		local := time.UnixMilli(1_700_000_000_000)
		server := local.Add(ahead)
		times.saw(server.UnixMilli(), local.Add(2*time.Millisecond)) // the fastest frame
		times.saw(server.UnixMilli(), local.Add(9*time.Millisecond))
		times.add(server.UnixMilli(), local.Add(7*time.Millisecond))
		want(t, "turn", math.Round(times.latency().Max), 5)
	}
}

func TestCrowdCommandReportsAndJudges(t *testing.T) {
	t.Parallel()
	s := sellAndCount(t, 0)
	args := []string{"crowd", "--url", s.URL, "--sale", stubSale, "--users", "4", "--ramp", "10ms", "--grab-delay", "0s",
		"--secret", stubSecret + ",another", "--admin-token", "admin", "--source", "127.0.0.1,127.0.0.2"}
	code, out, progress := sluice(t, "", args...)
	want(t, "exit code", code, 0)
	for _, text := range []string{"success        4\n", "everyone was told the truth", "verdict", "holds at", "grab      4"} {
		if !strings.Contains(out, text) {
			t.Errorf("the report lacks %q:\n%s", text, out)
		}
	}
	if !strings.Contains(progress, "done 4/4") {
		t.Errorf("progress: %q", progress)
	}

	s = sellAndCount(t, 0, func(v *stubVisit) { v.send("queued", "ahead", 1); v.send("queued", "ahead", 2) })
	args[2] = s.URL
	code, out, progress = sluice(t, "", append(args, "--json", "--prefix", "json")...)
	want(t, "exit code of a lie", code, 1)
	var report crowdReport
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("the report is no JSON: %v\n%s", err, out)
	}
	want(t, "order in the JSON", report.Orders["json-4"][0].ID, "order of json-4")
	want(t, "problems in the JSON", len(report.Problems), 1)
	if !strings.HasSuffix(progress, "sluice: a place in the line became worse 4 times\n") {
		t.Errorf("standard error: %q", progress)
	}

	s = sellAndCount(t, 1)
	args[2] = s.URL
	code, out, _ = sluice(t, "", append(args, "--no-audit")...)
	want(t, "exit code without an audit", code, 0)
	if strings.Contains(out, "verdict") {
		t.Errorf("an audit was printed:\n%s", out)
	}
}

func TestCrowdCommandSaysAtOnceWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	s.mux.HandleFunc("GET /api/v1/sales/unknown", func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, 404, object{"code": "no_such_sale", "detail": "There is no sale unknown."})
	})
	tests := map[string]struct {
		args []string
		code int
		says string
	}{
		"no tokens":        {[]string{"--sale", stubSale}, exitUsage, "give --secret or --secret-file as the server has it, or --guests"},
		"no sale":          {[]string{"--secret", "s"}, exitUsage, "--sale=ID"},
		"unknown sale":     {[]string{"--sale", "unknown", "--secret", "s"}, exitFailed, "look at the sale unknown: There is no sale unknown"},
		"codes and --http": {[]string{"--sale", stubSale, "--secret", "s", "--code", "A", "--http"}, exitUsage, "--code has no meaning"},
		"no codes":         {[]string{"--sale", stubSale, "--secret", "s", "--code-file", os.DevNull}, exitUsage, "there is no code in it"},
		"no users":         {[]string{"--sale", stubSale, "--secret", "s", "--users", "0"}, exitUsage, "at least one shopper"},
		"fraction":         {[]string{"--sale", stubSale, "--secret", "s", "--abandon", "2"}, exitUsage, "fraction from 0 to 1"},
		"http, abandoned":  {[]string{"--sale", stubSale, "--secret", "s", "--abandon", "0.5", "--http"}, exitUsage, "no meaning with --http"},
		"source":           {[]string{"--sale", stubSale, "--secret", "s", "--source", "here"}, exitUsage, "--source \"here\""},
		"admin URL":        {[]string{"--sale", stubSale, "--secret", "s", "--admin-token", "admin", "--admin-url", "here"}, exitUsage, "--admin-url: write it like"},
		"admin token":      {[]string{"--sale", stubSale, "--secret", "s", "--admin-token", "wrong"}, exitFailed, "--admin-token"},
		"too many files":   {[]string{"--sale", stubSale, "--secret", "s", "--users", "2000000000"}, exitFailed, "open files"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, said := sluice(t, "", append([]string{"crowd", "--url", s.URL}, test.args...)...)
			want(t, "exit code", code, test.code)
			want(t, "standard output", out, "")
			if !strings.Contains(said, test.says) {
				t.Errorf("said %q, want %q in it", said, test.says)
			}
		})
	}
}

func TestTheClockOfTheProgressNeverRepeats(t *testing.T) {
	t.Parallel()
	for d, text := range map[time.Duration]string{
		998 * time.Millisecond: "00:01.0", 1999 * time.Millisecond: "00:02.0", 2480 * time.Millisecond: "00:02.5",
		59960 * time.Millisecond: "01:00.0", 61 * time.Minute: "61:00.0",
	} {
		want(t, d.String(), clockTime(d), text)
	}
}

func TestOneIsNotMany(t *testing.T) {
	t.Parallel()
	var r crowdReport
	r.Unanswered, r.Shared, r.Moved, r.Users, r.ToldUnits, r.Audit = 1, 2, 1, 1, 1, &auditReport{Balanced: true}
	r.judge()
	want(t, "problems", strings.Join(r.Problems, "; "), "1 shopper left without an answer; 2 orders told to two shoppers; a shopper came back to another number 1 time")
	r.ToldUnits = 1
	var out strings.Builder
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"1 shopper at ", "0 users with two live orders", "1 unit by success, 0 sold meanwhile"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("lacks %q:\n%s", text, out.String())
		}
	}
}

func TestProgressNamesWhatHappens(t *testing.T) {
	t.Parallel()
	c := newCrowd(crowdOptions{Users: 9})
	c.counters.connected.Store(5)
	c.counters.phases[phaseWaiting].Store(3)
	c.counters.phases[phaseTurn].Store(1)
	c.counters.phases[phaseBuying].Store(1)
	c.counters.reconnects.Store(2)
	c.end(outcomeSuccess)
	c.end(outcomeSoldOut)
	c.end(outcomeSoldOut)
	want(t, "progress", c.Progress().String(),
		"00:00.0  connected 5  waiting 3  turns 1  unconfirmed 1  success 1  sold_out 2  reconnects 2  done 3/9")
}
