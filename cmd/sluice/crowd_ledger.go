package main

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// wireOrder is an order as the server shows it.
type wireOrder struct {
	ID     string `json:"id"`
	Item   string `json:"item"`
	Qty    int64  `json:"qty"`
	Status string `json:"status"`
	PayBy  int64  `json:"pay_by,omitempty"` // ms since the epoch; 0 = needs no payment
}

// live says whether the order keeps its stock.
func (o wireOrder) live() bool {
	return o.Status == "reserved" || o.Status == "confirmed" || o.Status == "paid"
}

// crowdLedger keeps what the shoppers were told of orders, why some were refused, and how connections ended.
type crowdLedger struct {
	mu       sync.Mutex
	orders   map[string][]wireOrder      // by user
	owners   map[string]string           // by order
	shared   int64                       // orders that two users were told of
	failures map[string]int64            // by reason
	refusals map[string]map[string]int64 // what was said to those who were not let in, by outcome
	cut      map[string]int64            // by close code
}

func newCrowdLedger() *crowdLedger {
	return &crowdLedger{
		orders: map[string][]wireOrder{}, owners: map[string]string{}, failures: map[string]int64{},
		refusals: map[string]map[string]int64{}, cut: map[string]int64{},
	}
}

// told records that user was told of order, or of its newer status. It returns how many orders the user knows of.
func (l *crowdLedger) told(user string, order wireOrder) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine := l.orders[user]
	if at := slices.IndexFunc(mine, func(o wireOrder) bool { return o.ID == order.ID }); at >= 0 {
		mine[at] = order
		return len(mine)
	}
	if owner, ok := l.owners[order.ID]; ok && owner != user {
		l.shared++
	}
	l.owners[order.ID] = user
	l.orders[user] = append(mine, order)
	return len(mine) + 1
}

// failed records why a shopper was refused for good.
func (l *crowdLedger) failed(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures[why]++
}

// refused records what was said to a shopper who was not let in, where that was more than the outcome says.
func (l *crowdLedger) refused(o outcome, said string) {
	if said == "" || said == o.String() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refusals[o.String()] == nil {
		l.refusals[o.String()] = map[string]int64{}
	}
	l.refusals[o.String()][said]++
}

// cutOff records a connection that ended without the node having asked to move.
func (l *crowdLedger) cutOff(code int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut[strconv.Itoa(code)]++
}

// read copies what is recorded into the report.
func (l *crowdLedger) read(r *crowdReport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Orders, r.Shared, r.Failures, r.Cut = maps.Clone(l.orders), l.shared, maps.Clone(l.failures), maps.Clone(l.cut)
	r.Refusals = map[string]map[string]int64{}
	for o, said := range l.refusals {
		r.Refusals[o] = maps.Clone(said)
	}
}

// crowdTimes are the latencies that the shoppers saw.
type crowdTimes struct {
	join    *stopwatch // dial → first state frame
	grab    *stopwatch // first sent → result
	confirm *stopwatch // result → order confirmed
	turns   turnTimes
}

func newCrowdTimes() *crowdTimes {
	times := &crowdTimes{join: newStopwatch(), grab: newStopwatch(), confirm: newStopwatch()}
	times.turns.fastest.Store(math.MaxInt64)
	return times
}

// stopwatch collects durations from 1 µs to 1 h, to three digits.
type stopwatch struct {
	mu   sync.Mutex
	hist *hdrhistogram.Histogram // in µs
}

func newStopwatch() *stopwatch {
	return &stopwatch{hist: hdrhistogram.New(1, time.Hour.Microseconds(), 3)}
}

func (s *stopwatch) add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.hist.RecordValue(min(max(d, 0), time.Hour).Microseconds()) // cannot fail within the range
}

// latency reads the percentiles; nil when nothing was measured.
func (s *stopwatch) latency() *latency {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hist.TotalCount() == 0 {
		return nil
	}
	at := func(q float64) float64 { return float64(s.hist.ValueAtQuantile(q)) / 1000 }
	return &latency{Count: s.hist.TotalCount(), P50: at(50), P90: at(90), P99: at(99), Max: float64(s.hist.Max()) / 1000}
}

// latency is a distribution in milliseconds.
type latency struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

// turnTimes measures how long a turn's frame was on its way, though the clocks of server and shopper differ: the
// fastest frame of the whole run is taken to have needed no time, so what is measured is the delay beyond it. The offset is
// known only at the end, hence each turn's raw difference is kept until then.
type turnTimes struct {
	fastest atomic.Int64 // smallest local − server, in µs
	mu      sync.Mutex
	raw     []time.Duration
}

// saw takes note of a frame that the server stamped at (ms since the epoch) and that came at now.
func (t *turnTimes) saw(at int64, now time.Time) {
	difference := now.Sub(time.UnixMilli(at)).Microseconds()
	for {
		old := t.fastest.Load()
		if old <= difference || t.fastest.CompareAndSwap(old, difference) {
			return
		}
	}
}

// add takes note of a frame that gave a turn.
func (t *turnTimes) add(at int64, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.raw = append(t.raw, now.Sub(time.UnixMilli(at)))
}

// latency is the distribution; nil when no turn carried a time.
func (t *turnTimes) latency() *latency {
	t.mu.Lock()
	defer t.mu.Unlock()
	watch := newStopwatch()
	offset := time.Duration(t.fastest.Load()) * time.Microsecond
	for _, raw := range t.raw {
		watch.add(raw - offset)
	}
	return watch.latency()
}
