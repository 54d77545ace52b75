package server

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice/queue"
)

func TestNoStretchOfTheWindowsLengthHasMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := queue.Rate{N: rapid.Int64Range(1, 20).Draw(t, "n"), Per: time.Second}
		w, err := newWindow(limit)
		if err != nil {
			t.Fatal(err)
		}
		now := testNow()
		var passed []time.Time
		for _, step := range rapid.SliceOfN(rapid.Int64Range(0, 400), 1, 200).Draw(t, "steps of ms") {
			now = now.Add(time.Duration(step) * time.Millisecond)
			recent := int64(0)
			for _, at := range passed {
				if now.Sub(at) < limit.Per {
					recent++
				}
			}
			wait, ok := w.take(now)
			if ok != (recent < limit.N) {
				t.Fatalf("%d of %d passed within the window, and the next may pass: %v", recent, limit.N, ok)
			}
			if ok {
				passed = append(passed, now)
			} else if oldest := passed[int64(len(passed))-limit.N]; now.Add(wait).Sub(oldest) != limit.Per {
				t.Fatalf("told to wait %s, but the oldest of %d passed %s ago", wait, limit.N, now.Sub(oldest))
			}
		}
	})
}

func TestBeyondTheNodesLimitIs429WithRealFigures(t *testing.T) {
	t.Parallel()
	now := testNow()
	b := newBench(t, func(o *Options) {
		o.NodeLimit = queue.Rate{N: 2, Per: 10 * time.Second}
		o.Now = func() time.Time { return now }
	})
	for range 2 {
		if a := b.send(http.MethodGet, "/api/v1/sales", ""); a.status != http.StatusOK {
			t.Fatalf("got %d within the limit", a.status)
		}
		now = now.Add(time.Second)
	}
	a := b.send(http.MethodGet, "/api/v1/sales", "")
	b.mustFail(a, http.StatusTooManyRequests, queue.Limited)
	if a.header.Get(headerLimit) != "2" || a.header.Get(headerRemaining) != "0" ||
		a.header.Get(headerReset) != strconv.FormatInt(testNow().Add(10*time.Second).Unix(), 10) {
		t.Errorf("got %v", a.header)
	}
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	ms := a.field(t, "retry_after_ms").(float64)
	if err != nil || seconds < 8 || ms < 8000 || float64(seconds*1000) < ms {
		t.Errorf("Retry-After %d s and %v ms; it is free again in 8 s", seconds, ms)
	}
	if a := b.send(http.MethodGet, "/api/v1/admin/sales", "", b.asAdmin()...); a.status != http.StatusOK {
		t.Errorf("the operator got %d: %s", a.status, a.body)
	}
	now = testNow().Add(10 * time.Second)
	if a := b.send(http.MethodGet, "/api/v1/sales", ""); a.status != http.StatusOK {
		t.Errorf("got %d when the first one had left the window", a.status)
	}
}

func TestWithoutALimitNothingIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for range 1000 {
		if a := b.send(http.MethodGet, "/api/v1/sales/solo", ""); a.status != http.StatusOK {
			t.Fatalf("got %d", a.status)
		}
	}
}
