package queue_test

import (
	"fmt"
	"testing"
	"time"

	"sluice/queue"
)

// TestWhatIsSoldOutIsSaidWithoutRedisAndToNoBuyer has a sale without a line sell out, get a unit back, and sell out again.
func TestWhatIsSoldOutIsSaidWithoutRedisAndToNoBuyer(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(func(s *queue.Sale) {
			s.Line.Order, s.Hold = queue.Off, queue.Duration(time.Hour)
			s.Items[0].Stock = 3
		})
		counter := &counted{}
		l.rdb.AddHook(counter)
		tick := queue.NewTicker(l.Queue, sale.ID)
		commands := func(do func()) int64 {
			before := counter.n.Load()
			do()
			return counter.n.Load() - before
		}
		// ticks makes ticks until a stranger is answered without Redis, or as many as it takes to know that none will be.
		closes := func() bool {
			t.Helper()
			for i := range 100 {
				if _, err := tick(t.Context()); err != nil {
					t.Fatal(err)
				}
				queue.AwaitLatch(l.Queue, sale.ID)
				if commands(func() { l.grab(sale.ID, fmt.Sprint("stranger-", i), "r") }) == 0 {
					return true
				}
			}
			return false
		}
		orders := map[string]queue.Order{}
		for i := range 3 {
			user := fmt.Sprint("u", i)
			orders[user] = *l.grab(sale.ID, user, "r").Order
		}
		if n := commands(func() { l.grab(sale.ID, "early", "r") }); n == 0 {
			t.Fatal("it was sold out without having looked")
		}
		if !closes() {
			t.Fatal("Redis is asked for ever by those who get nothing")
		}
		if g := l.grab(sale.ID, "stranger", "r"); g.Result != queue.SoldOut || g.Stock != queue.Held || g.State != queue.Open {
			t.Fatalf("a stranger hears %+v", g)
		}
		for user, order := range orders {
			if g := l.grab(sale.ID, user, "r"); g.Result != queue.Success || !g.Replay || g.Order.ID != order.ID {
				t.Fatalf("the repeat of a winner hears %+v", g)
			}
			if g := l.grab(sale.ID, user, "other"); g.Result != queue.Already || g.Order.ID != order.ID {
				t.Fatalf("another grab of a winner hears %+v", g)
			}
		}

		// A unit comes back. It is not sold before the last node that calls the sale sold out has looked again or stopped to,
		// so its winner hears the truth here, though this node had no tick since.
		back := orders["u0"]
		back.Status = queue.Cancelled
		if _, err := l.Release(t.Context(), sale.ID, []queue.Order{back}); err != nil {
			t.Fatal(err)
		}
		other := queue.New(l.rdb, queue.Options{Embedded: l.embedded != nil})
		late := queue.GrabRequest{Sale: sale.ID, User: "late", Item: "main", Qty: 1, RequestID: "r"}
		won, err := other.Grab(t.Context(), late)
		if err != nil || won.Result != queue.SoldOut || won.Stock != queue.Held {
			t.Fatalf("the unit that came back this moment: %+v, %v", won, err)
		}
		for won.Result != queue.Success {
			if won, err = other.Grab(t.Context(), late); err != nil {
				t.Fatal(err)
			}
		}
		if g := l.grab(sale.ID, "late", "r"); g.Result != queue.Success || g.Order.ID != won.Order.ID {
			t.Fatalf("the repeat of the late winner hears %+v", g)
		}
		if !closes() {
			t.Fatal("sold out again, and Redis is asked for ever")
		}
		if g := l.grab(sale.ID, "late", "r"); g.Result != queue.Success || g.Order.ID != won.Order.ID {
			t.Fatalf("the repeat of the late winner hears %+v", g)
		}
		if g := l.grab(sale.ID, "u0", "r"); g.Result != queue.Success || !g.Ended || g.Order.ID != back.ID {
			t.Fatalf("the repeat of the one who cancelled hears %+v", g)
		}

		// More stock, a pause, and another total: each time Redis is asked again from the next tick on.
		more := sale
		more.Items = []queue.Item{{ID: "main", Stock: 4}}
		if err := l.Apply(t.Context(), more); err != nil {
			t.Fatal(err)
		}
		if _, err := tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		for l.grab(sale.ID, "fourth", "r").Result != queue.Success { // once the unit has rested
			if t.Context().Err() != nil {
				t.Fatal("a restock is never sold")
			}
		}
		if !closes() {
			t.Fatal("sold out for the third time, and Redis is asked for ever")
		}
		if _, err := l.Pause(t.Context(), sale.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if g := l.grab(sale.ID, "stranger", "r"); g.Result != queue.NotOpen || g.State != queue.Paused {
			t.Fatalf("in a pause a stranger hears %+v", g)
		}
	})
}

// TestInALineRedisAnswersEveryGrab: whoever has a turn may have won through another node this very moment.
func TestInALineRedisAnswersEveryGrab(t *testing.T) {
	t.Parallel()
	l := realLine(t, queue.Options{})
	sale := l.start(func(s *queue.Sale) { s.Items[0].Stock = 1 })
	counter := &counted{}
	l.rdb.AddHook(counter)
	tick := queue.NewTicker(l.Queue, sale.ID)
	l.join(sale.ID, "ann")
	for l.grab(sale.ID, "ann", "r").Result != queue.Success {
		if _, err := tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		if _, err := tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		queue.AwaitLatch(l.Queue, sale.ID)
		before := counter.n.Load()
		if g := l.grab(sale.ID, "bob", "r"); g.Result != queue.SoldOut || counter.n.Load() == before {
			t.Fatalf("bob hears %+v, with %d commands", g, counter.n.Load()-before)
		}
	}
}

// TestWithoutTicksNodesAskRedisAgain: a node that cannot see the sale any more does not go on saying what it was like.
func TestWithoutTicksNodesAskRedisAgain(t *testing.T) {
	t.Parallel()
	l := realLine(t, queue.Options{})
	sale := l.start(func(s *queue.Sale) { s.Line.Order = queue.Off; s.Items[0].Stock = 1 })
	counter := &counted{}
	l.rdb.AddHook(counter)
	tick := queue.NewTicker(l.Queue, sale.ID)
	l.grab(sale.ID, "ann", "r")
	for range 2 {
		if _, err := tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		queue.AwaitLatch(l.Queue, sale.ID)
	}
	queue.AgeLatch(l.Queue, sale.ID)
	before := counter.n.Load()
	if g := l.grab(sale.ID, "bob", "r"); g.Result != queue.SoldOut || counter.n.Load() == before {
		t.Fatalf("bob hears %+v, with %d commands", g, counter.n.Load()-before)
	}
}
