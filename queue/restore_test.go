package queue_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"sluice/queue"
)

// rows is a database that holds these orders.
func rows(orders ...queue.Order) func(func([]queue.Order) error) error {
	return func(yield func([]queue.Order) error) error {
		for start := 0; start < len(orders); start += 2 { // small pages
			if err := yield(orders[start:min(start+2, len(orders))]); err != nil {
				return err
			}
		}
		return nil
	}
}

func rowOf(sale, user string, status queue.OrderStatus) queue.Order {
	return queue.Order{
		ID: uuid.NewString(), Sale: sale, Item: "main", User: user, Qty: 1, RequestID: "r of " + user,
		Status: status, CreatedAt: time.Now().UnixMilli(), PayBy: time.Now().Add(time.Minute).UnixMilli(),
	}
}

func TestALostSaleIsRebuiltFromItsOrders(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(withoutLine)
		var orders []queue.Order
		for i := range 5 {
			orders = append(orders, rowOf(sale.ID, fmt.Sprint("buyer-", i), queue.Confirmed))
		}
		ended := rowOf(sale.ID, "ended", queue.Cancelled)
		orders = append(orders, ended)

		// Everything is lost but the outbox and the news.
		for _, key := range []string{"meta", "stock", "seats", "winners", "past", "turns", "gone"} {
			l.rdb.Del(t.Context(), "sluice:{"+sale.ID+"}:"+key)
		}
		if here, _, err := l.Installed(t.Context(), sale.ID); err != nil || here {
			t.Fatalf("a lost sale counts as here (%v)", err)
		}
		var wg sync.WaitGroup
		for range 4 { // several nodes notice at once
			wg.Go(func() {
				if err := l.Restore(t.Context(), sale, queue.Reach{}, rows(orders...)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if here, ready, err := l.Installed(t.Context(), sale.ID); err != nil || !here || !ready {
			t.Fatalf("after the recovery: here %v, ready %v, %v", here, ready, err)
		}
		if left := l.units(sale.ID, "main"); left != 5 {
			t.Fatalf("%d units left, want 5", left)
		}
		for _, order := range orders[:5] {
			g := l.grab(sale.ID, order.User, order.RequestID)
			if g.Result != queue.Success || !g.Replay || g.Order.ID != order.ID {
				t.Fatalf("%s repeats its grab and gets %+v", order.User, g)
			}
		}
		if g := l.grab(sale.ID, "ended", ended.RequestID); !g.Ended || g.Order.ID != ended.ID || l.units(sale.ID, "main") != 5 {
			t.Fatalf("the late retry of a cancelled order gets %+v", g)
		}
		if g := l.grab(sale.ID, "ended", "another"); g.Result != queue.Success || g.Replay {
			t.Fatalf("whose order was cancelled gets %+v", g)
		}
	})
}

func TestRestoringARunningSaleChangesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(func(s *queue.Sale) { s.Line.Active = 1 })
		for i := range 3 {
			l.join(sale.ID, fmt.Sprint("u", i))
		}
		_, until := l.watching(sale.ID)
		until("the first is called", func(s *queue.Snapshot) bool { return s.Turns == 1 })
		won := l.grab(sale.ID, "u0", "r")
		restarted := sale
		restarted.Items = []queue.Item{{ID: "main", Stock: 99}} // what a file says must not go over what is live
		for range 3 {
			if err := l.Restore(t.Context(), restarted, queue.Reach{}, rows(*won.Order)); err != nil {
				t.Fatal(err)
			}
		}
		if left := l.units(sale.ID, "main"); left != 9 {
			t.Fatalf("%d units left, want 9", left)
		}
		if seat := l.look(sale.ID, "u2"); seat.Number != 3 {
			t.Fatalf("a seat was lost: %+v", seat)
		}
	})
}

func TestAnotherRunOfTheServerSuspendsTheSaleUntilItIsPutRight(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(withoutLine)
		won := l.grab(sale.ID, "ann", "r1")
		l.rdb.HSet(t.Context(), "sluice:{"+sale.ID+"}:meta", "run", "an earlier run")
		if here, ready, err := l.Installed(t.Context(), sale.ID); err != nil || !here || ready {
			t.Fatalf("here %v, ready %v, %v", here, ready, err)
		}
		_, err := l.Grab(t.Context(), queue.GrabRequest{Sale: sale.ID, User: "bob", Item: "main", Qty: 1, RequestID: "r"})
		if queue.CodeOf(err) != queue.Unavailable {
			t.Fatalf("a grab while recovering: %v", err)
		}
		if _, err := l.Join(t.Context(), queue.JoinRequest{Sale: sale.ID, User: "bob"}); queue.CodeOf(err) != queue.Unavailable {
			t.Fatalf("a join while recovering: %v", err)
		}
		if _, err := l.Pause(t.Context(), sale.ID); queue.CodeOf(err) != queue.Unavailable {
			t.Fatalf("a pause while recovering: %v", err)
		}
		if err := l.Restore(t.Context(), sale, queue.Reach{}, rows(*won.Order)); err != nil {
			t.Fatal(err)
		}
		if g := l.grab(sale.ID, "bob", "r"); g.Result != queue.Success || l.units(sale.ID, "main") != 8 {
			t.Fatalf("after the recovery: %+v, %d left", g, l.units(sale.ID, "main"))
		}
	})
}

func TestAnOrderThatCannotBeAdoptedSaysWhy(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(func(s *queue.Sale) { withoutLine(s); s.Items[0].Stock = 1 })
		first, second := rowOf(sale.ID, "ann", queue.Confirmed), rowOf(sale.ID, "bob", queue.Confirmed)
		other := rowOf(sale.ID, "ann", queue.Confirmed)
		got, err := l.Adopt(t.Context(), sale.ID, []queue.Order{first, first, second, other})
		if err != nil || fmt.Sprint(got) != fmt.Sprint([]queue.Adoption{queue.Taken, queue.Marked, queue.NoStock, queue.OtherMark}) {
			t.Fatalf("got %v %v", got, err)
		}
		if released, err := l.Release(t.Context(), sale.ID, []queue.Order{other}); err != nil || released[0] {
			t.Fatalf("an order without a mark gave stock back: %v %v", released, err)
		}
		if left := l.units(sale.ID, "main"); left != 0 {
			t.Fatalf("%d units left", left)
		}
	})
}

func TestScriptsThatRedisForgotAreLoadedAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(withoutLine)
		if err := l.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l.embedded == nil {
			t.Log("a shared server keeps its scripts; the embedded one forgets them here")
		} else if err := l.rdb.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() { l.grab(sale.ID, fmt.Sprint("u", i), "r") })
		}
		wg.Wait()
		if left := l.units(sale.ID, "main"); left != 0 {
			t.Fatalf("%d units left", left)
		}
	})
}

// keyCheck fails when a script call names a key outside its sale's slot.
type keyCheck struct {
	t     *testing.T
	tag   string
	calls int
}

func (c *keyCheck) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c *keyCheck) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (c *keyCheck) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if name := cmd.Name(); name == "evalsha" || name == "eval" {
			args := cmd.Args()
			n := args[2].(int)
			for _, key := range args[3 : 3+n] {
				if !strings.Contains(fmt.Sprint(key), c.tag) {
					c.t.Errorf("the key %v is not in the slot of %s", key, c.tag)
				}
			}
			c.calls++
		}
		return next(ctx, cmd)
	}
}

func TestEveryKeyOfAScriptIsInTheSlotOfItsSale(t *testing.T) {
	t.Parallel()
	l := realLine(t, queue.Options{UserLimit: queue.Rate{N: 100, Per: time.Second}, AddressLimit: queue.Rate{N: 100, Per: time.Second}})
	check := &keyCheck{t: t}
	sale := l.sale(nil)
	check.tag = "{" + sale.ID + "}"
	l.rdb.AddHook(check)
	if err := l.Restore(t.Context(), sale, queue.Reach{}, rows(rowOf(sale.ID, "x", queue.Confirmed), rowOf(sale.ID, "y", queue.Expired))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.drop(sale.ID) })
	seat, err := l.Join(t.Context(), queue.JoinRequest{Sale: sale.ID, User: "ann", Address: "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Grab(t.Context(), queue.GrabRequest{Sale: sale.ID, User: "ann", Address: "192.0.2.1", Item: "main", Qty: 1, RequestID: "r"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Leave(t.Context(), sale.ID, "ann", seat.Number); err != nil {
		t.Fatal(err)
	}
	if _, err := queue.NewTicker(l.Queue, sale.ID)(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Close(t.Context(), sale.ID); err != nil {
		t.Fatal(err)
	}
	l.units(sale.ID, "main")
	if check.calls < 10 {
		t.Fatalf("only %d script calls were seen", check.calls)
	}
}

func TestALostAnswerIsFoundAgainAndTakesNothingTwice(t *testing.T) {
	t.Parallel()
	l := realLine(t, queue.Options{})
	sale := l.start(withoutLine)
	l.rdb.AddHook(&loseAnswers{every: 2})
	for i := range 10 {
		user := fmt.Sprint("u", i)
		g, err := l.Grab(t.Context(), queue.GrabRequest{Sale: sale.ID, User: user, Item: "main", Qty: 1, RequestID: "r"})
		if err != nil {
			// Both answers were lost; the same request settles it.
			g, err = l.Grab(t.Context(), queue.GrabRequest{Sale: sale.ID, User: user, Item: "main", Qty: 1, RequestID: "r"})
		}
		if err != nil || g.Result != queue.Success {
			t.Fatalf("%s got %+v %v", user, g, err)
		}
	}
	ids, err := l.OutboxIDs(t.Context(), sale.ID)
	if err != nil || len(ids) != 10 {
		t.Fatalf("%d orders for 10 grabs (%v)", len(ids), err)
	}
}

// loseAnswers runs every script, and loses the answer of every so many calls.
type loseAnswers struct {
	every, n int
	mu       sync.Mutex
}

func (h *loseAnswers) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h *loseAnswers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (h *loseAnswers) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() != "evalsha" || err != nil {
			return err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.n++; h.n%h.every == 1 {
			err = context.DeadlineExceeded
			cmd.SetErr(err)
		}
		return err
	}
}

func TestAnEntryThatIsNoOrderHoldsUpNobody(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(withoutLine)
		outbox := "sluice:{" + sale.ID + "}:outbox"
		l.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: outbox, Values: []string{"user", "eve", "mark", "nonsense"}})
		l.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: outbox, Values: []string{"hello", "world"}})
		won := l.grab(sale.ID, "ann", "r")
		relay := l.Outbox(sale.ID, "relay-1")
		entries, err := relay.Read(t.Context(), 10, 0)
		if err != nil || len(entries) != 1 || entries[0].Order.ID != won.Order.ID {
			t.Fatalf("got %+v %v", entries, err)
		}
		// The relay dies; another one takes over what it had, and finishes it.
		next := l.Outbox(sale.ID, "relay-2")
		claimed, err := next.Claim(t.Context(), 0, 10)
		if err != nil || len(claimed) != 1 || claimed[0] != entries[0] {
			t.Fatalf("claimed %+v %v", claimed, err)
		}
		for range 2 {
			if err := next.Done(t.Context(), []string{claimed[0].ID}); err != nil {
				t.Fatal(err)
			}
		}
		if ids, err := l.OutboxIDs(t.Context(), sale.ID); err != nil || len(ids) != 0 {
			t.Fatalf("%d orders are left in the outbox (%v)", len(ids), err)
		}
	})
}

func TestALostRelayGroupSkipsNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(withoutLine)
		relay := l.Outbox(sale.ID, "relay-1")
		if entries, err := relay.Read(t.Context(), 10, 0); err != nil || len(entries) != 0 {
			t.Fatalf("an empty outbox: %v %v", entries, err)
		}
		l.grab(sale.ID, "ann", "r")
		l.rdb.XGroupDestroy(t.Context(), "sluice:{"+sale.ID+"}:outbox", "relay")
		l.grab(sale.ID, "bob", "r")
		entries, err := relay.Read(t.Context(), 10, 0)
		if err != nil || len(entries) != 2 {
			t.Fatalf("got %d entries (%v), want both", len(entries), err)
		}
	})
}

// A rebuild that aligns Redis with the database alone oversells what is on its way between them.
func TestOrdersOnTheirWayAreCountedWhenASaleIsPutRight(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(withoutLine)
		written := l.grab(sale.ID, "written", "r").Order
		l.grab(sale.ID, "in the outbox", "r")
		for range 3 {
			l.rdb.HSet(t.Context(), "sluice:{"+sale.ID+"}:meta", "run", "an earlier run")
			if err := l.Restore(t.Context(), sale, queue.Reach{}, rows(*written)); err != nil {
				t.Fatal(err)
			}
			if left := l.units(sale.ID, "main"); left != 8 {
				t.Fatalf("%d units left, want 8", left)
			}
		}
	})
}

// A failover to a replica that was behind: it has an old stock, lacks marks that the database has orders of, and has one
// whose order was cancelled since.
func TestAPromotedStaleReplicaIsBroughtUpToTheDatabase(t *testing.T) {
	t.Parallel()
	l := realLine(t, queue.Options{})
	sale := l.start(withoutLine)
	early := *l.grab(sale.ID, "early", "r").Order
	kept := map[string]string{}
	for _, key := range []string{"meta", "stock", "winners"} {
		name := "sluice:{" + sale.ID + "}:" + key
		dump, err := l.rdb.Dump(t.Context(), name).Result()
		if err != nil {
			t.Fatal(err)
		}
		kept[name] = dump
	}
	var orders []queue.Order
	for i := range 4 {
		order := *l.grab(sale.ID, fmt.Sprint("later-", i), "r").Order
		order.Status = queue.Confirmed
		orders = append(orders, order)
	}
	early.Status = queue.Cancelled
	if _, err := l.Release(t.Context(), sale.ID, []queue.Order{early}); err != nil {
		t.Fatal(err)
	}
	if err := l.rdb.Del(t.Context(), "sluice:{"+sale.ID+"}:past").Err(); err != nil {
		t.Fatal(err)
	}
	for name, dump := range kept {
		if err := l.rdb.RestoreReplace(t.Context(), name, 0, dump).Err(); err != nil {
			t.Fatal(err)
		}
	}
	l.rdb.HSet(t.Context(), "sluice:{"+sale.ID+"}:meta", "run", "of the master that is gone")
	if left := l.units(sale.ID, "main"); left != 9 {
		t.Fatalf("the replica has %d units", left)
	}
	if err := l.Restore(t.Context(), sale, queue.Reach{}, rows(append([]queue.Order{early}, orders...)...)); err != nil {
		t.Fatal(err)
	}
	if left := l.units(sale.ID, "main"); left != 6 {
		t.Fatalf("%d units left, want 6", left)
	}
	if g := l.grab(sale.ID, "early", "r"); !g.Ended || l.units(sale.ID, "main") != 6 {
		t.Fatalf("the late retry of the cancelled order got %+v", g)
	}
}
