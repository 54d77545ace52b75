package main

import (
	"fmt"
	"strings"
	"time"
)

// closingTime is when a sale is to close, as it is written on the command line: a moment, or so much later than now planned.
type closingTime struct {
	at    time.Time
	later time.Duration // counts when at is zero
}

// UnmarshalText reads RFC 3339, or a duration with a + before it.
func (t *closingTime) UnmarshalText(text []byte) error {
	if more, relative := strings.CutPrefix(string(text), "+"); relative {
		later, err := time.ParseDuration(more)
		if err == nil && later > 0 && !strings.HasPrefix(more, "+") {
			*t = closingTime{later: later}
			return nil
		}
	} else if at, err := time.Parse(time.RFC3339, string(text)); err == nil {
		*t = closingTime{at: at}
		return nil
	}
	return fmt.Errorf("%q is not a time, write it like 2026-12-01T13:30:00+08:00, or like +30m for so much later than planned", text)
}

// from is the moment that is meant for a sale that closes at planned; it fails where there is nothing to count from.
func (t closingTime) from(planned time.Time) (time.Time, error) {
	switch {
	case !t.at.IsZero():
		return t.at, nil
	case planned.IsZero():
		return time.Time{}, fmt.Errorf("it has no closing time that +%s could be counted from; give --closes-at a time like 2026-12-01T13:30:00+08:00", t.later)
	}
	return planned.Add(t.later), nil
}
