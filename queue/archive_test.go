package queue_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/queue"
)

// keys are the names of everything that Redis has of a sale.
func (l *line) keys(sale string) []string {
	l.t.Helper()
	var keys []string
	scan := func(ctx context.Context, node *redis.Client) error {
		iter := node.Scan(ctx, 0, "sluice:{"+sale+"}:*", 1000).Iterator()
		for iter.Next(ctx) {
			keys = append(keys, iter.Val())
		}
		return iter.Err()
	}
	var err error
	if cluster, ok := l.rdb.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(l.t.Context(), func(ctx context.Context, node *redis.Client) error { return scan(ctx, node) })
	} else {
		err = scan(l.t.Context(), l.rdb.(*redis.Client))
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return keys
}

// over is a sale with an order that was written and a line, closed, and the version of its settings.
func (l *line) over() (queue.Sale, int64) {
	l.t.Helper()
	sale := l.start(func(s *queue.Sale) { s.Line.Order = queue.Off })
	l.grab(sale.ID, "ann", "r1")
	out := l.Outbox(sale.ID, "relay")
	entries, err := out.Read(l.t.Context(), 10, 0)
	if err != nil || len(entries) != 1 {
		l.t.Fatalf("%d entries in the outbox, %v", len(entries), err)
	}
	if err := out.Done(l.t.Context(), []string{entries[0].ID}); err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.Close(l.t.Context(), sale.ID); err != nil {
		l.t.Fatal(err)
	}
	version, err := l.SettingsVersion(l.t.Context(), sale.ID)
	if err != nil {
		l.t.Fatal(err)
	}
	return sale, version
}

// gone checks that nothing is left of a sale but the mark that keeps it out.
func (l *line) gone(when, sale string) {
	l.t.Helper()
	if keys := l.keys(sale); len(keys) != 1 || !strings.HasSuffix(keys[0], ":archived") {
		l.t.Errorf("%s: Redis has %v", when, keys)
	}
	if sales, err := l.Sales(l.t.Context()); err != nil || slices.Contains(sales, sale) {
		l.t.Errorf("%s: the sale is listed, or %v", when, err)
	}
}

func TestAnErasedSaleLeavesNothingAndTakesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale, version := l.over()
		for range 2 {
			if err := l.Erase(t.Context(), sale.ID, version); err != nil {
				t.Fatal(err)
			}
		}
		l.gone("after erasing twice", sale.ID)

		// What processes do that have not heard of it.
		order := queue.Order{ID: "o", Sale: sale.ID, User: "ann", Item: "main", Qty: 1, Status: queue.Confirmed}
		for what, try := range map[string]func() error{
			"a grab": func() error {
				_, err := l.Grab(t.Context(), queue.GrabRequest{Sale: sale.ID, User: "bob", Item: "main", Qty: 1, RequestID: "r"})
				return err
			},
			"a join":     func() error { _, err := l.Join(t.Context(), queue.JoinRequest{Sale: sale.ID, User: "bob"}); return err },
			"a presence": func() error { return l.Tell(t.Context(), sale.ID, []queue.Presence{{Ticket: 1, Poll: time.Second}}) },
			"an adopt":   func() error { _, err := l.Adopt(t.Context(), sale.ID, []queue.Order{order}); return err },
			"a release":  func() error { _, err := l.Release(t.Context(), sale.ID, []queue.Order{order}); return err },
			"a look":     func() error { _, err := l.Look(t.Context(), sale.ID, "ann"); return err },
			"a leaving":  func() error { return l.Leave(t.Context(), sale.ID, "ann", 1) },
			"a reclaim":  func() error { return l.Reclaim(t.Context(), sale.ID, 0, []queue.Seat{{User: "ann", Ticket: 1}}) },
			"a reading":  func() error { _, err := l.Sale(t.Context(), sale.ID); return err },
			"a balance":  func() error { _, err := l.Balance(t.Context(), sale.ID); return err },
			"a reach":    func() error { _, err := l.Reach(t.Context(), sale.ID); return err },
			"a judging":  func() error { _, err := l.SettingsVersion(t.Context(), sale.ID); return err },
			"ready":      func() error { return l.Ready(t.Context(), sale.ID) },
			"a freezing": func() error { _, _, err := l.Freeze(t.Context(), queue.Draw{Sale: sale.ID}); return err },
			"a drawing":  func() error { return l.Draw(t.Context(), queue.Draw{Sale: sale.ID}, nil) },
			"the entries": func() error {
				return l.Entries(t.Context(), &queue.Draw{Sale: sale.ID, Tickets: 3, Live: 3}, func([]queue.DrawEntry) error { return nil })
			},
			"a watcher": func() error { return queue.NewWatcher(l.Queue, sale.ID, nil).Run(t.Context()) },
		} {
			if err := try(); !queue.IsOver(err) || queue.CodeOf(err) != queue.NoSuchSale {
				t.Errorf("%s: %v", what, err)
			}
		}
		if here, ready, err := l.Installed(t.Context(), sale.ID); here || ready || err != nil {
			t.Errorf("it is installed: %v, %v, %v", here, ready, err)
		}
		for what, try := range map[string]func() error{
			"an apply":      func() error { return l.Apply(t.Context(), sale) },
			"a check":       func() error { return l.Check(t.Context(), sale) },
			"an install":    func() error { return l.Install(t.Context(), sale, queue.Reach{}) },
			"a restoration": func() error { return l.Restore(t.Context(), sale, queue.Reach{}, noOrders) },
		} {
			if err := try(); !queue.IsArchived(err) || queue.CodeOf(err) != queue.Conflict {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := queue.NewTicker(l.Queue, sale.ID)(t.Context()); err == nil {
			t.Error("a tick found the sale")
		}
		out := l.Outbox(sale.ID, "relay")
		if entries, err := out.Read(t.Context(), 10, 0); err != nil || len(entries) > 0 {
			t.Errorf("a relay read %v, %v", entries, err)
		}
		if entries, err := out.Claim(t.Context(), 0, 10); err != nil || len(entries) > 0 {
			t.Errorf("a relay claimed %v, %v", entries, err)
		}
		l.gone("after everybody tried", sale.ID)
	})
}

func TestErasingTakesWhatWasJudgedOrNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		refused := func(what string, sale string, version int64) {
			t.Helper()
			before := len(l.keys(sale))
			if err := l.Erase(t.Context(), sale, version); queue.CodeOf(err) != queue.Conflict {
				t.Errorf("%s: %v", what, err)
			}
			if after := len(l.keys(sale)); after != before {
				t.Errorf("%s: %d keys became %d", what, before, after)
			}
		}
		changed, version := l.over()
		changed.ClosesAt = time.Now().Add(time.Hour).Truncate(time.Millisecond)
		if err := l.Apply(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		refused("opened again", changed.ID, version)
		now, err := l.SettingsVersion(t.Context(), changed.ID)
		if err != nil {
			t.Fatal(err)
		}
		refused("open", changed.ID, now)
		if seat := l.look(changed.ID, "ann"); seat.Order == nil {
			t.Error("ann's order is gone")
		}

		waiting := l.start(func(s *queue.Sale) { s.Line.Order = queue.Off })
		l.grab(waiting.ID, "ann", "r1")
		if _, err := l.Close(t.Context(), waiting.ID); err != nil {
			t.Fatal(err)
		}
		if version, err = l.SettingsVersion(t.Context(), waiting.ID); err != nil {
			t.Fatal(err)
		}
		refused("an order in the outbox", waiting.ID, version)
	})
}

func TestWhatComesBackOfAnErasedSaleIsErasedToo(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale, version := l.over()
		if err := l.Erase(t.Context(), sale.ID, version); err != nil {
			t.Fatal(err)
		}
		// A replica that was behind is promoted: all is as before, the mark included.
		if err := l.rdb.Del(t.Context(), "sluice:{"+sale.ID+"}:archived").Err(); err != nil {
			t.Fatal(err)
		}
		if err := l.Restore(t.Context(), sale, queue.Reach{}, noOrders); err != nil {
			t.Fatal(err)
		}
		if err := l.EraseLeftovers(t.Context(), sale.ID); err != nil {
			t.Fatal(err)
		}
		l.gone("after it came back", sale.ID)
	})
}
