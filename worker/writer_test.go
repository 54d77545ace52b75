package worker

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"sluice/queue"
)

// ledger is a store and a queue in memory that note what is done to them, in order.
type ledger struct {
	mu      sync.Mutex
	rows    map[string]queue.Order
	commits map[string]int // by order id: in how many transactions
	batches []int          // sizes of the transactions
	adopted map[string]int
	freed   map[string]int
	moved   map[string]int
	steps   []string

	before   func(call string, orders []queue.Order) error // may fail a call
	rejected func(order queue.Order) string                // the reason
}

func newLedger() *ledger {
	return &ledger{
		rows: map[string]queue.Order{}, commits: map[string]int{}, adopted: map[string]int{}, freed: map[string]int{},
		moved:    map[string]int{},
		before:   func(string, []queue.Order) error { return nil },
		rejected: func(queue.Order) string { return "" },
	}
}

func (l *ledger) WriteOrders(_ context.Context, orders []queue.Order) ([]Written, error) {
	if err := l.before("write", orders); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps = append(l.steps, "write")
	l.batches = append(l.batches, len(orders))
	var written []Written
	for _, order := range orders {
		w := Written{Order: order, Reason: l.rejected(order)}
		w.Order.Status = queue.Confirmed
		if w.Reason != "" {
			w.Order.Status = queue.Rejected
		}
		if row, known := l.rows[order.ID]; known {
			w.Order, w.Known = row, true
		} else {
			l.commits[order.ID]++
		}
		l.rows[order.ID] = w.Order
		written = append(written, w)
	}
	return written, nil
}

func (l *ledger) Order(_ context.Context, id string) (queue.Order, error) {
	if err := l.before("read", nil); err != nil {
		return queue.Order{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	order, found := l.rows[id]
	if !found {
		return order, &queue.Error{Code: queue.NoSuchOrder, Message: "there is no such order"}
	}
	return order, nil
}

func (l *ledger) MoveDone(_ context.Context, ids []string) error {
	if err := l.before("move", nil); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps = append(l.steps, "move")
	for _, id := range ids {
		l.moved[id]++
	}
	return nil
}

func (l *ledger) Adopt(_ context.Context, sale string, orders []queue.Order) ([]queue.Adoption, error) {
	if err := l.before("adopt", orders); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps = append(l.steps, "adopt")
	for _, order := range orders {
		if order.Sale != sale {
			return nil, fmt.Errorf("an order of sale %s was adopted with those of %s", order.Sale, sale)
		}
		l.adopted[order.ID]++
	}
	return make([]queue.Adoption, len(orders)), nil
}

func (l *ledger) Release(_ context.Context, sale string, orders []queue.Order) ([]bool, error) {
	if err := l.before("release", orders); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	released := make([]bool, len(orders))
	for i, order := range orders {
		if order.Sale != sale {
			return nil, fmt.Errorf("an order of sale %s was released with those of %s", order.Sale, sale)
		}
		l.steps = append(l.steps, "release "+string(order.Status))
		l.freed[order.ID]++
		released[i] = true
	}
	return released, nil
}

// count is how many rows there are.
func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.rows)
}

// done are the orders that were adopted or freed.
func (l *ledger) done() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	done := maps.Clone(l.adopted)
	maps.Copy(done, l.freed)
	return done
}

func (l *ledger) taken() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.steps)
}

// failing fails the first n calls of a kind.
func failing(call string, n int, failure error) func(string, []queue.Order) error {
	var mu sync.Mutex
	return func(c string, _ []queue.Order) error {
		mu.Lock()
		defer mu.Unlock()
		if c != call || n == 0 {
			return nil
		}
		n--
		return failure
	}
}

func newTestWriter(from source, to *ledger) *Writer {
	return &Writer{
		source: from, store: to, queue: to, batch: 500, linger: 10 * time.Millisecond, log: quiet, metrics: newMetrics(nil),
	}
}

// hand publishes orders to a Direct, and returns where it is told of each that is settled.
func hand(t *testing.T, broker *Direct, orders ...queue.Order) <-chan error {
	t.Helper()
	settled := make(chan error, len(orders))
	for _, order := range orders {
		if err := broker.Publish(t.Context(), order, func(err error) { settled <- err }); err != nil {
			t.Fatal(err)
		}
	}
	return settled
}

// wantSettled waits until n orders are settled, and well.
func wantSettled(t *testing.T, settled <-chan error, n int) {
	t.Helper()
	for range n {
		if err := receive(t, "an acknowledgement", settled); err != nil {
			t.Errorf("settled with %v", err)
		}
	}
}

// wantEmpty checks that RabbitMQ has no orders left: what was not acknowledged comes back before what is sent now.
func wantEmpty(t *testing.T, broker *rabbit) {
	t.Helper()
	broker.send("marker", nil)
	left := 0
	eventually(t, "the marker comes", func() bool {
		for _, message := range broker.take(broker.orders()) {
			if message.MessageId == "marker" {
				return true
			}
			left++
		}
		return false
	})
	if left != 0 {
		t.Errorf("%d orders were not acknowledged", left)
	}
}

func TestWriterStoresAnnouncesAndAcknowledgesInThisOrder(t *testing.T) {
	t.Parallel()
	broker, book := NewDirect(), newLedger()
	start(t, newTestWriter(broker, book).Run)
	settled := make(chan []string, 1)
	if err := broker.Publish(t.Context(), grab("sale", 1), func(error) { settled <- book.taken() }); err != nil {
		t.Fatal(err)
	}
	wantSame(t, "what was done before the acknowledgement", receive(t, "an acknowledgement", settled), []string{"write", "adopt"})
}

func TestWriterReleasesWhatTheDatabaseRejects(t *testing.T) {
	t.Parallel()
	broker, book := NewDirect(), newLedger()
	book.rejected = func(queue.Order) string { return RejectedSoldOut }
	writer := newTestWriter(broker, book)
	start(t, writer.Run)
	settled := make(chan []string, 1)
	if err := broker.Publish(t.Context(), grab("sale", 1), func(error) { settled <- book.taken() }); err != nil {
		t.Fatal(err)
	}
	wantSame(t, "what was done before the acknowledgement", receive(t, "an acknowledgement", settled),
		[]string{"write", "release rejected", "move"})
	if n := testutil.ToFloat64(writer.metrics.written.WithLabelValues("rejected")); n != 1 {
		t.Errorf("counted %v rejections, want 1", n)
	}
}

func TestWriterTellsRedisAgainOfOrdersThatWereKnown(t *testing.T) {
	t.Parallel()
	broker, book := NewDirect(), newLedger()
	live, over := grab("sale", 1), grab("sale", 2)
	live.Status, over.Status = queue.Paid, queue.Cancelled
	book.rows[live.ID], book.rows[over.ID] = live, over
	writer := newTestWriter(broker, book)
	start(t, writer.Run)
	wantSettled(t, hand(t, broker, grab("sale", 1), grab("sale", 2)), 2)
	if book.adopted[live.ID] != 1 || book.adopted[over.ID] != 0 || book.freed[over.ID] != 1 || book.freed[live.ID] != 0 {
		t.Errorf("adopted %v, freed %v", book.adopted, book.freed)
	}
	if n := testutil.ToFloat64(writer.metrics.written.WithLabelValues("known")); n != 2 {
		t.Errorf("counted %v known orders, want 2", n)
	}
}

func TestWriterKeepsSalesApartInOneBatch(t *testing.T) {
	t.Parallel()
	broker, book := NewDirect(), newLedger()
	orders := append(grabs("sale-a", 0, 50), grabs("sale-b", 0, 50)...)
	settled := hand(t, broker, orders...)
	start(t, newTestWriter(broker, book).Run)
	wantSettled(t, settled, 100)
	wantAll(t, book.done(), orders)
}

func TestWriterWritesASingleOrderAtOnceWhenIdle(t *testing.T) {
	t.Parallel()
	broker, book := NewDirect(), newLedger()
	writer := newTestWriter(broker, book)
	writer.linger = time.Hour
	start(t, writer.Run)
	for i := range 3 {
		wantSettled(t, hand(t, broker, grab("sale", i)), 1)
	}
}

// occupy makes a writer busy: it returns when a first order is being written and others wait, and what lets it go on.
func occupy(t *testing.T, broker *Direct, book *ledger, others ...queue.Order) (settled <-chan error, free func()) {
	t.Helper()
	writing, free1 := make(chan struct{}), make(chan struct{})
	var once sync.Once
	book.before = func(call string, _ []queue.Order) error {
		if call == "write" {
			once.Do(func() {
				close(writing)
				<-free1
			})
		}
		return nil
	}
	first := hand(t, broker, grab("first", 0))
	receive(t, "the first order is being written", writing)
	settled = hand(t, broker, others...)
	return settled, func() {
		close(free1)
		wantSettled(t, first, 1)
	}
}

func TestWriterWritesASingleOrderAfterTheLingerWhenBusy(t *testing.T) {
	t.Parallel()
	broker, book := NewDirect(), newLedger()
	start(t, newTestWriter(broker, book).Run)
	settled, free := occupy(t, broker, book, grab("sale", 1))
	free()
	wantSettled(t, settled, 1) // with nothing else to come
}

func TestWriterFillsABatchWhileBusy(t *testing.T) {
	t.Parallel()
	broker, book := NewDirect(), newLedger()
	writer := newTestWriter(broker, book)
	writer.batch, writer.linger = 10, time.Hour
	start(t, writer.Run)
	settled, free := occupy(t, broker, book, grabs("sale", 0, 4)...)
	free()
	wantSettled(t, hand(t, broker, grabs("sale", 4, 10)...), 6)
	wantSettled(t, settled, 4)
	wantSame(t, "the batches", book.batches, []int{1, 10})
}

func TestWriterNeverExceedsItsBatch(t *testing.T) {
	t.Parallel()
	broker, book := NewDirect(), newLedger()
	settled := hand(t, broker, grabs("sale", 0, 1234)...)
	start(t, newTestWriter(broker, book).Run)
	wantSettled(t, settled, 1234)
	if most := slices.Max(book.batches); most != 500 {
		t.Errorf("the largest batch has %d orders, want 500", most)
	}
}

func TestWriterFlushesTheBatchInHandWhenItStops(t *testing.T) {
	t.Parallel()
	broker, book := NewDirect(), newLedger()
	writer := newTestWriter(broker, book)
	writer.linger = time.Hour
	stop := start(t, writer.Run)
	settled, free := occupy(t, broker, book, grabs("sale", 0, 7)...)
	free()
	eventually(t, "the writer has them in hand", func() bool { return len(broker.orders) == 0 })
	stop()
	wantSettled(t, settled, 7)
	if book.count() != 8 {
		t.Errorf("there are %d rows, want 8", book.count())
	}
}

func TestWriterFinishesItsTransactionWhenItStops(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
	book := newLedger()
	ctx, cancel := context.WithCancel(t.Context())
	book.before = func(call string, _ []queue.Order) error {
		if call == "write" {
			cancel()
		}
		return nil
	}
	publishAll(t, broker, grabs("sale", 0, 3)...)
	newTestWriter(broker, book).Run(ctx)
	rows := book.count()
	if rows == 0 {
		t.Error("nothing was written")
	}
	eventually(t, "the others wait, and only they", func() bool { return broker.ready(broker.orders())+rows == 3 })
}

func TestWriterStopsAlthoughOrdersKeepComing(t *testing.T) {
	t.Parallel()
	broker, book := NewDirect(), newLedger()
	writer := newTestWriter(broker, book)
	writer.batch = 2
	ctx, cancel := context.WithCancel(t.Context())
	book.before = func(call string, _ []queue.Order) error {
		if call == "write" {
			cancel()
			hand(t, broker, grabs("sale", 0, 4)...)
		}
		return nil
	}
	hand(t, broker, grab("sale", 5))
	writer.Run(ctx)
	if len(book.batches) != 1 {
		t.Errorf("%d batches were written after the end, want the one in hand", len(book.batches))
	}
}

func TestWriterRidesOutTransientFailures(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]struct {
		call string
		err  error
	}{
		"the database is away":             {"write", driver.ErrBadConn},
		"the database takes too long":      {"write", context.DeadlineExceeded},
		"the database has no such table":   {"write", errors.New("no such table: orders")},
		"Redis is away":                    {"adopt", errors.New("connection refused")},
		"Redis is away at a rejection":     {"release", errors.New("connection refused")},
		"the database is away after Redis": {"move", driver.ErrBadConn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
			book, logged := newLedger(), &logBook{}
			book.before = failing(failure.call, 4, failure.err)
			if failure.call == "release" || failure.call == "move" {
				book.rejected = func(o queue.Order) string {
					if o.ID == grab("sale", 1).ID {
						return RejectedLimit
					}
					return ""
				}
			}
			writer := newTestWriter(broker, book)
			writer.log = slogOf(logged)
			publishAll(t, broker, grabs("sale", 0, 20)...)
			stop := start(t, writer.Run)
			eventually(t, "all is done", func() bool { return len(book.done()) == 20 && logged.count(info) == 1 })
			stop()
			wantEmpty(t, broker)
			for id, n := range book.commits {
				if n != 1 {
					t.Errorf("order %s was committed %d times", id, n)
				}
			}
			if n := broker.ready(broker.dead()); n != 0 {
				t.Errorf("%d dead letters", n)
			}
		})
	}
}

func TestWriterAcknowledgesNothingBeforeItIsDone(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"write", "adopt", "release", "move"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
			book := newLedger()
			if call == "release" || call == "move" {
				book.rejected = func(queue.Order) string { return RejectedAlready }
			}
			failed := make(chan struct{}, 1000)
			book.before = func(c string, _ []queue.Order) error {
				if c == call {
					failed <- struct{}{}
					return driver.ErrBadConn
				}
				return nil
			}
			publishAll(t, broker, grabs("sale", 0, 5)...)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			feed := consume(t, broker, 10)
			batch := next(t, feed, 5)
			done := make(chan error, 1)
			writer := newTestWriter(broker, book)
			go func() { done <- writer.handle(ctx, feed, batch) }()
			for range 3 {
				receive(t, "a try", failed)
			}
			feed.Close(batch) // the process is killed
			if err := receive(t, "the end", done); !errors.Is(err, errSession) {
				t.Errorf("the writer ended with %v, want %v", err, errSession)
			}
			if got := len(next(t, consume(t, broker, 10), 5)); got != 5 {
				t.Errorf("%d orders are delivered again, want 5", got)
			}
		})
	}
}

// onePass lets a writer handle the next n deliveries of a feed in one pass, acknowledges them, and closes the feed.
func onePass(t *testing.T, writer *Writer, feed Feed, n int) {
	t.Helper()
	batch := next(t, feed, n)
	if err := writer.handle(t.Context(), feed, batch); err != nil {
		t.Fatal(err)
	}
	if err := feed.Ack(batch); err != nil {
		t.Fatal(err)
	}
	feed.Close(nil)
}

func TestWriterOneBadOrderDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
	book := newLedger()
	bad := grab("sale", 321)
	book.before = func(call string, orders []queue.Order) error {
		if call == "write" && slices.Contains(orders, bad) {
			return &queue.Error{Code: queue.NoSuchItem, Message: "there is no item \"black\""}
		}
		return nil
	}
	writer := newTestWriter(broker, book)
	publishAll(t, broker, grabs("sale", 0, 500)...)

	feed := consume(t, broker, 1000)
	onePass(t, writer, feed, 500)
	wantEmpty(t, broker)
	if book.count() != 499 || len(book.done()) != 499 {
		t.Errorf("%d orders were written and %d announced, want 499", book.count(), len(book.done()))
	}
	dead := broker.take(broker.dead())
	if len(dead) != 1 || dead[0].MessageId != bad.ID {
		t.Fatalf("the dead letters are %+v", dead)
	}
	if reason, _ := dead[0].Headers["x-reason"].(string); !strings.Contains(reason, "there is no item") {
		t.Errorf("the reason is %q", reason)
	}
	if order, err := decodeOrder(dead[0].Body); err != nil || order != bad {
		t.Errorf("the dead letter came back as %+v, %v", order, err)
	}
}

func TestWriterPutsAsideWhatIsNoOrder(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
	book := newLedger()
	publishAll(t, broker, grabs("sale", 0, 5)...)
	broker.send("noise", []byte("not json"))
	broker.send("future", []byte(`{"v":2}`))
	publishAll(t, broker, grabs("sale", 5, 10)...)
	writer := newTestWriter(broker, book)
	stop := start(t, writer.Run)
	eventually(t, "all is done", func() bool { return len(book.done()) == 10 && broker.ready(broker.dead()) == 2 })
	stop()
	wantEmpty(t, broker)
	reasons := map[string]string{}
	for _, message := range broker.take(broker.dead()) {
		reasons[message.MessageId], _ = message.Headers["x-reason"].(string)
		if _, found := message.Headers["x-sale"]; found {
			t.Errorf("message %s has a sale", message.MessageId)
		}
	}
	if !strings.Contains(reasons["noise"], "not an order in JSON") || !strings.Contains(reasons["future"], "version 2") {
		t.Errorf("the reasons are %v", reasons)
	}
	if n := testutil.ToFloat64(writer.metrics.written.WithLabelValues("dead")); n != 2 {
		t.Errorf("counted %v dead letters, want 2", n)
	}
}

// deafSource is a broker that does not take dead letters for a while.
type deafSource struct {
	Broker
	mu   sync.Mutex
	fail int
}

func (s *deafSource) Bury(ctx context.Context, letter DeadLetter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail > 0 {
		s.fail--
		return errBlocked
	}
	return s.Broker.Bury(ctx, letter)
}

func TestWriterKeepsADeadLetterUntilItIsPutAside(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
	broker.send("noise", []byte("not json"))
	stop := start(t, newTestWriter(&deafSource{Broker: broker, fail: 3}, newLedger()).Run)
	eventually(t, "it is put aside", func() bool { return broker.ready(broker.dead()) == 1 })
	stop()
	wantEmpty(t, broker)
	if got := len(broker.take(broker.dead())); got != 1 {
		t.Errorf("%d dead letters, want 1", got)
	}
}

func TestWriterGoesOnWithoutRedisKnowingTheSale(t *testing.T) {
	t.Parallel()
	broker, book := NewDirect(), newLedger()
	book.rejected = func(o queue.Order) string {
		if o.ID == grab("gone", 1).ID {
			return RejectedSoldOut
		}
		return ""
	}
	book.before = func(call string, orders []queue.Order) error {
		if (call == "adopt" || call == "release") && orders[0].Sale == "gone" {
			return &queue.Error{Code: queue.Unavailable, Message: "the sale is being put right"}
		}
		return nil
	}
	start(t, newTestWriter(broker, book).Run)
	wantSettled(t, hand(t, broker, grab("gone", 0), grab("gone", 1), grab("sale", 0)), 3)
	if len(book.moved) != 0 {
		t.Errorf("the moves %v are marked as done, but Redis was not told", book.moved)
	}
	wantAll(t, book.done(), grabs("sale", 0, 1))
}

// A writer is killed again and again, between commit and announcement or between announcement and acknowledgement.
func TestWriterRedeliveryHasNoSecondEffect(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"write", "adopt", "ack"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			network := newProxy(t)
			broker := newRabbit(t, network.url(), AMQPOptions{})
			book := newLedger()
			publishAll(t, broker, grabs("sale", 0, 300)...)
			cuts := 0
			var mu sync.Mutex
			cut := func() {
				mu.Lock()
				defer mu.Unlock()
				if cuts < 5 {
					cuts++
					network.cut()
				}
			}
			book.before = func(c string, _ []queue.Order) error {
				if c == call {
					cut()
				}
				return nil
			}
			writer := newTestWriter(&ackSource{broker, func([]Delivery) {
				if call == "ack" {
					cut()
				}
			}}, book)
			writer.batch = 50
			stop := start(t, writer.Run)
			eventually(t, "all is done", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return cuts == 5 && len(book.done()) == 300 && broker.ready(broker.orders()) == 0
			})
			stop()
			wantEmpty(t, broker)
			wantAll(t, book.commits, grabs("sale", 0, 300))
			for id, n := range book.commits {
				if n != 1 {
					t.Errorf("order %s was committed %d times", id, n)
				}
			}
		})
	}
}

// ackSource is a broker that calls a function before each acknowledgement.
type ackSource struct {
	Broker
	before func(batch []Delivery)
}

func (s *ackSource) Consume(ctx context.Context, prefetch int) (Feed, error) {
	feed, err := s.Broker.Consume(ctx, prefetch)
	if err != nil {
		return nil, err
	}
	return &ackFeed{feed, s.before}, nil
}

type ackFeed struct {
	Feed
	before func(batch []Delivery)
}

func (f *ackFeed) Ack(batch []Delivery) error {
	f.before(batch)
	return f.Feed.Ack(batch)
}

// A process that is killed right after any acknowledgement has lost nothing.
func TestWriterAcknowledgesInOrderAndOnlyWhatIsDone(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
	book := newLedger()
	dice := rand.New(rand.NewPCG(1, 0)) // the writer alone uses it
	book.before = func(string, []queue.Order) error {
		if dice.IntN(3) == 0 {
			return driver.ErrBadConn
		}
		return nil
	}
	publishAll(t, broker, grabs("sale", 0, 200)...)
	var last uint64
	writer := newTestWriter(&ackSource{broker, func(batch []Delivery) {
		done := book.done()
		for _, delivery := range batch {
			if delivery.tag != last+1 {
				t.Errorf("delivery %d is acknowledged after %d", delivery.tag, last)
			}
			last = delivery.tag
			if done[delivery.ID] == 0 {
				t.Errorf("order %s is acknowledged before it is done", delivery.ID)
			}
		}
	}}, book)
	writer.batch = 10
	stop := start(t, writer.Run)
	eventually(t, "all is done", func() bool { return len(book.done()) == 200 })
	stop()
	wantEmpty(t, broker)
	if last != 200 {
		t.Errorf("%d deliveries were acknowledged, want 200", last)
	}
}

func TestWriterRidesOutAnAbsenceOfRabbitMQ(t *testing.T) {
	t.Parallel()
	network := newProxy(t)
	broker := newRabbit(t, network.url(), AMQPOptions{})
	book, logged := newLedger(), &logBook{}
	writer := newTestWriter(broker, book)
	writer.log = slogOf(logged)
	start(t, writer.Run)
	for round := range 3 {
		publishAll(t, broker, grabs("sale", 10*round, 10*round+10)...)
		eventually(t, "all is done", func() bool { return len(book.done()) == 10*round+10 })
		warned := logged.count(warn)
		network.down()
		eventually(t, "the writer is in trouble", func() bool { return logged.count(warn) > warned })
		network.up()
		eventually(t, "the writer is back", func() bool { return logged.count(info) == logged.count(warn) })
		eventually(t, "the relay's side is back", func() bool {
			_, err := broker.DeadLetters(t.Context())
			return err == nil
		})
	}
}

func TestWriterManyShareTheWork(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
	book := newLedger()
	var stops []func()
	for range 3 {
		writer := newTestWriter(broker, book)
		writer.batch = 20
		stops = append(stops, start(t, writer.Run))
	}
	publishAll(t, broker, grabs("sale", 0, 1000)...)
	eventually(t, "all is done", func() bool { return len(book.done()) == 1000 })
	for _, stop := range stops {
		stop()
	}
	wantEmpty(t, broker)
}
