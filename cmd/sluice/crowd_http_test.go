package main

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"
)

// httpGrab is a grab as it comes over HTTP.
type httpGrab struct {
	Item      string `json:"item"`
	Qty       int64  `json:"qty"`
	RequestID string `json:"request_id"`
}

// overHTTP lets answer serve the nth grab of each request id, from 1.
func overHTTP(s *stub, answer func(w http.ResponseWriter, n int, grab httpGrab)) {
	var mu sync.Mutex
	seen := map[string]int{}
	s.mux.HandleFunc("POST /api/v1/seckill/phone-x", func(w http.ResponseWriter, r *http.Request) {
		var grab httpGrab
		if err := json.NewDecoder(r.Body).Decode(&grab); err != nil || grab.RequestID == "" {
			s.t.Errorf("grab %+v: %v", grab, err)
		}
		mu.Lock()
		seen[grab.RequestID]++
		n := seen[grab.RequestID]
		mu.Unlock()
		answer(w, n, grab)
	})
}

func grabbed(w http.ResponseWriter, result string, order object) {
	writeJSON(w, 200, object{"result": result, "order": order})
}

func viaHTTP(o *crowdOptions) { o.HTTP = true }

func TestHTTPGrabIsRepeatedUnderItsIDUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	trouble := map[string]func(http.ResponseWriter){
		"limited":     func(w http.ResponseWriter) { writeProblem(w, 429, object{"code": "limited", "retry_after_ms": 1}) },
		"unavailable": func(w http.ResponseWriter) { writeProblem(w, 503, object{"code": "unavailable", "retry_after_ms": 1}) },
		"a proxy":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
		"a cut line":  func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	}
	for name, fail := range trouble {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, nil)
			overHTTP(s, func(w http.ResponseWriter, n int, grab httpGrab) {
				if n < 3 {
					fail(w)
					return
				}
				grabbed(w, "success", orderOf("order of "+grab.RequestID, "reserved"))
			})
			report := s.crowd(10, viaHTTP)
			truthful(t, report)
			results(t, report, map[string]int64{"success": 10})
			want(t, "failed attempts", report.Limited+report.Refused, 20)
			want(t, "measured grabs", report.Grab.Count, 10)
			want(t, "users with an order", len(report.Orders), 10)
		})
	}
}

func TestHTTPAnswersAreOutcomes(t *testing.T) {
	t.Parallel()
	for _, result := range []string{"already", "sold_out", "no_turn", "not_open"} {
		t.Run(result, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, nil)
			overHTTP(s, func(w http.ResponseWriter, _ int, _ httpGrab) { grabbed(w, result, nil) })
			report := s.crowd(7, viaHTTP)
			truthful(t, report)
			results(t, report, map[string]int64{result: 7})
		})
	}
}

func TestHTTPOrderOfALostAnswerIsTheShoppersOwn(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	overHTTP(s, func(w http.ResponseWriter, n int, grab httpGrab) {
		if n == 1 {
			panic(http.ErrAbortHandler)
		}
		grabbed(w, "already", orderOf("order of "+grab.RequestID, "confirmed"))
	})
	report := s.crowd(3, viaHTTP)
	truthful(t, report)
	results(t, report, map[string]int64{"success": 3})
}

func TestHTTPRefusalForGoodIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	overHTTP(s, func(w http.ResponseWriter, n int, _ httpGrab) {
		want(t, "attempt", n, 1)
		writeProblem(w, 401, object{"code": "unauthenticated", "detail": "the token is not ours"})
	})
	report := s.crowd(2, viaHTTP)
	truthful(t, report)
	results(t, report, map[string]int64{"unauthenticated": 2})
	want(t, "who heard why", report.Refusals["unauthenticated"]["the token is not ours"], 2)
}

func TestGuestsAreAskedForUntilTheServerHasThem(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	var mu sync.Mutex
	calls := 0
	s.mux.HandleFunc("POST /api/v1/guests", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls == 1 {
			writeProblem(w, 429, object{"code": "limited", "retry_after_ms": 1})
			return
		}
		writeJSON(w, 200, object{"user": "guest-" + string(rune('a'+calls)), "token": "t"})
	})
	overHTTP(s, func(w http.ResponseWriter, _ int, grab httpGrab) {
		grabbed(w, "success", orderOf(grab.RequestID, "confirmed"))
	})
	report := s.crowd(3, viaHTTP, func(o *crowdOptions) { o.Guests = true })
	truthful(t, report)
	for user := range report.Orders {
		if len(user) != len("guest-a") {
			t.Errorf("user %q is no guest", user)
		}
	}
	want(t, "guests with an order", len(report.Orders), 3)
}
