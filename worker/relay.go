package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"sluice/fault"
	"sluice/queue"
	"sluice/trace"
)

const (
	// relayBlock is how long one read of an empty outbox waits.
	relayBlock = time.Second
	// relayClaimIdle is how long an entry may be in the hands of a relay before another one takes it over. It is
	// longer than any confirm takes while all is well.
	relayClaimIdle = 3 * time.Second
	// relayClaimEvery is how often a relay looks for such entries.
	relayClaimEvery = time.Second
	// relayGrace is how long a relay that is told to stop waits for answers of the broker.
	relayGrace = 5 * time.Second
)

// outbox is the outbox of one sale as one relay sees it: [queue.Outbox].
type outbox interface {
	Read(ctx context.Context, max int, block time.Duration) ([]queue.Entry, error)
	Claim(ctx context.Context, minIdle time.Duration, max int) ([]queue.Entry, error)
	Done(ctx context.Context, ids []string) error
}

// publisher is the part of a Broker that a Relay needs.
type publisher interface {
	Publish(ctx context.Context, order queue.Order, settled func(error)) error
}

// Relay takes the entries of one sale's outbox to the broker. An entry stays in the outbox until the broker has
// answered for it. Whatever else happens to it — no answer, a refusal, a lost connection — it is published again with
// the same order id, by this relay, or by another one when this one is gone.
type Relay struct {
	outbox  outbox
	broker  publisher
	window  int // entries in its hands, at most
	log     *slog.Logger
	metrics *metrics
	tracer  *trace.Tracer // nil = nothing is followed
}

func newRelay(outbox outbox, broker publisher, window int, log *slog.Logger, metrics *metrics) *Relay {
	return &Relay{outbox: outbox, broker: broker, window: window, log: log, metrics: metrics}
}

// Run relays until ctx ends, and then waits up to 5 s for what the broker has not answered for. It rides out every
// failure of Redis and the broker.
func (r *Relay) Run(ctx context.Context) {
	run := &relayRun{
		Relay:   r,
		held:    make(map[string]queue.Entry, r.window),
		settled: make(chan settlement, r.window),
		broken:  trouble{log: r.log, what: "publish orders"},
		stuck:   trouble{log: r.log, what: "take published orders out of the outbox"},
	}
	want, read := make(chan int), make(chan []queue.Entry)
	reader := make(chan struct{})
	go func() {
		defer close(reader)
		r.reader(ctx, want, read)
	}()
	run.loop(ctx, want, read)
	<-reader
}

// reader reads the outbox: each time it is told how many entries are wanted, it sends at least one.
func (r *Relay) reader(ctx context.Context, want <-chan int, read chan<- []queue.Entry) {
	deaf := trouble{log: r.log, what: "read the outbox"}
	var claimAt time.Time // at the start too: a relay that died may have been this one
	next := func(max int) ([]queue.Entry, error) {
		if !time.Now().Before(claimAt) {
			entries, err := r.outbox.Claim(ctx, relayClaimIdle, max)
			if err != nil {
				return nil, err
			}
			if len(entries) < max {
				claimAt = time.Now().Add(relayClaimEvery)
			}
			if len(entries) > 0 {
				fault.Point("relay.claimed")
				return entries, nil
			}
		}
		return r.outbox.Read(ctx, max, relayBlock)
	}
	for {
		var max int
		select {
		case max = <-want:
		case <-ctx.Done():
			return
		}
		var entries []queue.Entry
		for len(entries) == 0 {
			var err error
			entries, err = next(max)
			if ctx.Err() != nil {
				return // what was just read is claimed by another relay
			}
			if err != nil {
				if !sleep(ctx, deaf.met(err)) {
					return
				}
				continue
			}
			deaf.over()
		}
		select {
		case read <- entries:
		case <-ctx.Done():
			return
		}
	}
}

// relayRun is what a running relay knows. One goroutine owns it.
type relayRun struct {
	*Relay
	held    map[string]queue.Entry // by entry id: all that this relay has read and not taken out of the outbox
	failed  []queue.Entry          // of these: to be published again
	done    []string               // of these: confirmed, to be taken out of the outbox
	settled chan settlement        // answers of the broker; has room for all that is held
	cause   error                  // why the newest of failed is there
	broken  trouble                // of the broker
	stuck   trouble                // of Redis
}

// settlement is the broker's answer about an entry.
type settlement struct {
	entry queue.Entry
	span  trace.Span
	err   error
}

// loop publishes what it reads until ctx ends and nothing is unanswered, or the grace is over.
func (r *relayRun) loop(ctx context.Context, want chan<- int, read <-chan []queue.Entry) {
	var (
		reading bool             // the reader was asked and has not answered yet
		retry   <-chan time.Time // when to publish what failed
		takeOut <-chan time.Time // when to tell Redis again what is done
		ending  = ctx.Done()
		giveUp  <-chan time.Time // not nil while ending
	)
	for giveUp == nil || len(r.held) > len(r.failed) { // what the broker did not take, another relay takes over
		ask := want
		room := r.window - len(r.held)
		// While the broker is in trouble, what is held already will show when that is over.
		if reading || room == 0 || r.broken.on || giveUp != nil {
			ask = nil
		}
		select {
		case ask <- room:
			reading = true
		case entries := <-read:
			reading = false
			fault.Point("relay.read")
			r.publish(ctx, r.hold(entries))
		case s := <-r.settled:
			r.settle(s)
			for range len(r.settled) {
				r.settle(<-r.settled)
			}
		case <-retry:
			retry = nil
			failed := r.failed
			r.failed = nil
			r.publish(ctx, failed)
		case <-takeOut:
			takeOut = nil
		case <-ending:
			ending = nil
			giveUp = time.After(relayGrace)
		case <-giveUp:
			return
		}
		if len(r.failed) > 0 && retry == nil && giveUp == nil {
			retry = time.After(r.broken.met(r.cause))
		}
		if len(r.done) > 0 && takeOut == nil {
			if err := r.finish(context.WithoutCancel(ctx)); err != nil {
				takeOut = time.After(r.stuck.met(err))
			}
		}
		if len(r.held) == 0 {
			r.broken.over() // not with the first answer: a broker that is full takes some and refuses others
		}
	}
}

// hold takes entries into this relay's hands and returns those that were not there yet: an entry that the broker takes
// long to answer for is claimed again by the relay that has it.
func (r *relayRun) hold(entries []queue.Entry) []queue.Entry {
	fresh := entries[:0]
	for _, entry := range entries {
		if _, held := r.held[entry.ID]; !held {
			waited := r.tracer.ContinueAt(entry.Order.CreatedAt, entry.Order.Trace, trace.Outbox)
			entry.Order.Trace = waited.ContextOr(entry.Order.Trace)
			waited.End("")
			r.held[entry.ID] = entry
			fresh = append(fresh, entry)
		}
	}
	return fresh
}

// publish hands entries to the broker, up to the first one that it does not take.
func (r *relayRun) publish(ctx context.Context, entries []queue.Entry) {
	for i, entry := range entries {
		span := r.tracer.Continue(entry.Order.Trace, trace.Publish)
		order := entry.Order
		order.Trace = span.ContextOr(order.Trace)
		err := r.broker.Publish(ctx, order, func(err error) { r.settled <- settlement{entry, span, err} })
		if err != nil {
			span.End("not published")
			r.cause = err
			r.failed = append(r.failed, entries[i:]...)
			return
		}
		fault.Point("relay.published")
	}
}

// settle notes an answer of the broker.
func (r *relayRun) settle(s settlement) {
	r.metrics.confirms.WithLabelValues(confirmResult(s.err)).Inc()
	if s.err != nil {
		s.span.End(confirmResult(s.err))
		r.cause = s.err
		r.failed = append(r.failed, s.entry)
		return
	}
	fault.Point("relay.confirmed")
	s.span.End("")
	r.metrics.relayLag.Observe(sinceGrab(s.entry.Order.CreatedAt))
	r.done = append(r.done, s.entry.ID)
}

// finish takes confirmed entries out of the outbox.
func (r *relayRun) finish(ctx context.Context) error {
	fault.Point("relay.finishing")
	if err := r.outbox.Done(ctx, r.done); err != nil {
		return err
	}
	fault.Point("relay.finished")
	for _, id := range r.done {
		delete(r.held, id)
	}
	r.done = r.done[:0]
	r.stuck.over()
	return nil
}

// confirmResult is the label of an answer.
func confirmResult(err error) string {
	switch {
	case err == nil:
		return "ack"
	case errors.Is(err, errRefused):
		return "nack"
	case errors.Is(err, errReturned):
		return "returned"
	}
	return "unknown"
}
