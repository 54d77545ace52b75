package queue_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"sluice/queue"
)

// followed is what a grab of a test is a part of.
const followed = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestAnEntryOfTheOutboxSaysWhatItIsAPartOf(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(withoutLine)
		outbox := "sluice:{" + sale.ID + "}:outbox"
		l.grab(sale.ID, "ann", "r")
		// One from before there was such a field, and one in which it is something else.
		mark := l.rdb.XRange(t.Context(), outbox, "-", "+").Val()[0].Values["mark"].(string)
		for _, values := range [][]string{
			{"user", "bob", "mark", mark, "trace", followed},
			{"user", "cat", "mark", mark, "trace", "1 " + followed},
		} {
			if err := l.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: outbox, Values: values}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		entries, err := l.Outbox(sale.ID, "relay").Read(t.Context(), 9, 0)
		if err != nil || len(entries) != 3 {
			t.Fatalf("read %d entries, %v", len(entries), err)
		}
		for i, want := range []string{"", followed, ""} {
			if got := entries[i].Order.Trace; got != want {
				t.Errorf("entry %d is a part of %q, want %q", i, got, want)
			}
		}
	})
}

func TestTheNewsOfAnOrderSayWhatTheyAreAPartOf(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(withoutLine)
		var orders []queue.Order
		for _, user := range []string{"ann", "bob", "cat"} {
			order := *l.grab(sale.ID, user, "r").Order
			order.Status = queue.Confirmed
			orders = append(orders, order)
		}
		orders[1].Trace = followed
		if _, err := l.Adopt(t.Context(), sale.ID, orders); err != nil {
			t.Fatal(err)
		}
		orders[1].Status, orders[2].Status, orders[2].Trace = queue.Cancelled, queue.Cancelled, followed
		if _, err := l.Release(t.Context(), sale.ID, orders[1:]); err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, entry := range l.rdb.XRange(t.Context(), "sluice:{"+sale.ID+"}:news", "-", "+").Val() {
			if entry.Values["t"] == "order" {
				context, _ := entry.Values["c"].(string)
				told = append(told, entry.Values["u"].(string)+" "+entry.Values["s"].(string)+" "+context)
			}
		}
		want := []string{"ann confirmed ", "bob confirmed " + followed, "cat confirmed ", "bob cancelled " + followed, "cat cancelled " + followed}
		if got := strings.Join(told, "\n"); got != strings.Join(want, "\n") {
			t.Errorf("the news say\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
	})
}
