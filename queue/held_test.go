package queue_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/queue"
)

// TestOrdersOfAWriterThatDiedAreHeldNoLonger has two writers, of which one says again what it has in hand.
func TestOrdersOfAWriterThatDiedAreHeldNoLonger(t *testing.T) {
	t.Parallel()
	l := embeddedLine(t, queue.Options{})
	began := time.Now()
	hold := func(after time.Duration, orders ...string) {
		t.Helper()
		l.embedded.SetTime(began.Add(after))
		if err := l.Hold(t.Context(), "phone", began.Add(after).UnixMilli(), orders); err != nil {
			t.Fatal(err)
		}
	}
	held := func(after time.Duration, want ...string) {
		t.Helper()
		l.embedded.SetTime(began.Add(after))
		got, err := l.Held(t.Context(), "phone")
		if err != nil {
			t.Fatal(err)
		}
		expected := map[string]bool{}
		for _, order := range want {
			expected[order] = true
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("held after %s (-want +got):\n%s", after, diff)
		}
	}
	held(0)
	hold(0, "a", "b")
	hold(time.Second, "c")
	held(time.Second, "a", "b", "c")
	hold(4*time.Second, "a", "b")
	held(7*time.Second, "a", "b")
	hold(8*time.Second, "b")
	held(10*time.Second, "b")
	held(20 * time.Second)
}
