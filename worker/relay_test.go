package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"sluice/queue"
)

// stream is an outbox in memory, which many relays may read. What a relay has read and not done counts as idle as soon
// as abandon is called.
type stream struct {
	mu      sync.Mutex
	waiting []queue.Entry
	read    map[string]queue.Entry // in somebody's hands
	idle    map[string]queue.Entry // of these: to be claimed
	news    chan struct{}          // closed when something is added
	fault   func(call string) error
}

func newStream(orders ...queue.Order) *stream {
	s := &stream{
		read: map[string]queue.Entry{}, idle: map[string]queue.Entry{}, news: make(chan struct{}),
		fault: func(string) error { return nil },
	}
	s.add(orders...)
	return s
}

func (s *stream) add(orders ...queue.Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, order := range orders {
		s.waiting = append(s.waiting, queue.Entry{ID: "1-" + order.ID, Order: order})
	}
	close(s.news)
	s.news = make(chan struct{})
}

// abandon makes all that is in somebody's hands look as if that was long ago.
func (s *stream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.idle, s.read)
}

// left is how many entries are in the outbox.
func (s *stream) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) + len(s.read)
}

func (s *stream) Read(ctx context.Context, max int, block time.Duration) ([]queue.Entry, error) {
	timeout := time.After(min(block, 5*time.Millisecond))
	for {
		s.mu.Lock()
		err, news := s.fault("read"), s.news
		n := min(max, len(s.waiting))
		entries := slices.Clone(s.waiting[:n])
		if err == nil {
			s.waiting = s.waiting[n:]
			for _, entry := range entries {
				s.read[entry.ID] = entry
			}
		}
		s.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if n > 0 {
			return entries, nil
		}
		select {
		case <-news:
		case <-timeout:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *stream) Claim(_ context.Context, minIdle time.Duration, max int) ([]queue.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fault("claim"); err != nil {
		return nil, err
	}
	var entries []queue.Entry
	for id, entry := range s.idle {
		if len(entries) < max {
			entries = append(entries, entry)
			delete(s.idle, id)
		}
	}
	return entries, nil
}

func (s *stream) Done(_ context.Context, ids []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fault("done"); err != nil {
		return err
	}
	for _, id := range ids {
		delete(s.read, id)
		delete(s.idle, id)
	}
	return nil
}

// post is a broker in memory that answers as it is told.
type post struct {
	mu      sync.Mutex
	got     map[string]int // published, by order id
	taken   map[string]int // of these: answered for
	refuse  func(order queue.Order) error
	answer  func(order queue.Order) error
	pending []func(error) // not answered yet, while held
	held    bool
}

func newPost() *post {
	fine := func(queue.Order) error { return nil }
	return &post{got: map[string]int{}, taken: map[string]int{}, refuse: fine, answer: fine}
}

func (p *post) Publish(_ context.Context, order queue.Order, settled func(error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.refuse(order); err != nil {
		return err
	}
	p.got[order.ID]++
	err := p.answer(order)
	if err == nil {
		p.taken[order.ID]++
	}
	if p.held {
		p.pending = append(p.pending, settled)
	} else {
		settled(err)
	}
	return nil
}

// release answers for all that is held.
func (p *post) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = false
	for _, settled := range p.pending {
		settled(nil)
	}
	p.pending = nil
}

// set changes how the post behaves.
func (p *post) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *post) counts() (got, taken map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.got), maps.Clone(p.taken)
}

func (p *post) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pending)
}

func newTestRelay(outbox outbox, broker publisher, window int) *Relay {
	return newRelay(outbox, broker, window, quiet, newMetrics(nil))
}

// wantAll checks that each order is there at least once.
func wantAll(t *testing.T, counts map[string]int, orders []queue.Order) {
	t.Helper()
	for _, order := range orders {
		if counts[order.ID] == 0 {
			t.Errorf("order %s is missing", order.ID)
		}
	}
	if len(counts) != len(orders) {
		t.Errorf("there are %d orders, want %d", len(counts), len(orders))
	}
}

func TestRelayPublishesEachEntryOnceWhileAllIsWell(t *testing.T) {
	t.Parallel()
	orders := grabs("sale", 0, 1000)
	out, to := newStream(orders[:900]...), newPost()
	start(t, newTestRelay(out, to, 64).Run)
	out.add(orders[900:]...)
	eventually(t, "the outbox is empty", func() bool { return out.left() == 0 })
	got, _ := to.counts()
	wantAll(t, got, orders)
	for id, n := range got {
		if n != 1 {
			t.Errorf("order %s was published %d times", id, n)
		}
	}
}

func TestRelayPublishesAgainWithTheSameIDAfterAnyUnknownOutcome(t *testing.T) {
	t.Parallel()
	for result, failure := range map[string]error{
		"nack": errRefused, "returned": errReturned, "unknown": errSession,
	} {
		t.Run(result, func(t *testing.T) {
			t.Parallel()
			order := grab("sale", 1)
			out, to := newStream(order, grab("sale", 2)), newPost()
			failures := 0
			to.answer = func(o queue.Order) error {
				if o.ID == order.ID && failures < 3 {
					failures++
					return failure
				}
				return nil
			}
			relay := newTestRelay(out, to, 10)
			start(t, relay.Run)
			eventually(t, "the outbox is empty", func() bool { return out.left() == 0 })
			got, taken := to.counts()
			if got[order.ID] != 4 || taken[order.ID] != 1 {
				t.Errorf("published %d times and taken %d times, want 4 and 1", got[order.ID], taken[order.ID])
			}
			if n := testutil.ToFloat64(relay.metrics.confirms.WithLabelValues(result)); n != 3 {
				t.Errorf("counted %v times as %s, want 3", n, result)
			}
			if n := testutil.ToFloat64(relay.metrics.confirms.WithLabelValues("ack")); n != 2 {
				t.Errorf("counted %v acks, want 2", n)
			}
		})
	}
}

func TestRelayWaitsForABrokerThatTakesNothingAndSaysSoOnce(t *testing.T) {
	t.Parallel()
	out, to, book := newStream(grabs("sale", 0, 100)...), newPost(), &logBook{}
	tries := 0
	to.refuse = func(queue.Order) error {
		if tries++; tries <= 5 {
			return errBlocked
		}
		return nil
	}
	relay := newTestRelay(out, to, 50)
	relay.log = slogOf(book)
	start(t, relay.Run)
	eventually(t, "the outbox is empty", func() bool { return out.left() == 0 })
	eventually(t, "the end is logged", func() bool { return book.count(info) == 1 })
	if book.count(warn) != 1 {
		t.Errorf("logged %d times, want once", book.count(warn))
	}
	got, _ := to.counts()
	wantAll(t, got, grabs("sale", 0, 100))
}

func TestRelayReadsNothingWhileTheBrokerTakesNothing(t *testing.T) {
	t.Parallel()
	out, to := newStream(grabs("sale", 0, 100)...), newPost()
	refused := make(chan struct{}, 1000)
	to.refuse = func(queue.Order) error {
		refused <- struct{}{}
		return errBlocked
	}
	start(t, newTestRelay(out, to, 10).Run)
	for range 4 {
		receive(t, "a try", refused)
	}
	out.mu.Lock()
	held := len(out.read)
	out.mu.Unlock()
	if held != 10 {
		t.Errorf("the relay holds %d entries, want its window of 10", held)
	}
	to.set(func() { to.refuse = func(queue.Order) error { return nil } })
	eventually(t, "the outbox is empty", func() bool { return out.left() == 0 })
}

func TestRelayHasNoMoreThanItsWindowUnanswered(t *testing.T) {
	t.Parallel()
	out, to := newStream(grabs("sale", 0, 100)...), newPost()
	to.held = true
	start(t, newTestRelay(out, to, 16).Run)
	eventually(t, "the window is full", func() bool { return to.waiting() == 16 })
	out.mu.Lock()
	waiting := len(out.waiting)
	out.mu.Unlock()
	if waiting != 84 {
		t.Errorf("%d entries are not read, want 84", waiting)
	}
	to.release()
	eventually(t, "the outbox is empty", func() bool { return out.left() == 0 })
}

func TestRelayTakesOverWhatADeadRelayLeft(t *testing.T) {
	t.Parallel()
	out, to := newStream(grabs("sale", 0, 10)...), newPost()
	if _, err := out.Read(t.Context(), 10, 0); err != nil { // and that relay is dead
		t.Fatal(err)
	}
	start(t, newTestRelay(out, to, 4).Run)
	out.add(grabs("sale", 10, 20)...)
	eventually(t, "the new entries are out", func() bool { return out.left() == 10 })
	out.abandon()
	eventually(t, "the outbox is empty", func() bool { return out.left() == 0 })
	got, _ := to.counts()
	wantAll(t, got, grabs("sale", 0, 20))
}

func TestRelayDoesNotPublishTwiceWhatItClaimsFromItself(t *testing.T) {
	t.Parallel()
	out, to := newStream(grabs("sale", 0, 5)...), newPost()
	to.held = true
	start(t, newTestRelay(out, to, 20).Run)
	eventually(t, "the entries are published", func() bool { return to.waiting() == 5 })
	out.abandon()
	eventually(t, "they are claimed", func() bool {
		out.mu.Lock()
		defer out.mu.Unlock()
		return len(out.idle) == 0
	})
	out.add(grab("sale", 5)) // read after the claim
	eventually(t, "the next entry is published", func() bool { return to.waiting() >= 6 })
	to.release()
	eventually(t, "the outbox is empty", func() bool { return out.left() == 0 })
	got, _ := to.counts()
	for id, n := range got {
		if n != 1 {
			t.Errorf("order %s was published %d times", id, n)
		}
	}
}

func TestRelayWaitsForAnswersWhenItStops(t *testing.T) {
	t.Parallel()
	out, to := newStream(grabs("sale", 0, 5)...), newPost()
	to.held = true
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		newTestRelay(out, to, 20).Run(ctx)
	}()
	eventually(t, "the entries are published", func() bool { return to.waiting() == 5 })
	cancel()
	select {
	case <-done:
		t.Fatal("the relay went without the answers")
	default:
	}
	to.release()
	receive(t, "the end", done)
	if out.left() != 0 {
		t.Errorf("%d entries are left", out.left())
	}
}

func TestRelayStopsAtOnceWhenTheBrokerTakesNothing(t *testing.T) {
	t.Parallel()
	out, to := newStream(grabs("sale", 0, 5)...), newPost()
	refused := make(chan struct{}, 100)
	to.refuse = func(queue.Order) error {
		refused <- struct{}{}
		return errBlocked
	}
	stop := start(t, newTestRelay(out, to, 20).Run)
	receive(t, "a try", refused)
	stop()
	if out.left() != 5 {
		t.Errorf("%d entries are left, want 5", out.left())
	}
}

func TestRelayRidesOutFailuresOfRedis(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"read", "claim", "done"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			out, to, book := newStream(grabs("sale", 0, 50)...), newPost(), &logBook{}
			failures := 0
			out.fault = func(c string) error {
				if c == call && failures < 4 {
					failures++
					return errors.New("connection refused")
				}
				return nil
			}
			relay := newTestRelay(out, to, 20)
			relay.log = slogOf(book)
			start(t, relay.Run)
			eventually(t, "the outbox is empty", func() bool { return out.left() == 0 })
			got, _ := to.counts()
			wantAll(t, got, grabs("sale", 0, 50))
			for id, n := range got {
				if n != 1 {
					t.Errorf("order %s was published %d times", id, n)
				}
			}
			eventually(t, "the end is logged", func() bool { return book.count(info) == 1 })
			if book.count(warn) != 1 {
				t.Errorf("logged %d times, want once", book.count(warn))
			}
		})
	}
}

// Relays come and go while every call may fail or succeed without anybody hearing of it. In the end the broker has
// answered for every order.
func TestRelayLosesNothingWhateverFails(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			dice := rand.New(rand.NewPCG(seed, 0))
			bad := func() error {
				mu.Lock()
				defer mu.Unlock()
				if dice.IntN(12) == 0 {
					return errSession
				}
				return nil
			}
			orders := grabs("sale", 0, 400)
			out, to := newStream(), newPost()
			out.fault = func(string) error { return bad() }
			to.refuse = func(queue.Order) error { return bad() }
			to.answer = func(queue.Order) error { return bad() }
			for part := range slices.Chunk(orders, 50) {
				out.add(part...)
				stop := start(t, newTestRelay(out, to, 16).Run)
				start(t, newTestRelay(out, to, 8).Run)
				eventually(t, "some is done", func() bool { return out.left() < 40 })
				stop()
				out.abandon()
			}
			eventually(t, "the outbox is empty", func() bool {
				out.abandon()
				return out.left() == 0
			})
			_, taken := to.counts()
			wantAll(t, taken, orders)
		})
	}
}

func TestRelayTakesOrdersToRabbitMQ(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
	orders := grabs("sale", 0, 1500)
	out := newStream(orders...)
	start(t, newTestRelay(out, broker, 500).Run)
	eventually(t, "the outbox is empty", func() bool { return out.left() == 0 })
	counts := map[string]int{}
	for _, message := range broker.take(broker.orders()) {
		counts[message.MessageId]++
	}
	wantAll(t, counts, orders)
}

func TestRelayPublishesAgainWhenRabbitMQsConfirmIsLost(t *testing.T) {
	t.Parallel()
	network := newProxy(t)
	broker := newRabbit(t, network.url(), AMQPOptions{})
	publishAll(t, broker, grab("other", 0))
	out := newStream(grabs("sale", 0, 20)...)
	network.mute(true)
	start(t, newTestRelay(out, broker, 100).Run)
	eventually(t, "RabbitMQ has the orders", func() bool { return broker.ready(broker.orders()) == 21 })
	network.cut()
	network.mute(false)
	eventually(t, "the outbox is empty", func() bool { return out.left() == 0 })
	counts := map[string]int{}
	for _, message := range broker.take(broker.orders()) {
		counts[message.MessageId]++
	}
	delete(counts, grab("other", 0).ID)
	wantAll(t, counts, grabs("sale", 0, 20))
	for id, n := range counts {
		if n != 2 {
			t.Errorf("order %s was published %d times, want 2", id, n)
		}
	}
}

func TestRelayRidesOutAnAbsenceOfRabbitMQ(t *testing.T) {
	t.Parallel()
	network := newProxy(t)
	broker := newRabbit(t, network.url(), AMQPOptions{})
	out, book := newStream(), &logBook{}
	relay := newTestRelay(out, broker, 100)
	relay.log = slogOf(book)
	start(t, relay.Run)
	orders := grabs("sale", 0, 300)
	for part := range slices.Chunk(orders, 100) {
		warned := book.count(warn)
		network.down()
		out.add(part...)
		eventually(t, "the relay is in trouble", func() bool { return book.count(warn) > warned })
		network.up()
		eventually(t, "the outbox is empty", func() bool { return out.left() == 0 })
	}
	counts := map[string]int{}
	for _, message := range broker.take(broker.orders()) {
		counts[message.MessageId]++
	}
	wantAll(t, counts, orders)
}

func TestRelayIsBackSoonAfterAnyLengthOfTrouble(t *testing.T) {
	t.Parallel()
	book := &logBook{}
	trouble := trouble{log: slogOf(book), what: "try"}
	for range 100 {
		if wait := trouble.met(errSession); wait < troubleFirst/2 || wait > troubleMost {
			t.Errorf("waits %v", wait)
		}
	}
	trouble.over()
	trouble.over()
	if book.count(warn) != 1 || book.count(info) != 1 {
		t.Errorf("begin and end are logged %d and %d times, want once", book.count(warn), book.count(info))
	}
	if wait := trouble.met(errSession); wait <= troubleFirst {
		t.Errorf("of trouble that is back at once, the first wait is %v", wait)
	}
	trouble.over()
	trouble.since = trouble.since.Add(-time.Minute)
	if wait := trouble.met(errSession); wait > troubleFirst {
		t.Errorf("of trouble after a minute without, the first wait is %v", wait)
	}
}
