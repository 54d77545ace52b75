package queue_test

import (
	"testing"

	"sluice/queue"
)

func TestARateIsWrittenAsItMayBeRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"20/s": "20/s", "100/60s": "100/m", "3/10s": "3/10s", "5/h": "5/1h", "5/60m": "5/1h", "7/90s": "7/1m30s", "7/2m": "7/2m", "0": "0", "0/s": "0",
	} {
		rate, err := queue.ParseRate(text)
		if err != nil || rate.String() != want {
			t.Errorf("%s: got %s, %v, want %s", text, rate, err, want)
		}
		if again, err := queue.ParseRate(rate.String()); err != nil || again != rate {
			t.Errorf("%s is read as %+v, %v", rate, again, err)
		}
	}
}
