package queue

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a time.Duration that is written as Go writes it ("90s") in sale files and JSON.
type Duration time.Duration

// MarshalJSON writes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// UnmarshalJSON reads a string like "90s", or 0.
func (d *Duration) UnmarshalJSON(data []byte) error {
	if string(data) == "0" {
		*d = 0
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("duration %s: write it as text, like \"90s\" or \"10m\"", data)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("duration %q: write it like 90s, 10m or 1h30m", text)
	}
	*d = Duration(parsed)
	return nil
}

// Milliseconds is the duration in milliseconds.
func (d Duration) Milliseconds() int64 { return time.Duration(d).Milliseconds() }

// String is the duration as Go writes it.
func (d Duration) String() string { return time.Duration(d).String() }
