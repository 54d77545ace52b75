package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"sluice/words"
)

// crowdReport is what a crowd saw, and what of it is not the truth.
type crowdReport struct {
	URL        string                      `json:"url"`
	Sale       string                      `json:"sale"`
	Users      int                         `json:"users"`
	ElapsedMS  int64                       `json:"elapsed_ms"`
	Joined     int64                       `json:"joined"`   // had a first state frame
	Admitted   int64                       `json:"admitted"` // had a turn
	Results    map[string]int64            `json:"results"`  // shoppers by outcome
	Reconnects int64                       `json:"reconnects"`
	Refused    int64                       `json:"refused"` // connections, or requests, that did not come about
	Limited    int64                       `json:"limited"` // answers that asked to come later
	Failures   map[string]int64            `json:"failures,omitempty"`
	Refusals   map[string]map[string]int64 `json:"refusals,omitempty"` // what was said to those who were not let in, by outcome, where it was more than that
	Hints      []string                    `json:"hints,omitempty"`    // what may help those who were not let in
	Cut        map[string]int64            `json:"cut,omitempty"`      // connections that ended without the node having asked to move, by close code; 1006 = without one

	Unanswered  int64 `json:"unanswered"`   // shoppers without a final frame
	Unconfirmed int64 `json:"unconfirmed"`  // of them those with an order that was never confirmed
	Duplicates  int64 `json:"duplicates"`   // shoppers told of two orders
	Shared      int64 `json:"shared"`       // orders told to two shoppers
	AheadRose   int64 `json:"ahead_rose"`   // times that a place in the line became worse
	Moved       int64 `json:"moved"`        // times that a shopper came back to another number
	ToldUnits   int64 `json:"told_units"`   // units of live orders that the shoppers know of
	LapsedUnits int64 `json:"lapsed_units"` // of them those whose time to pay was over at the audit

	Join    *latency `json:"join,omitempty"`
	Turn    *latency `json:"turn,omitempty"`
	Grab    *latency `json:"grab,omitempty"`
	Confirm *latency `json:"confirm,omitempty"`

	Company    bool         `json:"company,omitempty"` // others may have bought at the same time
	Sold       int64        `json:"sold"`              // units that the sale sold while the crowd was there; 0 without an audit
	Audit      *auditReport `json:"audit,omitempty"`
	AuditError string       `json:"audit_error,omitempty"`
	Matched    bool         `json:"-"` // the demo compared every answer with the rows itself

	Problems []string               `json:"problems"` // everything that is not the truth; empty = all is well
	Orders   map[string][]wireOrder `json:"orders"`   // by user
}

// report gathers what was seen so far, without the audit.
func (c *crowd) report(elapsed time.Duration) crowdReport {
	p := c.counters.snapshot(c.opts.Users, elapsed)
	r := crowdReport{
		URL: c.opts.URL, Sale: c.opts.Sale, Users: c.opts.Users, Company: c.opts.Company, ElapsedMS: elapsed.Milliseconds(),
		Joined: p.Joined, Admitted: p.Admitted, Results: p.Results,
		Reconnects: p.Reconnects, Refused: p.Refused, Limited: p.Limited,
		Unanswered: int64(c.opts.Users) - p.Finished(), Unconfirmed: c.counters.unconfirmed.Load(),
		Duplicates: c.counters.duplicates.Load(), AheadRose: c.counters.aheadRose.Load(), Moved: c.counters.moved.Load(),
		Join: c.times.join.latency(), Turn: c.times.turns.latency(), Grab: c.times.grab.latency(), Confirm: c.times.confirm.latency(),
	}
	c.ledger.read(&r)
	for o := range outcomes {
		if hint := c.opts.hint(o); hint != "" && r.Results[o.String()] > 0 {
			r.Hints = append(r.Hints, hint)
		}
	}
	return r
}

// shut says whether nobody at all was let in, so that nothing was tried of the sale.
func (r *crowdReport) shut() bool {
	var n int64
	for o := range outcomes {
		if o.keptOut() {
			n += r.Results[o.String()]
		}
	}
	return n == int64(r.Users) && r.Joined == 0
}

// explains says whether what was sold is what the shoppers were told. An order whose time to pay is over may or may not
// have given its units back by now.
func (r *crowdReport) explains() bool {
	r.ToldUnits, r.LapsedUnits = 0, 0
	for _, orders := range r.Orders {
		for _, order := range orders {
			if !order.live() {
				continue
			}
			r.ToldUnits += order.Qty
			if order.PayBy > 0 && order.Status != "paid" && r.Audit != nil && order.PayBy <= r.Audit.At.UnixMilli() {
				r.LapsedUnits += order.Qty
			}
		}
	}
	return r.Sold >= r.ToldUnits-r.LapsedUnits && (r.Sold <= r.ToldUnits || r.Company)
}

// judge finds what is not the truth.
func (r *crowdReport) judge() {
	r.Problems = []string{}
	found := func(n int64, format, noun string) {
		if n > 0 {
			r.Problems = append(r.Problems, fmt.Sprintf(format, words.Count(n, noun)))
		}
	}
	found(r.Unanswered, "%s left without an answer", "shopper")
	found(r.Unconfirmed, "%s never confirmed", "order")
	found(r.Duplicates, "%s told of two orders", "shopper")
	found(r.Shared, "%s told to two shoppers", "order")
	found(r.AheadRose, "a place in the line became worse %s", "time")
	found(r.Moved, "a shopper came back to another number %s", "time")
	found(r.Results[outcomeFailed.String()], "%s refused with an error", "shopper")

	told := r.explains()
	switch {
	case r.AuditError != "":
		r.Problems = append(r.Problems, "the audit could not be taken: "+r.AuditError)
	case r.Audit == nil:
	case !r.Audit.Balanced:
		r.Problems = append(r.Problems, "the audit does not hold: "+r.Audit.why())
	case !r.Audit.settled():
		r.Problems = append(r.Problems, "some orders never reached the database")
	case !told:
		r.Problems = append(r.Problems, fmt.Sprintf("%s sold, and the shoppers were told of %d", words.Count(r.Sold, "unit"), r.ToldUnits))
	}
}

// verdict says in a word or two what is to be held of it.
func (r crowdReport) verdict() string {
	switch {
	case len(r.Problems) > 0:
		return "NOT THE TRUTH\n  " + strings.Join(r.Problems, "\n  ")
	case r.shut():
		return shutOut
	case r.Matched:
		return "everyone was told the truth: each answer matches the rows of the database"
	}
	return "everyone was told the truth"
}

// shutOut is the verdict on a crowd that tried nothing of the sale.
const shutOut = "nobody was let in"

// printJSON writes the report as JSON.
func (r crowdReport) printJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// print writes the report for a person.
func (r crowdReport) print(out io.Writer) error {
	elapsed := time.Duration(r.ElapsedMS) * time.Millisecond
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(table, name+"\t"+format+"\n", args...) }
	line("crowd", "%s at %s, %s", words.Count(r.Users, "shopper"), r.Sale, words.Duration(elapsed.Round(100*time.Millisecond)))
	line("joined", "%d", r.Joined)
	line("admitted", "%d", r.Admitted)
	for o := outcomeSuccess; o < outcomes; o++ {
		if n := r.Results[o.String()]; n > 0 || o == outcomeSuccess || o == outcomeSoldOut {
			line(o.String(), "%d", n)
		}
		said := r.Refusals[o.String()]
		if o == outcomeFailed {
			said = r.Failures
		}
		for _, why := range slices.Sorted(maps.Keys(said)) {
			line("", "%d × %s", said[why], why)
		}
	}
	line("unanswered", "%d", r.Unanswered)
	line("duplicates", "%d", r.Duplicates+r.Shared)
	line("reconnects", "%d", r.Reconnects)
	for _, code := range slices.Sorted(maps.Keys(r.Cut)) {
		line("", "%d × cut off with %s", r.Cut[code], code)
	}
	line("no connection", "%d", r.Refused)
	line("asked to wait", "%d", r.Limited)
	if err := table.Flush(); err != nil {
		return err
	}

	fmt.Fprintln(out)
	times := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(times, "LATENCY\tCOUNT\tP50\tP90\tP99\tMAX\t")
	for _, row := range []struct {
		name string
		*latency
	}{{"join", r.Join}, {"turn", r.Turn}, {"grab", r.Grab}, {"confirm", r.Confirm}} {
		if row.latency == nil {
			fmt.Fprintf(times, "%s\t-\t-\t-\t-\t-\t\n", row.name)
			continue
		}
		fmt.Fprintf(times, "%s\t%d\t%s\t%s\t%s\t%s\t\n", row.name, row.Count, ms(row.P50), ms(row.P90), ms(row.P99), ms(row.Max))
	}
	if err := times.Flush(); err != nil {
		return err
	}
	if r.Turn != nil {
		fmt.Fprintln(out, "(turn: delay beyond the fastest frame of the run)")
	}

	if r.Audit != nil {
		fmt.Fprintln(out)
		if err := r.Audit.print(out); err != nil {
			return err
		}
		fmt.Fprintf(out, "told        %s by success, %d sold meanwhile\n", words.Count(r.ToldUnits, "unit"), r.Sold)
	}
	_, err := fmt.Fprintf(out, "\n%s\n", strings.Join(append([]string{r.verdict()}, r.Hints...), "\nhint: "))
	return err
}

// ms is a number of milliseconds with its unit.
func ms(n float64) string {
	switch {
	case n < 10:
		return fmt.Sprintf("%.2fms", n)
	case n < 1000:
		return fmt.Sprintf("%.0fms", n)
	}
	return fmt.Sprintf("%.2fs", n/1000)
}
