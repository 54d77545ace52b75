package main

import (
	"context"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// results fails the test unless the shoppers ended as expected.
func results(t *testing.T, report crowdReport, expected map[string]int64) {
	t.Helper()
	if diff := cmp.Diff(expected, report.Results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

// truthful fails the test when the crowd found a problem.
func truthful(t *testing.T, report crowdReport) {
	t.Helper()
	if len(report.Problems) > 0 {
		t.Errorf("problems: %q", report.Problems)
	}
}

// untruthful fails the test unless the crowd found just this problem.
func untruthful(t *testing.T, report crowdReport, problem string) {
	t.Helper()
	if diff := cmp.Diff([]string{problem}, report.Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestShopperWaitsGrabsAndGoesHomeWithAConfirmedOrder(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(v *stubVisit) {
		v.welcome("main")
		v.send("lobby", "entries", 3, "order", "fifo")
		v.send("queued", "ahead", 1, "stock", 5)
		v.send("turn", "until", 1)
		v.send("turn", "until", 2) // told again because it moved: no second grab
		id, item := v.grab()
		if item != "main" {
			v.t.Errorf("wants %q", item)
		}
		v.send("success", "id", id, "order", v.order("reserved"))
		v.send("queued", "ahead", 0) // late and without meaning
		v.send("order", "order", v.order("confirmed"))
		if frame := v.read(); frame != nil {
			v.t.Errorf("after its order the shopper sent %v", frame)
		}
	})
	report := s.crowd(5)
	truthful(t, report)
	results(t, report, map[string]int64{"success": 5})
	want(t, "joined", report.Joined, 5)
	want(t, "admitted", report.Admitted, 5)
	want(t, "reconnects", report.Reconnects, 0)
	want(t, "measured joins", report.Join.Count, 5)
	want(t, "measured turns", report.Turn.Count, 5)
	want(t, "measured grabs", report.Grab.Count, 5)
	want(t, "measured confirmations", report.Confirm.Count, 5)
	want(t, "order of u-3", report.Orders["u-3"][0], wireOrder{ID: "order of u-3", Item: "main", Qty: 1, Status: "confirmed"})
}

func TestShoppersBringTheCodesInTurnAlsoWhenTheyComeBack(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	brought := map[any]int{}
	visits := map[any]int{}
	s := newStub(t, func(v *stubVisit) {
		mu.Lock()
		brought[v.hello["code"]]++
		visits[v.hello["token"]]++
		again := visits[v.hello["token"]] > 1
		mu.Unlock()
		v.welcome("main")
		if !again {
			return // the connection ends
		}
		v.send("sold_out", "stock", "gone")
	})
	report := s.crowd(4, func(o *crowdOptions) { o.Codes = []string{"ONE", "TWO"} })
	results(t, report, map[string]int64{"sold_out": 4})
	if diff := cmp.Diff(map[any]int{"ONE": 4, "TWO": 4}, brought); diff != "" {
		t.Errorf("codes (-want +got):\n%s", diff)
	}
}

func TestLostAnswerIsAskedForAgainWithTheSameIDAndSeat(t *testing.T) {
	t.Parallel()
	ids := make(chan string, 2)
	s := newStub(t, func(v *stubVisit) {
		v.welcome("main")
		v.send("turn", "until", 1)
		id, _ := v.grab()
		ids <- id
		if v.n == 1 {
			return // the connection breaks before the answer
		}
		want(t, "seat of the second hello", v.hello["seat"], any("seat of u-1"))
		v.send("success", "id", id, "order", v.order("confirmed"))
		v.gone()
	})
	report := s.crowd(1)
	truthful(t, report)
	results(t, report, map[string]int64{"success": 1})
	want(t, "reconnects", report.Reconnects, 1)
	want(t, "request id of the repetition", <-ids, <-ids)
}

func TestOrderWhoseAnswerWasLostIsFoundInTheStateFrame(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"already", "order", "success"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, func(v *stubVisit) {
				v.welcome("main")
				if v.n == 1 {
					v.send("turn", "until", 1)
					v.grab()
					return
				}
				v.send(kind, "order", v.order("confirmed"))
				v.gone()
			})
			report := s.crowd(2)
			truthful(t, report)
			results(t, report, map[string]int64{"success": 2})
			want(t, "users with an order", len(report.Orders), 2)
		})
	}
}

func TestReconnectNamesTheOrderAndWaitsForItsConfirmation(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(v *stubVisit) {
		v.welcome("main")
		if v.n == 1 {
			v.send("turn", "until", 1)
			id, _ := v.grab()
			v.send("success", "id", id, "order", v.order("reserved"))
			return
		}
		want(t, "order of the second hello", v.hello["order"], any("order of u-1"))
		v.send("order", "order", v.order("confirmed"))
		v.gone()
	})
	report := s.crowd(1)
	truthful(t, report)
	results(t, report, map[string]int64{"success": 1})
}

func TestConfirmationMayOvertakeTheAnswer(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(v *stubVisit) {
		v.welcome("main")
		v.send("turn", "until", 1)
		id, _ := v.grab()
		v.send("order", "order", v.order("confirmed"))
		v.send("success", "id", id, "order", v.order("confirmed"))
		v.gone()
	})
	report := s.crowd(3)
	truthful(t, report)
	results(t, report, map[string]int64{"success": 3})
	want(t, "duplicates", report.Duplicates, 0)
}

func TestNewsForEveryoneDoNotEndAGrabThatIsUnderWay(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"sold_out", "closed", "missed"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, func(v *stubVisit) {
				v.welcome("main")
				v.send("turn", "until", 1)
				id, _ := v.grab()
				v.send(kind, "stock", "gone")
				v.send("success", "id", id, "order", v.order("confirmed"))
				v.gone()
			})
			report := s.crowd(1, func(o *crowdOptions) { o.Settle = patience })
			truthful(t, report)
			results(t, report, map[string]int64{"success": 1})
		})
	}
}

func TestNewsForEveryoneAreBelievedWhenTheGrabGetsNoAnswer(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(v *stubVisit) {
		v.welcome("main")
		v.send("turn", "until", 1)
		v.grab()
		v.send("sold_out", "stock", "gone")
		v.gone()
	})
	report := s.crowd(1)
	truthful(t, report)
	results(t, report, map[string]int64{"sold_out": 1})
	want(t, "measured grabs", report.Grab.Count, 1)
}

func TestNewsOfNothingLeftHoldWhateverTheAnswerAboutOneItem(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(v *stubVisit) {
		v.welcome("black", "white")
		v.send("turn", "until", 1)
		id, item := v.grab()
		v.send("sold_out", "stock", "held")
		v.send("queued", "ahead", 3)
		v.send("sold_out", "id", id, "item", item, "stock", "held")
		v.gone()
	})
	report := s.crowd(1, func(o *crowdOptions) { o.Settle = patience })
	truthful(t, report)
	results(t, report, map[string]int64{"sold_out": 1})
}

func TestEveryFinalFrameIsAnOutcome(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		play    func(*stubVisit)
		outcome string
	}{
		"sold out in the line": {func(v *stubVisit) { v.send("queued", "ahead", 3); v.send("sold_out", "stock", "held") }, "sold_out"},
		"sold out as the answer": {func(v *stubVisit) {
			id := turnAndGrab(v)
			v.send("sold_out", "id", id, "item", "main", "stock", "gone")
		}, "sold_out"},
		"already":                          {func(v *stubVisit) { turnAndGrab(v); v.send("already", "order", v.order("confirmed")) }, "already"},
		"an order from before":             {func(v *stubVisit) { v.send("order", "order", v.order("paid")) }, "already"},
		"missed":                           {func(v *stubVisit) { v.send("missed", "why", "absent") }, "missed"},
		"closed":                           {func(v *stubVisit) { v.send("closed", "why", "time") }, "closed"},
		"not open after the close":         {func(v *stubVisit) { id := turnAndGrab(v); v.send("not_open", "id", id, "state", "closed") }, "not_open"},
		"an order that was rejected":       {func(v *stubVisit) { id := turnAndGrab(v); v.send("success", "id", id, "order", v.order("rejected")) }, "undone"},
		"an old order does not end a wait": {func(v *stubVisit) { v.send("order", "order", v.order("expired")); v.send("closed") }, "closed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, func(v *stubVisit) {
				v.welcome("main")
				test.play(v)
				v.gone()
			})
			report := s.crowd(2)
			truthful(t, report)
			results(t, report, map[string]int64{test.outcome: 2})
			want(t, "joined", report.Joined, 2)
		})
	}
}

func turnAndGrab(v *stubVisit) string {
	v.send("turn", "until", 1)
	id, _ := v.grab()
	return id
}

func TestErrorsAreOutcomesToo(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(v *stubVisit) {
		v.welcome("main")
		turnAndGrab(v)
		v.send("error", "code", "no_such_item", "msg", "there is no such item")
		v.gone()
	})
	report := s.crowd(2)
	untruthful(t, report, "2 shoppers refused with an error")
	want(t, "failures named no_such_item", report.Failures["no_such_item"], 2)
}

func TestCloseCodesDecideWhoComesBack(t *testing.T) {
	t.Parallel()
	// Where the code says more than that somebody does not come back, it is an outcome.
	for code, end := range map[int]string{
		1000: "success", 1012: "success", 1013: "success", 4408: "success", 4429: "success",
		4400: "failed", 4401: "unauthenticated", 4403: "forbidden", 4404: "failed", 4407: "failed", 4409: "too_many",
	} {
		s := newStub(t, func(v *stubVisit) {
			if v.n == 1 {
				v.close(code)
				return
			}
			v.buy()
		})
		report := s.crowd(1)
		results(t, report, map[string]int64{end: 1})
		refused := code == 4401 || code == 4403 || code == 4409
		want(t, "limited", report.Limited, map[bool]int64{true: 1}[code == 4429])
		want(t, "cut off with the code", report.Cut[strconv.Itoa(code)], map[bool]int64{false: 1}[refused || code == 4429])
		want(t, "visits", s.visitsOf("u-1"), map[bool]int{true: 2, false: 1}[end == "success"])
		if end == "failed" {
			untruthful(t, report, "1 shopper refused with an error")
			continue
		}
		truthful(t, report)
		if refused {
			want(t, "who heard why", report.Refusals[end]["the test wants it"], 1)
		} else {
			want(t, "reconnects", report.Reconnects, 1)
		}
	}
}

func TestRefusedUpgradeIsTriedAgain(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	s := newStub(t, (*stubVisit).buy)
	front := http.NewServeMux()
	front.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) <= 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		s.mux.ServeHTTP(w, r)
	})
	s.Config.Handler = front
	report := s.crowd(1)
	truthful(t, report)
	want(t, "refused", report.Refused, 3)
	want(t, "kinds of being cut off", int64(len(report.Cut)), 0)
	want(t, "reconnects", report.Reconnects, 0)
	results(t, report, map[string]int64{"success": 1})
}

func TestMovingNodeIsLeftAfterThePauseItAsksFor(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(v *stubVisit) {
		if v.n == 1 {
			v.welcome("main")
			v.send("queued", "ahead", 2)
			v.send("moving", "retry_in_ms", 20)
			v.gone() // the shopper leaves by itself
			return
		}
		v.buy()
	})
	report := s.crowd(2, func(o *crowdOptions) { o.Backoff = func(int) time.Duration { return time.Hour } })
	truthful(t, report)
	want(t, "kinds of being cut off", int64(len(report.Cut)), 0)
	results(t, report, map[string]int64{"success": 2})
	want(t, "reconnects", report.Reconnects, 2)
}

func TestLimitedGrabIsSentAgainWithTheSameID(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"limited", "error"} {
		s := newStub(t, func(v *stubVisit) {
			v.welcome("main")
			id := turnAndGrab(v)
			v.send(kind, "code", "unavailable", "retry_after_ms", 1)
			again, _ := v.grab()
			want(t, "id of the repetition", again, id)
			v.send("success", "id", id, "order", v.order("confirmed"))
			v.gone()
		})
		report := s.crowd(1)
		truthful(t, report)
		want(t, "limited", report.Limited, 1)
	}
}

func TestHelloThatIsLimitedIsSaidAgainOnTheSameConnection(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"limited", "error"} {
		s := newStub(t, func(v *stubVisit) {
			v.send(kind, "code", "unavailable", "retry_after_ms", 1)
			if again := v.read(); again["type"] != "hello" || again["token"] != v.hello["token"] {
				v.t.Errorf("after a hello that was %s came %v", kind, again)
			}
			v.buy()
		})
		report := s.crowd(1)
		truthful(t, report)
		want(t, "limited", report.Limited, 1)
		want(t, "visits", s.visitsOf("u-1"), 1)
	}
}

func TestPauseCostsNoTurn(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(v *stubVisit) {
		v.welcome("main")
		first := turnAndGrab(v)
		v.send("paused")
		v.send("not_open", "id", first, "state", "paused")
		v.send("resumed")
		second, _ := v.grab()
		if second == first {
			t.Error("a grab that was answered is not repeated under its id")
		}
		v.send("success", "id", second, "order", v.order("confirmed"))
		v.gone()
	})
	report := s.crowd(1)
	truthful(t, report)
	results(t, report, map[string]int64{"success": 1})
}

func TestGrabWithoutATurnGoesOnWaiting(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(v *stubVisit) {
		v.welcome("main")
		id := turnAndGrab(v)
		v.send("no_turn", "id", id)
		v.send("queued", "ahead", 0)
		id = turnAndGrab(v)
		v.send("success", "id", id, "order", v.order("confirmed"))
		v.gone()
	})
	report := s.crowd(1)
	truthful(t, report)
	want(t, "admitted", report.Admitted, 1)
	want(t, "measured grabs", report.Grab.Count, 2)
}

func TestShopperTriesTheOtherItem(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(v *stubVisit) {
		v.welcome("black", "white")
		v.send("turn", "until", 1, "items", []object{{"id": "black", "stock": 1}, {"id": "white", "stock": 1}, {"id": "red", "stock": 0}})
		id, first := v.grab()
		v.send("sold_out", "id", id, "item", first, "stock", "gone")
		id, second := v.grab()
		if first == second || first == "red" || second == "red" {
			t.Errorf("the shopper wanted %s, then %s", first, second)
		}
		v.send("sold_out", "id", id, "item", second, "stock", "gone")
		v.gone()
	})
	report := s.crowd(4)
	truthful(t, report)
	results(t, report, map[string]int64{"sold_out": 4})
}

func TestShopperWhoWantsOneItemTakesNoOther(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(v *stubVisit) {
		v.welcome("black", "white")
		v.send("queued", "ahead", 1)
		v.send("sold_out", "item", "black", "stock", "gone") // concerns others
		v.send("turn", "until", 1, "items", []object{{"id": "black", "stock": 0}, {"id": "white", "stock": 1}})
		id, item := v.grab()
		want(t, "item", item, "white")
		v.send("sold_out", "id", id, "item", "white", "stock", "gone")
		v.gone()
	})
	report := s.crowd(1, func(o *crowdOptions) { o.Item = "white" })
	truthful(t, report)
	results(t, report, map[string]int64{"sold_out": 1})
}

func TestAbandoningShoppersNeverGrab(t *testing.T) {
	t.Parallel()
	var polite atomic.Int64
	s := newStub(t, func(v *stubVisit) {
		v.welcome("main")
		v.send("turn", "until", 1)
		for frame := v.read(); frame != nil; frame = v.read() {
			if frame["type"] != "leave" {
				t.Errorf("sent %v", frame)
			}
			polite.Add(1)
		}
	})
	report := s.crowd(6, func(o *crowdOptions) { o.Abandon = 1 })
	truthful(t, report)
	results(t, report, map[string]int64{"left": 6})
	s.open.Wait()
	want(t, "shoppers who said that they leave", polite.Load(), 3)
}

func TestEveryLieIsFound(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		users   int
		play    func(*stubVisit)
		problem string
	}{
		"two orders for one shopper": {1, func(v *stubVisit) {
			id := turnAndGrab(v)
			v.send("success", "id", id, "order", orderOf("one", "reserved"))
			v.send("success", "id", id, "order", orderOf("two", "confirmed"))
		}, "1 shopper told of two orders"},
		"one order for two shoppers": {2, func(v *stubVisit) {
			id := turnAndGrab(v)
			v.send("success", "id", id, "order", orderOf("one", "confirmed"))
		}, "1 order told to two shoppers"},
		"a place that becomes worse": {1, func(v *stubVisit) {
			v.send("queued", "ahead", 5)
			v.send("queued", "ahead", 6)
			v.send("sold_out", "stock", "gone")
		}, "a place in the line became worse 1 time"},
		"success without an order": {1, func(v *stubVisit) {
			id := turnAndGrab(v)
			v.send("success", "id", id)
		}, "1 shopper refused with an error"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, func(v *stubVisit) {
				v.welcome("main")
				test.play(v)
				v.gone()
			})
			untruthful(t, s.crowd(test.users), test.problem)
		})
	}
}

func TestShoppersLeftWithoutAnAnswerAreCounted(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(v *stubVisit) {
		v.welcome("main")
		switch v.user {
		case "u-1":
			id := turnAndGrab(v)
			v.send("success", "id", id, "order", v.order("reserved")) // and never confirmed
		case "u-2":
			turnAndGrab(v)
		default:
			v.send("queued", "ahead", 1)
		}
		v.gone()
	})
	c := newCrowd(crowdOptions{URL: s.URL, Sale: stubSale, Users: 4, Prefix: "u", Secret: []byte(stubSecret), Qty: 1})
	ctx, interrupt := context.WithTimeout(t.Context(), patience)
	go func() {
		defer interrupt()
		for p := c.Progress(); ctx.Err() == nil && (p.Buying != 1 || p.Turns != 1 || p.Waiting != 2 || p.Connected != 4); p = c.Progress() {
			runtime.Gosched()
		}
	}()
	report, err := c.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "unanswered", report.Unanswered, 4)
	want(t, "unconfirmed", report.Unconfirmed, 1)
	want(t, "joined", report.Joined, 4)
	want(t, "admitted", report.Admitted, 2)
	want(t, "connected afterwards", c.Progress().Connected, 0)
	if diff := cmp.Diff([]string{"4 shoppers left without an answer", "1 order never confirmed"}, report.Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestSocketsComeFromTheSourceAddressesInTurn(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	sockets := map[string]int{}
	s := newStub(t, func(v *stubVisit) {
		mu.Lock()
		sockets[v.ws.RemoteAddr().(*net.TCPAddr).IP.String()]++
		mu.Unlock()
		v.buy()
	})
	report := s.crowd(6, func(o *crowdOptions) { o.Sources = []net.IP{net.IPv4(127, 0, 0, 2), net.IPv4(127, 0, 0, 3)} })
	truthful(t, report)
	s.open.Wait()
	if diff := cmp.Diff(map[string]int{"127.0.0.2": 3, "127.0.0.3": 3}, sockets); diff != "" {
		t.Errorf("sockets by source (-want +got):\n%s", diff)
	}
}

func TestReconnectPauseHasFullJitterUpToTheContractsBound(t *testing.T) {
	t.Parallel()
	for attempt, bound := range map[int]time.Duration{0: 3 * time.Second, 1: 6 * time.Second, 3: 24 * time.Second, 4: 30 * time.Second, 100: 30 * time.Second} {
		low := false
		for range 200 {
			pause := fullJitter(attempt)
			if pause < 0 || pause >= bound {
				t.Fatalf("attempt %d pauses %s, want below %s", attempt, pause, bound)
			}
			low = low || pause < bound/4
		}
		if !low {
			t.Errorf("attempt %d never pauses less than a quarter of %s: that is no full jitter", attempt, bound)
		}
	}
}

func TestAPauseThatTheServerAskedForHoldsForOneAttempt(t *testing.T) {
	t.Parallel()
	s := &shopper{pause: time.Hour, pausedAt: time.Now()}
	if wait, asked := s.askedPause(); !asked || wait < 59*time.Minute {
		t.Errorf("the first attempt waits %s (%v)", wait, asked)
	}
	// The server was not there: with the same pause again, long over by now, shoppers would come back without a rest.
	if wait, asked := s.askedPause(); asked {
		t.Errorf("the second attempt waits %s instead of backing off", wait)
	}
}
