package queue

import (
	"math"
	"time"
)

// paceWindow is the time over which the pace of a line is smoothed.
const paceWindow = 60 * time.Second

// pace follows how many turns a second are given.
type pace struct {
	samples []sample
	last    float64
}

// sample is how many turns had been given at a moment.
type sample struct{ at, granted int64 }

// restart forgets the past, because the figures of the line have changed.
func (p *pace) restart() { p.samples = nil }

// at takes another sample, at ms since the epoch, and returns the turns a second over the last minute, or since the first
// of them, to a thousandth; 0 while none were given. For the second after a restart the old pace stands.
func (p *pace) at(at, granted int64) float64 {
	if n := len(p.samples); n > 0 && granted < p.samples[n-1].granted {
		*p = pace{} // the sale was installed anew
	}
	if n := len(p.samples); n == 0 || at-p.samples[n-1].at >= 1000 || granted > 0 && p.samples[n-1].granted == 0 {
		p.samples = append(p.samples, sample{at, granted})
	}
	for len(p.samples) > 2 && at-p.samples[1].at >= paceWindow.Milliseconds() {
		p.samples = p.samples[1:]
	}
	if p.last > 0 && at-p.samples[0].at < 1000 {
		return p.last
	}
	first := p.samples[0] // the last sample before the first turn of the window
	for _, s := range p.samples {
		if s.granted > first.granted {
			break
		}
		first = s
	}
	p.last = 0
	if at > first.at && granted > first.granted {
		rate := float64(granted-first.granted) * 1000 / float64(max(at-first.at, 1000))
		// It is told to everybody who waits: no more digits than it has. Turns are given, so it is never 0.
		p.last = max(math.Round(rate*1000)/1000, 0.001)
	}
	return p.last
}
