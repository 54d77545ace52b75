package hub

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/google/go-cmp/cmp"
)

func deadline() time.Time { return time.Now().Add(patient) }

// pauses has Drain wait by the fake clock, and returns how long it waited before each session.
func (s *site) pauses() func() []time.Duration {
	var mu sync.Mutex
	var list []time.Duration
	s.hub.pause = func(ctx context.Context, _ <-chan struct{}, d time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, d)
		s.clock.Advance(max(0, d))
		return ctx.Err()
	}
	return func() []time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return list
	}
}

func moving(d time.Duration) *Frame {
	return NewFrame([]byte(strconv.FormatInt(d.Milliseconds(), 10)))
}

func TestADrainTellsEachSessionAndSpreadsTheCloses(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	paused := s.pauses()
	const n = 10
	var visits []*visit
	for range n {
		v := s.dial()
		v.greet()
		visits = append(visits, v)
	}
	drained := make(chan error, 1)
	go func() { drained <- s.hub.Drain(t.Context(), 20*time.Second, moving) }()
	delays := map[string]bool{}
	for _, v := range visits {
		msgs, reason := v.ends(codeRestarting)
		if len(msgs) != 1 || reason != "restarting" {
			t.Fatalf("received %q and the reason %q", msgs, reason)
		}
		ms, err := strconv.Atoi(msgs[0])
		if err != nil || ms < 0 || ms > 3000 {
			t.Errorf("to return in %q ms", msgs[0])
		}
		delays[msgs[0]] = true
	}
	if err := await(t, drained, "Drain"); err != nil {
		t.Errorf("Drain: %v", err)
	}
	if len(delays) < 2 {
		t.Errorf("all are to return at once: %v", delays)
	}
	want := []time.Duration{0}
	for range n - 1 {
		want = append(want, 2*time.Second)
	}
	if diff := cmp.Diff(want, paused()); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
}

func TestAResultThatIsOnItsWayIsDeliveredBeforeTheDrainCloses(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	s.pauses()
	started, finish := make(chan struct{}), make(chan struct{})
	v := s.dial(func(r *recorder) {
		r.do = func(s *Session, msg string) {
			if msg == "grab" {
				close(started)
				<-finish
				s.Send(NewFrame([]byte("success")))
			}
		}
	})
	v.greet()
	v.say("grab")
	await(t, started, "the grab")
	drained := make(chan error, 1)
	go func() {
		drained <- s.hub.Drain(t.Context(), time.Second, func(time.Duration) *Frame { return NewFrame([]byte("moving")) })
	}()
	if got := v.hear(); got != "moving" {
		t.Fatalf("received %q", got)
	}
	close(finish)
	msgs, _ := v.ends(codeRestarting)
	if diff := cmp.Diff([]string{"success"}, msgs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := await(t, drained, "Drain"); err != nil {
		t.Error(err)
	}
}

func TestADrainThatMayNotTakeItsWindowClosesTheRest(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	var visits []*visit
	for range 5 {
		visits = append(visits, s.dial())
	}
	ctx, cancel := context.WithCancel(t.Context())
	drained := make(chan error, 1)
	go func() { drained <- s.hub.Drain(ctx, time.Hour, nil) }()
	eventually(t, "the first session to end", func() bool {
		for _, v := range visits {
			v.session.mu.Lock()
			closing := v.session.bye != nil
			v.session.mu.Unlock()
			if closing {
				return true
			}
		}
		return false
	})
	cancel()
	for _, v := range visits {
		v.ends(codeRestarting)
	}
	if err := await(t, drained, "Drain"); !errors.Is(err, context.Canceled) {
		t.Errorf("Drain: %v", err)
	}
}

func TestASessionThatComesDuringADrainIsSentOn(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	if err := s.hub.Drain(t.Context(), time.Hour, nil); err != nil {
		t.Fatalf("draining an empty hub: %v", err)
	}
	s.dial().ends(codeRestarting)
}

func TestCloseEndsEverySessionAndEveryGoroutine(t *testing.T) {
	// Not parallel: it looks at all goroutines of the process.
	before := goleak.IgnoreCurrent()
	s := newSite(t, Options{Pending: 10, WriteTimeout: time.Hour})
	idle, never, stuck := s.dial(), s.dial(), s.dial()
	idle.greet()
	stall(t, stuck)
	drained := make(chan error, 1)
	go func() { drained <- s.hub.Drain(t.Context(), time.Hour, nil) }()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		idle.ends(codeRestarting)
	}()
	if err := s.hub.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.hub.Close(); err != nil {
		t.Fatalf("a second time: %v", err)
	}
	await(t, answered, "the close")
	if err := await(t, drained, "Drain, although its window is not over"); err != nil {
		t.Errorf("Drain: %v", err)
	}
	for _, v := range []*visit{idle, never, stuck} {
		await(t, v.closed, "Closed")
	}
	if n := s.hub.Len(); n != 0 {
		t.Errorf("%d sessions left", n)
	}
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("net/http/httptest.(*Server).goServe.func1"), goleak.IgnoreAnyFunction("net/http.(*conn).serve"))
}

func TestASessionThatComesAfterCloseHasEndedAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	s.hub.Close()
	v := s.dial()
	await(t, v.closed, "Closed")
	v.session.Send(NewFrame([]byte("nobody")))
	v.session.Close(1000, "")
	if err := v.session.Bind("sale", "seat"); !errors.Is(err, ErrClosed) {
		t.Errorf("Bind: %v", err)
	}
	if _, _, err := v.peer.ReadMessage(); err == nil {
		t.Error("the peer received a message")
	}
}

func TestSessionsThatComeWhileTheHubClosesEndToo(t *testing.T) {
	t.Parallel()
	for range 20 {
		s := newSite(t, Options{})
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			s.hub.Close()
		}()
		var visits []*visit
		for range 5 {
			visits = append(visits, s.dial())
		}
		for _, v := range visits {
			go func() {
				for {
					if _, _, err := v.peer.ReadMessage(); err != nil {
						return
					}
				}
			}()
			await(t, v.closed, "Closed")
		}
		await(t, closed, "Close")
	}
}
