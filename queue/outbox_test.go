package queue_test

import (
	"fmt"
	"testing"

	"sluice/queue"
)

// jammed is a line whose outbox takes two orders.
func jammed(t *testing.T, test func(t *testing.T, l *line)) {
	opts := queue.Options{OutboxLimit: 2}
	t.Run("redis", func(t *testing.T) { t.Parallel(); test(t, realLine(t, opts)) })
	t.Run("embedded", func(t *testing.T) { t.Parallel(); test(t, embeddedLine(t, opts)) })
}

// drain takes one order out of the outbox.
func (l *line) drain(sale string) {
	l.t.Helper()
	box := l.Outbox(sale, "relay")
	entries, err := box.Read(l.t.Context(), 1, 0)
	if err != nil || len(entries) != 1 {
		l.t.Fatalf("read %d entries, %v", len(entries), err)
	}
	if err := box.Done(l.t.Context(), []string{entries[0].ID}); err != nil {
		l.t.Fatal(err)
	}
}

func TestNobodyIsCalledWhileOrdersPileUp(t *testing.T) {
	t.Parallel()
	jammed(t, func(t *testing.T, l *line) {
		sale := l.start(func(s *queue.Sale) { s.Line.Active = 1 })
		for i := range 4 {
			l.join(sale.ID, fmt.Sprint("u", i))
		}
		tick := queue.NewTicker(l.Queue, sale.ID)
		called := func() int64 {
			t.Helper()
			s, err := tick(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s.Served
		}
		for i := range 2 {
			if got := called(); got != int64(i+1) {
				t.Fatalf("%d were called, want %d", got, i+1)
			}
			l.grab(sale.ID, fmt.Sprint("u", i), "r")
		}
		if got := called(); got != 2 {
			t.Fatalf("%d were called while two orders wait and no more may", got)
		}
		l.drain(sale.ID)
		if got := called(); got != 3 {
			t.Fatalf("%d were called when there was room again", got)
		}
		// A turn that was given holds.
		l.grab(sale.ID, "u2", "r")
	})
}

func TestWithoutALineNothingIsSoldWhileOrdersPileUp(t *testing.T) {
	t.Parallel()
	jammed(t, func(t *testing.T, l *line) {
		sale := l.start(withoutLine)
		l.grab(sale.ID, "ann", "r")
		l.grab(sale.ID, "bob", "r")
		req := queue.GrabRequest{Sale: sale.ID, User: "cat", Item: "main", Qty: 1, RequestID: "r"}
		if _, err := l.Grab(t.Context(), req); queue.CodeOf(err) != queue.Unavailable {
			t.Fatalf("with a full outbox: %v", err)
		}
		if g := l.grab(sale.ID, "ann", "r"); !g.Replay || l.units(sale.ID, "main") != 8 {
			t.Fatalf("a repeat got %+v, %d left", g, l.units(sale.ID, "main"))
		}
		l.drain(sale.ID)
		if g := l.grab(sale.ID, "cat", "r"); g.Result != queue.Success {
			t.Fatalf("got %+v", g)
		}
	})
}
