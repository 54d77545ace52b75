package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"sluice/queue"
)

func TestDirectSettlesAnOrderOnlyWhenItIsWritten(t *testing.T) {
	t.Parallel()
	broker, book := NewDirect(), newLedger()
	out := newStream(grabs("sale", 0, 50)...)
	write := make(chan error)
	book.before = func(call string, _ []queue.Order) error {
		if call == "write" {
			return <-write
		}
		return nil
	}
	start(t, newTestRelay(out, broker, 100).Run)
	stop := start(t, newTestWriter(broker, book).Run)
	for range 3 {
		write <- errors.New("the database is away")
		if got := out.left(); got != 50 {
			t.Fatalf("%d orders are in the outbox, want 50", got)
		}
	}
	close(write)
	eventually(t, "the outbox is empty", func() bool { return out.left() == 0 })
	stop()
	if book.count() != 50 {
		t.Errorf("there are %d rows, want 50", book.count())
	}
}

// thief is a feed from which another writer takes everything at the worst moment.
type thief struct {
	Feed
	calls, when int
}

func (f *thief) Deliveries() <-chan Delivery {
	f.calls++
	for f.calls == f.when && len(f.Feed.Deliveries()) > 0 {
		<-f.Feed.Deliveries()
	}
	return f.Feed.Deliveries()
}

func TestDirectWriterDoesNotWaitForWhatAnotherOneTook(t *testing.T) {
	t.Parallel()
	for when := range 5 {
		t.Run(fmt.Sprint(when), func(t *testing.T) {
			t.Parallel()
			broker := NewDirect()
			hand(t, broker, grab("sale", 1), grab("sale", 2), grab("sale", 3))
			writer := newTestWriter(broker, newLedger())
			feed := &thief{Feed: consume(t, broker, 10), when: when + 2} // the first one is its own
			gathered := make(chan []Delivery, 1)
			go func() { gathered <- writer.gather(t.Context(), feed, false) }()
			if batch := receive(t, "a batch", gathered); len(batch) == 0 {
				t.Error("the batch is empty")
			}
		})
	}
}

func TestDirectGivesBackWhatAWriterCouldNotFinish(t *testing.T) {
	t.Parallel()
	broker := NewDirect()
	out := newStream(grabs("sale", 0, 5)...)
	start(t, newTestRelay(out, broker, 100).Run)
	first := consume(t, broker, 10)
	first.Close(next(t, first, 5))
	second := consume(t, broker, 10)
	again := next(t, second, 5)
	if err := second.Ack(again); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the outbox is empty", func() bool { return out.left() == 0 })
}

func TestDirectMakesRelaysWaitForItsWriters(t *testing.T) {
	t.Parallel()
	broker := NewDirect()
	hand(t, broker, grabs("sale", 0, directRoom)...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := broker.Publish(ctx, grab("sale", directRoom), func(error) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("a broker without room answers %v", err)
	}
}

func TestDirectKeepsDeadLetters(t *testing.T) {
	t.Parallel()
	broker, book := NewDirect(), newLedger()
	book.before = func(call string, orders []queue.Order) error {
		if call == "write" {
			return &queue.Error{Code: queue.NoSuchItem, Message: "there is no such item"}
		}
		return nil
	}
	start(t, newTestWriter(broker, book).Run)
	wantSettled(t, hand(t, broker, grabs("sale", 0, 3)...), 3)
	if n, err := broker.DeadLetters(t.Context()); err != nil || n != 3 {
		t.Errorf("there are %d dead letters, %v; want 3", n, err)
	}
}

func TestDirectNotifierTellsOfOrdersWhenTheirRowsAreCommitted(t *testing.T) {
	t.Parallel()
	broker, book := NewDirect(), newLedger()
	book.rejected = func(o queue.Order) string {
		if o.ID == grab("sale", 7).ID {
			return RejectedSoldOut
		}
		return ""
	}
	notifier := NewNotifier(book)
	writer := newTestWriter(broker, book)
	writer.notifier = notifier
	start(t, writer.Run)
	together(200, func(i int) {
		order := grab("sale", i/2) // each is waited for twice
		if i%2 == 0 {
			hand(t, broker, order)
		}
		stored, err := notifier.Wait(t.Context(), order.ID)
		if err != nil {
			t.Error(err)
		}
		want := queue.Confirmed
		if i/2 == 7 {
			want = queue.Rejected
		}
		if stored.ID != order.ID || stored.Status != want {
			t.Errorf("told of %+v", stored)
		}
		if _, err := book.Order(t.Context(), order.ID); err != nil {
			t.Errorf("told before the row was there: %v", err)
		}
	})
	if len(notifier.waiting) != 0 {
		t.Errorf("%d orders are still waited for", len(notifier.waiting))
	}
}

func TestDirectNotifierFindsWhatWasWrittenWhileItLooked(t *testing.T) {
	t.Parallel()
	book := newLedger()
	notifier := NewNotifier(book)
	order := grab("sale", 1)
	var once sync.Once
	book.before = func(call string, _ []queue.Order) error {
		if call == "read" { // the row is committed just after the look that does not find it
			once.Do(func() { notifier.tell(order.ID, notice{order: order}) })
		}
		return nil
	}
	if _, err := notifier.Wait(t.Context(), order.ID); err != nil {
		t.Error(err)
	}
}

func TestDirectNotifierFailsWithTheOrder(t *testing.T) {
	t.Parallel()
	broker, book := NewDirect(), newLedger()
	book.before = func(call string, _ []queue.Order) error {
		if call == "write" {
			return &queue.Error{Code: queue.NoSuchItem, Message: "there is no such item"}
		}
		return nil
	}
	notifier := NewNotifier(book)
	order := grab("sale", 1)
	failed := make(chan error, 1)
	go func() {
		_, err := notifier.Wait(t.Context(), order.ID)
		failed <- err
	}()
	eventually(t, "somebody waits", func() bool {
		notifier.mu.Lock()
		defer notifier.mu.Unlock()
		return len(notifier.waiting) == 1
	})
	writer := newTestWriter(broker, book)
	writer.notifier = notifier
	start(t, writer.Run)
	hand(t, broker, order)
	if err := receive(t, "the failure", failed); err == nil {
		t.Error("an order that cannot be written counts as written")
	}
}

func TestDirectNotifierForgetsThoseWhoGaveUp(t *testing.T) {
	t.Parallel()
	notifier := NewNotifier(newLedger())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := notifier.Wait(ctx, "nobody"); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if len(notifier.waiting) != 0 {
		t.Errorf("%d orders are still waited for", len(notifier.waiting))
	}
}
