package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// result is what was measured for a figure.
type result struct {
	Name     string    `json:"name"`
	Title    string    `json:"title"`
	At       time.Time `json:"at"`
	Commit   string    `json:"commit"`
	Machine  string    `json:"machine"`
	Took     float64   `json:"took"` // seconds
	Series   []series  `json:"series"`
	Promises []promise `json:"promises"`
	Charts   []chart   `json:"charts,omitempty"`
}

// series are the values of all rounds of one contender.
type series struct {
	What   string    `json:"what"` // with its unit
	Who    string    `json:"who"`
	Values []float64 `json:"values"`
}

// promise is a line of the promises, and whether it was kept.
type promise struct {
	Text string `json:"text"`
	Kept bool   `json:"kept"`
}

func newResult() *result { return &result{} }

func (r *result) add(what, who string, value float64) {
	for i := range r.Series {
		if r.Series[i].What == what && r.Series[i].Who == who {
			r.Series[i].Values = append(r.Series[i].Values, value)
			return
		}
	}
	r.Series = append(r.Series, series{What: what, Who: who, Values: []float64{value}})
}

func (r *result) promise(kept bool, format string, args ...any) {
	r.Promises = append(r.Promises, promise{Text: fmt.Sprintf(format, args...), Kept: kept})
}

// median is NaN for what was not measured, which no promise survives.
func (r *result) median(what, who string) float64 {
	for _, s := range r.Series {
		if s.What == what && s.Who == who {
			return medianOf(s.Values)
		}
	}
	return math.NaN()
}

func medianOf(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return math.NaN()
	}
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// table is the result in Markdown. The ratio is to the first contender, which is Sluice.
func (r *result) table() string {
	var text strings.Builder
	fmt.Fprintf(&text, "| what | who | median | min | max | ratio |\n|---|---|---:|---:|---:|---:|\n")
	var whats []string
	for _, s := range r.Series {
		if !slices.Contains(whats, s.What) {
			whats = append(whats, s.What)
		}
	}
	for _, what := range whats {
		first := math.NaN()
		for _, s := range r.Series {
			if s.What != what {
				continue
			}
			ratio := "1"
			if math.IsNaN(first) {
				first = medianOf(s.Values)
			} else if first != 0 {
				ratio = number(medianOf(s.Values) / first)
			} else {
				ratio = ""
			}
			fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %s |\n", s.What, s.Who, number(medianOf(s.Values)), number(slices.Min(s.Values)), number(slices.Max(s.Values)), ratio)
		}
	}
	return text.String()
}

// number writes a value with three digits that count, and thousands apart.
func number(v float64) string {
	switch abs := math.Abs(v); {
	case abs >= 1000:
		digits := fmt.Sprintf("%.0f", v)
		var parts []string
		for len(digits) > 3 {
			parts = append([]string{digits[len(digits)-3:]}, parts...)
			digits = digits[:len(digits)-3]
		}
		return strings.Join(append([]string{digits}, parts...), ",")
	case abs >= 100:
		return fmt.Sprintf("%.0f", v)
	case abs >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
