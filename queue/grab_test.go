package queue_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/queue"
)

func withoutLine(s *queue.Sale) { s.Line.Order = queue.Off }

func TestAGrabTakesOneUnitAndMakesAnOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(func(s *queue.Sale) { withoutLine(s); s.Hold = queue.Duration(time.Minute) })
		g := l.grab(sale.ID, "ann", "r1")
		if g.Result != queue.Success || g.Order == nil || g.Replay {
			t.Fatalf("got %+v, want a fresh success", g)
		}
		if o := g.Order; o.PayBy != o.CreatedAt+60000 || o.Qty != 1 || o.Item != "main" || o.User != "ann" {
			t.Fatalf("the order is %+v", o)
		}
		if left := l.units(sale.ID, "main"); left != 9 {
			t.Fatalf("%d units left, want 9", left)
		}
		entries, err := l.Outbox(sale.ID, "relay-1").Read(t.Context(), 10, 0)
		if err != nil || len(entries) != 1 || entries[0].Order != *g.Order {
			t.Fatalf("the outbox holds %+v (%v), want the order %+v", entries, err, g.Order)
		}
	})
}

func TestExactlyTheStockIsSoldAtItsBounds(t *testing.T) {
	t.Parallel()
	for _, stock := range []int64{0, 1, 20} {
		t.Run(fmt.Sprintf("stock %d", stock), func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, l *line) {
				sale := l.start(func(s *queue.Sale) { withoutLine(s); s.Items[0].Stock = stock })
				var won, lost atomic.Int64
				var wg sync.WaitGroup
				for i := range stock + 30 {
					wg.Go(func() {
						switch g := l.grab(sale.ID, fmt.Sprintf("user-%d", i), "r"); g.Result {
						case queue.Success:
							won.Add(1)
						case queue.SoldOut:
							if g.Left != 0 || g.Stock != queue.Gone {
								t.Errorf("told %d left and %s, want 0 and gone", g.Left, g.Stock)
							}
							lost.Add(1)
						default:
							t.Errorf("got %+v", g)
						}
					})
				}
				wg.Wait()
				if won.Load() != stock || lost.Load() != 30 || l.units(sale.ID, "main") != 0 {
					t.Fatalf("%d won and %d lost of stock %d", won.Load(), lost.Load(), stock)
				}
			})
		})
	}
}

func TestAHundredRepeatsOfARequestTakeOneUnit(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(withoutLine)
		ids := make(chan string, 100)
		var fresh atomic.Int64
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				g := l.grab(sale.ID, "ann", "same")
				if !g.Replay {
					fresh.Add(1)
				}
				ids <- g.Order.ID
			})
		}
		wg.Wait()
		close(ids)
		first := <-ids
		for id := range ids {
			if id != first {
				t.Fatalf("two orders: %s and %s", first, id)
			}
		}
		if fresh.Load() != 1 || l.units(sale.ID, "main") != 9 {
			t.Fatalf("%d fresh answers, %d units left", fresh.Load(), l.units(sale.ID, "main"))
		}
	})
}

func TestAnotherRequestOfABuyerIsAlready(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(withoutLine)
		first := l.grab(sale.ID, "ann", "r1")
		second := l.grab(sale.ID, "ann", "r2")
		if second.Result != queue.Already || second.Order.ID != first.Order.ID {
			t.Fatalf("got %+v, want already with order %s", second, first.Order.ID)
		}
		if other := l.grab(sale.ID, "bob", "r1"); other.Result != queue.Success {
			t.Fatalf("the first buyer blocks another: %+v", other)
		}
	})
}

func TestALateRetryAfterACancelTakesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(withoutLine)
		first := l.grab(sale.ID, "ann", "r1")
		for range 3 {
			if _, err := l.Release(t.Context(), sale.ID, []queue.Order{*first.Order}); err != nil {
				t.Fatal(err)
			}
		}
		if left := l.units(sale.ID, "main"); left != 10 {
			t.Fatalf("%d units left after a release that ran three times, want 10", left)
		}
		late := l.grab(sale.ID, "ann", "r1")
		if late.Result != queue.Success || !late.Ended || late.Order.ID != first.Order.ID || l.units(sale.ID, "main") != 10 {
			t.Fatalf("the late retry got %+v, want the old order and no unit taken", late)
		}
		if again := l.grab(sale.ID, "ann", "r2"); again.Result != queue.Success || again.Order.ID == first.Order.ID {
			t.Fatalf("buying again after a cancel got %+v", again)
		}
	})
}

func TestAReplayIsAnsweredAfterTheSaleClosed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(withoutLine)
		first := l.grab(sale.ID, "ann", "r1")
		if _, err := l.Close(t.Context(), sale.ID); err != nil {
			t.Fatal(err)
		}
		if g := l.grab(sale.ID, "ann", "r1"); g.Result != queue.Success || !g.Replay || g.Order.ID != first.Order.ID {
			t.Fatalf("got %+v, want the first answer", g)
		}
		if g := l.grab(sale.ID, "bob", "r1"); g.Result != queue.NotOpen || g.State != queue.Closed {
			t.Fatalf("got %+v, want not_open, closed", g)
		}
	})
}

func TestNothingChangesBeforeOpening(t *testing.T) {
	t.Parallel()
	l := embeddedLine(t, queue.Options{})
	opens := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	sale := l.start(func(s *queue.Sale) {
		withoutLine(s)
		s.OpensAt, s.ClosesAt = opens, opens.Add(time.Hour)
	})
	l.embedded.SetTime(opens.Add(-time.Millisecond))
	if g := l.grab(sale.ID, "ann", "r1"); g.Result != queue.NotOpen || g.State != queue.Lobby {
		t.Fatalf("1 ms before opening: %+v", g)
	}
	if left := l.units(sale.ID, "main"); left != 10 {
		t.Fatalf("%d units left", left)
	}
	l.embedded.SetTime(opens)
	if g := l.grab(sale.ID, "ann", "r1"); g.Result != queue.Success {
		t.Fatalf("at opening: %+v", g)
	}
}

func TestItemsAreTakenWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(func(s *queue.Sale) {
			withoutLine(s)
			s.Limit = 5
			s.Items = []queue.Item{{ID: "black", Stock: 3}, {ID: "white", Stock: 9}}
		})
		grab := func(user, item string, qty int64) (queue.Grabbed, error) {
			return l.Grab(t.Context(), queue.GrabRequest{Sale: sale.ID, User: user, Item: item, Qty: qty, RequestID: "r"})
		}
		if g, err := grab("ann", "black", 4); err != nil || g.Result != queue.SoldOut || g.Stock != queue.Available || g.Left != 3 {
			t.Fatalf("4 of 3: %+v %v", g, err)
		}
		if g, err := grab("ann", "black", 3); err != nil || g.Result != queue.Success || g.Order.Qty != 3 {
			t.Fatalf("3 of 3: %+v %v", g, err)
		}
		if g, err := grab("bob", "black", 1); err != nil || g.Result != queue.SoldOut || g.Stock != queue.Gone {
			t.Fatalf("1 of 0: %+v %v", g, err)
		}
		for _, qty := range []int64{0, -1, 6} {
			if _, err := grab("eve", "white", qty); queue.CodeOf(err) != queue.Invalid {
				t.Fatalf("qty %d: %v", qty, err)
			}
		}
		if _, err := grab("eve", "red", 1); queue.CodeOf(err) != queue.NoSuchItem {
			t.Fatalf("unknown item: %v", err)
		}
		if black, white := l.units(sale.ID, "black"), l.units(sale.ID, "white"); black != 0 || white != 9 {
			t.Fatalf("%d black and %d white left", black, white)
		}
	})
}

func TestAMissingSaleIsNotReadyAndNeverSoldOut(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		id := saleID()
		if _, err := l.Grab(t.Context(), queue.GrabRequest{Sale: id, User: "ann", Item: "main", Qty: 1, RequestID: "r"}); queue.CodeOf(err) != queue.Unavailable {
			t.Fatalf("grab: %v", err)
		}
		if _, err := l.Join(t.Context(), queue.JoinRequest{Sale: id, User: "ann"}); queue.CodeOf(err) != queue.Unavailable {
			t.Fatalf("join: %v", err)
		}
		// Lost while it is running: the marks and the stock are not trusted without the settings.
		sale := l.start(withoutLine)
		l.rdb.Del(t.Context(), "sluice:{"+sale.ID+"}:meta")
		if _, err := l.Grab(t.Context(), queue.GrabRequest{Sale: sale.ID, User: "ann", Item: "main", Qty: 1, RequestID: "r"}); queue.CodeOf(err) != queue.Unavailable {
			t.Fatalf("grab after a loss: %v", err)
		}
	})
}

func TestUsersAreComparedByteForByte(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		users := []string{"a", "A", "a ", "á", "a\u0301", "a|b|c", "用户", "%d", strings.Repeat("x", 128)}
		sale := l.start(withoutLine)
		for _, user := range users {
			g := l.grab(sale.ID, user, "id|with|bars")
			if g.Result != queue.Success || g.Order.User != user || g.Order.RequestID != "id|with|bars" {
				t.Fatalf("%q: %+v", user, g)
			}
		}
		if left := l.units(sale.ID, "main"); left != 10-int64(len(users)) {
			t.Fatalf("%d left", left)
		}
	})
}

func TestAnySlidingSecondStaysWithinTheLimit(t *testing.T) {
	t.Parallel()
	l := embeddedLine(t, queue.Options{UserLimit: queue.Rate{N: 3, Per: time.Second}})
	at := time.Now().Truncate(time.Second)
	l.embedded.SetTime(at)
	sale := l.start(func(s *queue.Sale) { withoutLine(s); s.OpensAt = at.Add(-time.Minute) })
	try := func(ms int) error {
		l.embedded.SetTime(at.Add(time.Duration(ms) * time.Millisecond))
		_, err := l.Grab(t.Context(), queue.GrabRequest{Sale: sale.ID, User: "ann", Item: "main", Qty: 1, RequestID: "r"})
		return err
	}
	// A fixed window would let six pass around its edge at 1,000.
	for _, step := range []struct {
		ms   int
		pass bool
	}{{900, true}, {950, true}, {999, true}, {1000, false}, {1899, false}, {1900, true}, {1949, false}, {1950, true}, {2500, true}, {2600, false}} {
		err := try(step.ms)
		if step.pass && err != nil || !step.pass && queue.CodeOf(err) != queue.Limited {
			t.Fatalf("at %d ms: %v", step.ms, err)
		}
	}
	l.embedded.SetTime(at.Add(2600 * time.Millisecond))
	if _, err := l.Grab(t.Context(), queue.GrabRequest{Sale: sale.ID, User: "bob", Item: "main", Qty: 1, RequestID: "r"}); err != nil {
		t.Fatalf("the limit of one user held another: %v", err)
	}
}
