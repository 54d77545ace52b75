package queue

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sluice/words"
)

// Rate is a limit: N in any window of length Per. The zero Rate is no limit.
type Rate struct {
	N   int64
	Per time.Duration
}

// ParseRate reads a rate like "20/s", "100/m" or "3/10s"; "0" is no limit.
func ParseRate(text string) (Rate, error) {
	if text == "0" || text == "" {
		return Rate{}, nil
	}
	count, window, found := strings.Cut(text, "/")
	n, err := strconv.ParseInt(count, 10, 64)
	if !found || err != nil || n < 0 {
		return Rate{}, fmt.Errorf("rate %q: write a number and a window, like 20/s, 100/m or 3/10s, or 0 for no limit", text)
	}
	if n == 0 {
		return Rate{}, nil
	}
	if strings.IndexAny(window, "0123456789") != 0 {
		window = "1" + window
	}
	per, err := time.ParseDuration(window)
	if err != nil || per < time.Millisecond || per > time.Hour {
		return Rate{}, fmt.Errorf("rate %q: the window must be between 1ms and 1h, like s, 10s or m", text)
	}
	return Rate{N: n, Per: per}, nil
}

// On says whether there is a limit at all.
func (r Rate) On() bool { return r.N > 0 }

// UnmarshalText makes a Rate usable as a flag.
func (r *Rate) UnmarshalText(text []byte) error {
	parsed, err := ParseRate(string(text))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}

// String is the form that ParseRate reads.
func (r Rate) String() string {
	if !r.On() {
		return "0"
	}
	switch r.Per {
	case time.Second:
		return fmt.Sprintf("%d/s", r.N)
	case time.Minute:
		return fmt.Sprintf("%d/m", r.N)
	}
	return fmt.Sprintf("%d/%s", r.N, words.Duration(r.Per))
}
