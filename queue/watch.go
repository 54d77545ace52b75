package queue

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// How often a node ticks: fast while somebody waits or holds a turn in a sale that is open or paused, slowly otherwise. A kick makes a
// tick come sooner, but ticks keep a distance so that many kicks cost no more than one.
const (
	tickBusy  = 100 * time.Millisecond
	tickIdle  = time.Second
	tickLeast = 20 * time.Millisecond
	newsMost  = 1000
)

// Observer is told of each tick of a sale, one at a time. It should return quickly: the next tick waits for it.
type Observer interface {
	Tick(s *Snapshot, events []Event, lost Lost)
}

// Lost says what was lost before a tick.
type Lost struct {
	News  bool // some of the news: what is known of the seats here must be read again
	Lease bool // this node counted as dead: who is here must be told again
}

// Watcher ticks one sale on one node and keeps the newest snapshot.
type Watcher struct {
	q        *Queue
	sale     string
	observer Observer
	kick     chan struct{}
	first    chan struct{} // closed by the first tick
	newest   atomic.Pointer[Snapshot]
	ticked   atomic.Int64 // when the last tick that succeeded began, on this machine's clock, ns since the epoch
	log      *slog.Logger

	// Only Run touches these.
	known struct {
		news int64 // -1 = none read yet
		left int64 // -1 = no bitmap yet

		recalls int64 // -1 = none yet
	}
	settings *Sale
	version  int64
	gone     *numberSet
	recall   *numberSet
	pace     pace
}

// NewWatcher makes the watcher of a sale; observer may be nil.
func NewWatcher(q *Queue, sale string, observer Observer) *Watcher {
	w := &Watcher{q: q, sale: sale, observer: observer, kick: make(chan struct{}, 1), first: make(chan struct{}), log: q.opts.Logger.With("sale", sale)}
	w.known.news, w.known.left, w.known.recalls = -1, -1, -1
	return w
}

// Snapshot is the newest one, nil before the first tick. It may be called at any time.
func (w *Watcher) Snapshot() *Snapshot { return w.newest.Load() }

// First is closed when the first snapshot is there.
func (w *Watcher) First() <-chan struct{} { return w.first }

// Age is how long ago the last tick that succeeded began; 0 before the first.
func (w *Watcher) Age() time.Duration {
	if at := w.ticked.Load(); at > 0 {
		return time.Since(time.Unix(0, at))
	}
	return 0
}

// Kick makes the next tick come at once. A tick that is under way does not count: the next one begins after the kick.
func (w *Watcher) Kick() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// Run ticks until ctx ends, or until the sale was archived and it returns what IsOver knows. Trouble with Redis is logged when
// it begins and when it ends, and retried.
func (w *Watcher) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		case <-w.kick:
		}
		// A kick that arrived before the tick begins is served by it.
		select {
		case <-w.kick:
		default:
		}
		begun := time.Now()
		more, err := w.tick(ctx)
		if err == nil {
			w.ticked.Store(begun.UnixNano())
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if IsOver(err) {
			return err
		}
		if failed := err != nil; failed != failing {
			failing = failed
			if failed {
				w.log.Error("the line cannot be read; shoppers keep their places and see nothing new until it can", "error", err)
			} else {
				w.log.Info("the line can be read again")
			}
		}
		wait := w.pause(err, more)
		// The distance also holds for kicks, and ctx ends the wait.
		if rest := tickLeast - time.Since(begun); rest > 0 && !more {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(rest):
			}
			wait -= rest
		}
		timer.Reset(max(0, wait))
	}
}

// pause is how long to wait for the next tick unless kicked.
func (w *Watcher) pause(err error, more bool) time.Duration {
	s := w.newest.Load()
	switch {
	case err != nil:
		return tickBusy * 2
	case more:
		return 0
	case s == nil || s.State == Recovering:
		return tickBusy
	case (s.State == Open || s.State == Paused) && (s.Issued > s.Served || s.Turns > 0 || s.Recalled() > 0):
		return tickBusy // also in a pause: its end is news for all who wait
	case s.Undrawn(), w.q.latches.isClosed(w.sale):
		return tickBusy
	}
	wait := tickIdle
	for _, edge := range []time.Time{s.Sale.OpensAt, s.Sale.ClosesAt} {
		if d := time.Duration(edge.UnixMilli()-s.At) * time.Millisecond; d > 0 {
			wait = min(wait, d)
		}
	}
	return wait
}

// tick makes one call, and tells the observer what it returned.
func (w *Watcher) tick(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, gatherTimeout)
	defer cancel()
	k := keysOf(w.sale)
	begun := w.q.latches.now()
	v, err := w.q.run(ctx, "tick", []string{
		k.meta, k.stock, k.turns, k.gone, k.news, k.outbox, k.conn, k.away, k.recall, k.nodes, k.draw,
	}, []any{w.known.news, w.known.left, newsMost, w.q.limits.Load().Outbox, w.q.node, w.known.recalls})
	if err != nil {
		return false, err
	}
	r := &reply{script: "tick"}
	if len(r.list(v, 0)) == 0 {
		return false, w.q.absent(ctx, w.sale)
	}
	rows := r.list(v, 5)
	head := r.list(rows[0], 21)
	s := &Snapshot{
		At: r.int(head[0]), State: State(r.text(head[1])), Stock: StockState(r.text(head[2])), Stopped: r.int(head[3]),
		Version: r.int(head[4]), Epoch: r.int(head[5]), Served: r.int(head[6]), Issued: r.int(head[7]),
		Turns: r.int(head[8]), Granted: r.int(head[9]), Left: r.int(head[11]), Held: r.int(head[12]),
		Drawn: r.int(head[17]) == 1, Frozen: r.int(head[18]) == 1, Paused: r.int(head[20]) == 1, Items: map[string]int64{},
	}
	newest, more := r.int(head[10]), r.int(head[13]) == 1
	recalls, stranger, dead := r.int(head[14]), r.int(head[15]) == 1, r.int(head[16]) > 0
	supply := r.int(head[19])
	stock := r.list(rows[1], 0)
	for i := 0; i+1 < len(stock); i += 2 {
		s.Items[r.text(stock[i])] = r.int(stock[i+1])
	}
	gone, recall := w.gone, w.recall
	if part := r.list(rows[2], 0); len(part) == 2 {
		gone = newNumberSet(r.int(part[0]), r.text(part[1]))
	}
	if part := r.list(rows[4], 0); len(part) == 2 {
		recall = newNumberSet(r.int(part[0]), r.text(part[1]))
	}
	entries := r.list(rows[3], 0)
	events, last, missed := make([]Event, 0, len(entries)), w.known.news, false
	for _, entry := range entries {
		id, e := r.event(w.sale, entry)
		if id != last+1 {
			missed = true
		}
		last = id
		events = append(events, e)
	}
	if r.err != nil {
		return false, r.err
	}
	switch {
	case w.known.news < 0:
		last, missed = newest, true
	case len(entries) == 0 && last != newest:
		last, missed = newest, true // everything this node had not read is trimmed, or the sale was installed anew
	case last < newest:
		more = true
	}
	if w.settings == nil || s.Version != w.version {
		sale, err := w.q.Sale(ctx, w.sale)
		if err != nil {
			return false, err
		}
		if w.settings != nil && !w.settings.Line.SamePace(sale.Line) {
			w.pace.restart()
		}
		w.settings, w.version = &sale, s.Version
	}
	s.Sale, s.gone, s.recall = w.settings, gone, recall
	s.Rate = w.pace.at(s.At, s.Granted)
	w.known.news, w.known.left, w.known.recalls, w.gone, w.recall = last, s.Left, recalls, gone, recall
	w.q.latch(ctx, s, supply, begun)
	if w.newest.Swap(s) == nil {
		close(w.first)
	}
	if w.observer != nil {
		w.observer.Tick(s, events, Lost{News: missed, Lease: stranger})
	}
	if dead {
		err = w.q.bury(ctx, w.sale)
	}
	return more, err
}
