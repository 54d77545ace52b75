package worker

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/queue"
	"sluice/trace"
)

const (
	// watchEvery is how often a worker looks which sales there are, and how long their outboxes are.
	watchEvery = time.Second
	// deadEvery is how often a worker counts the dead letters.
	deadEvery = 5 * time.Second
)

// Options are the settings of a Worker. Queue, Store, Broker and Logger are required.
type Options struct {
	Queue      *queue.Queue
	Store      *Store
	Broker     Broker
	Notifier   *Notifier // told of every order that is written; may be nil
	Logger     *slog.Logger
	Registerer prometheus.Registerer // may be nil
	Tracer     *trace.Tracer         // nil = nothing is followed

	Node        string        // names this process among those that read the same outboxes; must be unique
	Writers     int           // how many batches are written at once; 0 = 2
	Batch       int           // orders in one transaction, at most; 0 = 500
	Linger      time.Duration // how long a busy writer waits for a batch to fill; 0 = 10 ms
	RelayWindow int           // orders of a sale on their way to the broker, at most; 0 = 1,000
}

// Worker takes orders from the outboxes of all sales into the database. Any number of workers may run at once.
type Worker struct {
	opts    Options
	queue   orderQueue
	store   orderStore
	metrics *metrics
}

// orderQueue is the part of the [queue.Queue] that a Worker needs.
type orderQueue interface {
	adopter
	Sales(ctx context.Context) ([]string, error)
	OutboxLen(ctx context.Context, sale string) (int64, error)
	holder
	outbox(sale, consumer string) outbox
}

// realQueue is the real one.
type realQueue struct{ *queue.Queue }

func (q realQueue) outbox(sale, consumer string) outbox { return q.Outbox(sale, consumer) }

// New makes a worker.
func New(opts Options) *Worker {
	return newWorker(opts, realQueue{opts.Queue}, opts.Store)
}

func newWorker(opts Options, queue orderQueue, store orderStore) *Worker {
	if opts.Writers <= 0 {
		opts.Writers = 2
	}
	if opts.Batch <= 0 {
		opts.Batch = 500
	}
	if opts.Linger <= 0 {
		opts.Linger = 10 * time.Millisecond
	}
	if opts.RelayWindow <= 0 {
		opts.RelayWindow = 1000
	}
	return &Worker{opts: opts, queue: queue, store: store, metrics: newMetrics(opts.Registerer)}
}

// Run works until ctx ends. Then the relays stop first and the writers last, so that what is on its way inside this
// process is written; that takes 15 s at most, and a moment while all is well.
func (w *Worker) Run(ctx context.Context) {
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	var writers sync.WaitGroup
	for range w.opts.Writers {
		writer := w.writer()
		writers.Go(func() { writer.Run(writing) })
	}
	telling, stopTelling := context.WithCancel(context.WithoutCancel(ctx))
	var others sync.WaitGroup
	others.Go(func() { w.countDead(ctx) })
	others.Go(func() { tellOfHolding(telling, w.opts.Broker, w.queue) })
	w.watch(ctx)
	stopWriting()
	writers.Wait()
	stopTelling() // not before: a writer that is told to stop may have its batch in hand for a while
	others.Wait()
}

func (w *Worker) writer() *Writer {
	return &Writer{
		source:   w.opts.Broker,
		store:    w.store,
		queue:    w.queue,
		notifier: w.opts.Notifier,
		batch:    w.opts.Batch,
		linger:   w.opts.Linger,
		log:      w.opts.Logger,
		metrics:  w.metrics,
		tracer:   w.opts.Tracer,
	}
}

// watch runs a relay for every sale that there is, until ctx ends and all relays have stopped.
func (w *Worker) watch(ctx context.Context) {
	relays := map[string]context.CancelFunc{} // by sale
	var running sync.WaitGroup
	defer running.Wait()

	blind := trouble{log: w.opts.Logger, what: "look which sales there are"}
	for wait := time.Duration(0); sleep(ctx, wait); {
		wait = watchEvery
		sales, err := w.queue.Sales(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil { // what runs goes on
			wait = blind.met(err)
			continue
		}
		blind.over()
		w.reconcile(ctx, sales, relays, &running)
		w.measure(ctx, sales)
	}
}

// reconcile starts the relays of new sales and stops those of sales that are gone.
func (w *Worker) reconcile(ctx context.Context, sales []string, relays map[string]context.CancelFunc, running *sync.WaitGroup) {
	for _, sale := range sales {
		if relays[sale] != nil {
			continue
		}
		ctx, stop := context.WithCancel(ctx)
		relays[sale] = stop
		relay := newRelay(w.queue.outbox(sale, w.opts.Node), w.opts.Broker, w.opts.RelayWindow,
			w.opts.Logger.With("sale", sale), w.metrics)
		relay.tracer = w.opts.Tracer
		running.Go(func() { relay.Run(ctx) })
	}
	for sale, stop := range relays {
		if !slices.Contains(sales, sale) {
			stop()
			delete(relays, sale)
			w.metrics.outbox.DeleteLabelValues(sale)
		}
	}
}

// measure notes how long the outboxes are. It may fail: the relays say so when Redis is away.
func (w *Worker) measure(ctx context.Context, sales []string) {
	for _, sale := range sales {
		if n, err := w.queue.OutboxLen(ctx, sale); err == nil {
			w.metrics.outbox.WithLabelValues(sale).Set(float64(n))
		}
	}
}

// countDead notes how many dead letters there are, until ctx ends. When it fails, the relays say so too.
func (w *Worker) countDead(ctx context.Context) {
	for wait := time.Duration(0); sleep(ctx, wait); wait = deadEvery {
		if n, err := w.opts.Broker.DeadLetters(ctx); err == nil {
			w.metrics.deadLetters.Set(float64(n))
		}
	}
}
