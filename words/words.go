// Package words puts figures into sentences for people.
package words

import (
	"fmt"
	"strings"
	"time"
)

// Count is a number of things, of which the plural ends in s: "1 order", "2 orders".
func Count[N ~int | ~int64](n N, thing string) string {
	return Plural(n, thing, thing+"s")
}

// Plural is a number of things with the word for one and the word for all other numbers: "1 entry is", "2 entries are".
func Plural[N ~int | ~int64](n N, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Duration is a duration as people write it: "24h" and "1m30s", where Go writes "24h0m0s". [time.ParseDuration] reads it.
func Duration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
