package words

import (
	"testing"
	"time"
)

func TestOneIsNoPlural(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 orders", 1: "1 order", 2: "2 orders", -1: "-1 orders"} {
		if got := Count(n, "order"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for n, want := range map[int64]string{1: "1 entry is", 21: "21 entries are"} {
		if got := Plural(n, "entry is", "entries are"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestADurationIsWrittenAsPeopleDo(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0s": 0, "24h": 24 * time.Hour, "1m": time.Minute, "1h30m": 90 * time.Minute, "1m30s": 90 * time.Second, "10m": 10 * time.Minute,
		"20h": 20 * time.Hour, "1h0m10s": time.Hour + 10*time.Second, "-15m": -15 * time.Minute, "1.5s": 1500 * time.Millisecond, "10ms": 10 * time.Millisecond,
		"100h": 100 * time.Hour,
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
		if back, err := time.ParseDuration(want); err != nil || back != d {
			t.Errorf("%q is read as %v, %v", want, back, err)
		}
	}
}
