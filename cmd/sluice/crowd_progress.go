package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// outcome is how the sale ended for one shopper.
type outcome int

// The outcomes. Each but outcomePending is final and is the truth as the server told it.
const (
	outcomePending outcome = iota // nothing final yet
	outcomeSuccess                // has an order, and over a socket its row as well
	outcomeAlready                // had a live order before
	outcomeSoldOut
	outcomeMissed  // the turn passed
	outcomeClosed  // the sale ended first
	outcomeNotOpen // the grab came when the sale was closed
	outcomeNoTurn  // over HTTP: the sale has a line
	outcomeLeft    // went away, as a person does
	outcomeUndone  // has an order that was rejected, cancelled or expired before it was confirmed

	// Who was not let in; see refusalOf.
	outcomeCodeNeeded
	outcomeCodeUsed // or there is no such code
	outcomeChallengeNeeded
	outcomeDenied          // by a list, or because of the seats of an address
	outcomeUnauthenticated // the token is wrong, has expired, or is missing
	outcomeForbidden       // for another reason
	outcomeTooMany         // the seat has as many connections as it may
	outcomeLimited         // was asked to come later, until the end

	outcomeFailed // was refused for good, with an error
	outcomes
)

// String is the outcome as the contract names it.
func (o outcome) String() string {
	return [outcomes]string{"pending", "success", "already", "sold_out", "missed", "closed", "not_open", "no_turn", "left", "undone",
		"code_needed", "code_used", "challenge_needed", "denied", "unauthenticated", "forbidden", "too_many", "limited", "failed"}[o]
}

// phase is what a shopper is doing now.
type phase int

const (
	phaseAway    phase = iota // not there yet, or cut off
	phaseWaiting              // in the lobby or the line
	phaseTurn                 // may grab
	phaseBuying               // has an order that is not confirmed yet
	phaseDone
	phases
)

// crowdCounters are the figures that change while a crowd runs.
type crowdCounters struct {
	phases    [phases]atomic.Int64
	outcomes  [outcomes]atomic.Int64
	connected atomic.Int64

	joined      atomic.Int64 // had a first state frame
	admitted    atomic.Int64 // had a turn
	reconnects  atomic.Int64 // connections made after one was lost
	refused     atomic.Int64 // connections that did not come about
	limited     atomic.Int64 // answers that asked to come later
	duplicates  atomic.Int64 // shoppers told of a second order
	unconfirmed atomic.Int64 // shoppers at the end with an order that was never confirmed
	aheadRose   atomic.Int64 // times that a shopper's place in the line became worse
	moved       atomic.Int64 // times that a shopper came back to another number
}

// crowdProgress is a crowd at one moment.
type crowdProgress struct {
	Users      int
	Elapsed    time.Duration
	Connected  int64
	Waiting    int64
	Turns      int64
	Buying     int64 // with an order that is not confirmed yet
	Joined     int64
	Admitted   int64
	Reconnects int64
	Refused    int64
	Limited    int64
	Results    map[string]int64 // finished shoppers by outcome, without the outcomes that nobody had
}

// Finished is the number of shoppers who know how the sale ended for them.
func (p crowdProgress) Finished() int64 {
	var n int64
	for _, count := range p.Results {
		n += count
	}
	return n
}

// String is the progress as one line.
func (p crowdProgress) String() string {
	var line strings.Builder
	fmt.Fprintf(&line, "%s  connected %d  waiting %d  turns %d", clockTime(p.Elapsed), p.Connected, p.Waiting, p.Turns)
	if p.Buying > 0 {
		fmt.Fprintf(&line, "  unconfirmed %d", p.Buying)
	}
	for o := outcomeSuccess; o < outcomes; o++ {
		if n := p.Results[o.String()]; n > 0 {
			fmt.Fprintf(&line, "  %s %d", o, n)
		}
	}
	if p.Reconnects > 0 {
		fmt.Fprintf(&line, "  reconnects %d", p.Reconnects)
	}
	if p.Refused > 0 {
		fmt.Fprintf(&line, "  refused %d", p.Refused)
	}
	fmt.Fprintf(&line, "  done %d/%d", p.Finished(), p.Users)
	return line.String()
}

// snapshot reads the counters, each by itself.
func (c *crowdCounters) snapshot(users int, elapsed time.Duration) crowdProgress {
	p := crowdProgress{
		Users: users, Elapsed: elapsed, Connected: c.connected.Load(),
		Waiting: c.phases[phaseWaiting].Load(), Turns: c.phases[phaseTurn].Load(), Buying: c.phases[phaseBuying].Load(),
		Joined: c.joined.Load(), Admitted: c.admitted.Load(),
		Reconnects: c.reconnects.Load(), Refused: c.refused.Load(), Limited: c.limited.Load(),
		Results: map[string]int64{},
	}
	for o := outcomeSuccess; o < outcomes; o++ {
		if n := c.outcomes[o].Load(); n > 0 {
			p.Results[o.String()] = n
		}
	}
	return p
}

// showProgress prints the progress until the returned function is called, which prints the last one: in place on a
// terminal, otherwise a line a second.
func showProgress(out io.Writer, progress func() crowdProgress) (stop func()) {
	every, format := time.Second, "%s\n"
	terminal := isTerminal(out)
	if terminal {
		every, format = 200*time.Millisecond, "\r\x1b[K%s"
	}
	quit := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				fmt.Fprintf(out, format, progress())
			case <-quit:
				fmt.Fprintf(out, format, progress())
				if terminal {
					fmt.Fprintln(out)
				}
				return
			}
		}
	})
	return func() {
		close(quit)
		shown.Wait()
	}
}

// isTerminal says whether a person watches out.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// clockTime is a duration as minutes, seconds and tenths: lines a second apart, and the last one between two of them, never
// show the same time.
func clockTime(d time.Duration) string {
	tenths := d.Round(time.Second/10).Milliseconds() / 100
	return fmt.Sprintf("%02d:%02d.%d", tenths/600, tenths/10%60, tenths%10)
}
