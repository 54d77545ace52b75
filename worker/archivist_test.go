package worker

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"sluice/queue"
)

// sqliteStore is one for tests to which the kind of database does not matter.
func sqliteStore(t *testing.T) *Store {
	t.Helper()
	s := openTest(t, "sqlite://"+filepath.Join(t.TempDir(), "orders.db"))
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// ended is a market that sold five units and is closed, with everything written.
func ended(t *testing.T, url string, s *Store, embedded bool) (*market, *Archivist) {
	t.Helper()
	m := newMarket(t, url, s, 20, 20, embedded)
	stop := start(t, m.worker(NewDirect(), "a").Run)
	m.crowd(5)
	m.settled(5)
	stop()
	if _, err := m.Close(t.Context(), m.sale); err != nil {
		t.Fatal(err)
	}
	return m, NewArchivist(m.Queue, s, NewDirect(), ArchivistOptions{Node: "a"}, quiet)
}

// wantArchived checks that a market is archived in both stores, that nothing was lost, and that nothing brings it back.
func (m *market) wantArchived(orders map[string]queue.Order) {
	m.t.Helper()
	ctx := m.t.Context()
	archive, err := m.store.Archive(ctx, m.sale)
	if err != nil || archive == nil || archive.Done == 0 {
		m.t.Fatalf("it is kept as %+v, %v", archive, err)
	}
	restorer := NewRestorer(m.Queue, m.store, NewDirect(), "a", quiet, nil)
	if err := restorer.Once(ctx); err != nil {
		m.t.Fatal(err)
	}
	if here, _, err := m.Installed(ctx, m.sale); here || err != nil {
		m.t.Errorf("Redis has the sale, or %v", err)
	}
	if sales, err := m.Queue.Sales(ctx); err != nil || slices.Contains(sales, m.sale) {
		m.t.Errorf("the sale is listed in Redis, or %v", err)
	}
	if sales, err := m.store.Sales(ctx); err != nil || len(sales) > 0 {
		m.t.Errorf("the database lists %d sales to bring back, or %v", len(sales), err)
	}
	wantSame(m.t, "the orders", m.rows(), orders)
	report, err := NewAuditor(m.Queue, m.store, nil).Audit(ctx, m.sale)
	if err != nil || !report.Balanced || !report.Archived || report.Items[0].Winners != 5 || report.Items[0].Sold != 5 {
		m.t.Errorf("the audit says %+v, %v", report, err)
	}
	if sale, err := m.store.Sale(ctx, m.sale); err != nil || !queue.IsArchived(m.store.SaveSale(ctx, sale)) {
		m.t.Errorf("the sale could be saved, or %v", err)
	}
}

func TestASaleIsArchivedOnceWhereverThatIsCutOff(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		steps := []func(a *Archivist, judged queue.Archive) error{
			func(a *Archivist, judged queue.Archive) error { return s.BeginArchive(t.Context(), judged) },
			func(a *Archivist, judged queue.Archive) error {
				return a.queue.Erase(t.Context(), judged.Sale, judged.Version)
			},
			func(a *Archivist, judged queue.Archive) error {
				return s.EndArchive(t.Context(), judged.Sale, judged.At)
			},
		}
		m, a := ended(t, redisURL(t), s, false)
		orders := m.rows()
		judged, err := a.judge(t.Context(), m.sale)
		if err != nil {
			t.Fatal(err)
		}
		// Each step twice, as whoever died after it and is begun again; and what an archivist does of it by itself.
		for i, step := range steps {
			for range 2 {
				if err := step(a, judged); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
			}
			if i == len(steps)-1 {
				break
			}
			if archive, err := s.Archive(t.Context(), m.sale); err != nil || archive.Done != 0 {
				t.Fatalf("after step %d it is done, or %v", i, err)
			}
		}
		for range 2 {
			if err := a.Archive(t.Context(), m.sale, false); err != nil {
				t.Fatal(err)
			}
		}
		m.wantArchived(orders)
	})
}

func TestWhoeverComesNextEndsWhatAnArchivistBegan(t *testing.T) {
	t.Parallel()
	s := sqliteStore(t)
	for _, died := range []string{"kept", "erased"} {
		redis := miniredis.RunT(t)
		m, a := ended(t, "redis://"+redis.Addr(), s, true)
		orders := m.rows()
		judged, err := a.judge(t.Context(), m.sale)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.BeginArchive(t.Context(), judged); err != nil {
			t.Fatal(err)
		}
		if died == "erased" {
			if err := m.Erase(t.Context(), m.sale, judged.Version); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.wantArchived(orders)

		// Nothing of it comes back when Redis loses everything, its mark included.
		redis.FlushAll()
		m.wantArchived(orders)
	}
}

func TestAnythingLiveHoldsAnArchiveBack(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		redis := miniredis.RunT(t)
		m, a := ended(t, "redis://"+redis.Addr(), s, true)
		key := func(name string) string { return "sluice:{" + m.sale + "}:" + name }
		orders := m.rows()
		var ids []string
		for id := range orders {
			ids = append(ids, id)
		}
		set := func(column string, value any) {
			t.Helper()
			if _, err := s.writer.ExecContext(t.Context(), s.writer.Rebind("UPDATE orders SET "+column+" = ? WHERE id = ?"), value, ids[0]); err != nil {
				t.Fatal(err)
			}
		}
		dead := NewDirect()
		lost := queue.Order{ID: "lost", Sale: m.sale, Item: "main", User: "eve", Qty: 1}
		if err := dead.Bury(t.Context(), DeadLetter{Delivery: Delivery{Order: lost, ID: "lost"}}); err != nil {
			t.Fatal(err)
		}
		for _, live := range []struct {
			why         string
			make, mend  func()
			broker      Broker
			unavailable bool
		}{
			{why: "it is open", make: func() { redis.HSet(key("meta"), "closes", "99999999999999") }, mend: func() { redis.HSet(key("meta"), "closes", "1000") }},
			{why: "not paid", make: func() { set("expires_at", int64(99999999999999)) }, mend: func() { set("expires_at", int64(0)) }},
			{why: "1 order waits in its outbox, and 0 changes", make: func() { mustAdd(t, redis, key("outbox")) }, mend: func() { redis.Del(key("outbox")) }},
			{why: "do not add up", make: func() { redis.HIncrBy(key("stock"), "main", 1) }, mend: func() { redis.HIncrBy(key("stock"), "main", -1) }},
			{why: "1 of its orders is a dead letter;", make: func() {}, mend: func() {}, broker: dead},
			{why: "put right", make: func() { redis.HSet(key("meta"), "run", "another") }, mend: func() {
				if err := m.Ready(t.Context(), m.sale); err != nil {
					t.Fatal(err)
				}
			}, unavailable: true},
		} {
			live.make()
			archivist := a
			if live.broker != nil {
				archivist = NewArchivist(m.Queue, s, live.broker, ArchivistOptions{Node: "a"}, quiet)
			}
			err := archivist.Archive(t.Context(), m.sale, true)
			want := queue.Conflict
			if live.unavailable {
				want = queue.Unavailable
			}
			if queue.CodeOf(err) != want || !strings.Contains(err.Error(), live.why) {
				t.Errorf("%s: %v", live.why, err)
			}
			if archived, err := s.Archived(t.Context(), m.sale); archived || err != nil {
				t.Errorf("%s: it is archived, or %v", live.why, err)
			}
			if here, _, err := m.Installed(t.Context(), m.sale); !here || err != nil {
				t.Errorf("%s: Redis does not have it, or %v", live.why, err)
			}
			live.mend()
		}
		if err := a.Archive(t.Context(), m.sale, false); err != nil {
			t.Fatal(err)
		}
		m.wantArchived(orders)
		wantCode(t, a.Archive(t.Context(), "no-such-sale", false), queue.NoSuchSale)
	})
}

func mustAdd(t *testing.T, redis *miniredis.Miniredis, stream string) {
	t.Helper()
	if _, err := redis.XAdd(stream, "*", []string{"user", "eve", "mark", "x"}); err != nil {
		t.Fatal(err)
	}
}

func TestASaleThatIsOpenedAgainWhileItIsArchivedGoesOn(t *testing.T) {
	t.Parallel()
	s := sqliteStore(t)
	m, a := ended(t, redisURL(t), s, false)
	judged, err := a.judge(t.Context(), m.sale)
	if err != nil {
		t.Fatal(err)
	}
	sale, err := m.Sale(t.Context(), m.sale)
	if err != nil {
		t.Fatal(err)
	}
	sale.ClosesAt = time.Now().Add(time.Hour).Truncate(time.Millisecond)
	if err := m.Apply(t.Context(), sale); err != nil {
		t.Fatal(err)
	}
	if err := s.BeginArchive(t.Context(), judged); err != nil {
		t.Fatal(err)
	}
	wantCode(t, a.Archive(t.Context(), m.sale, false), queue.Conflict)
	if archived, err := s.Archived(t.Context(), m.sale); archived || err != nil {
		t.Errorf("it is archived, or %v", err)
	}
	if order := m.buy("late"); order == nil {
		t.Error("nobody can buy in it")
	}
}

func TestARestorerThatReadOfASaleBeforeDoesNotBringItBack(t *testing.T) {
	t.Parallel()
	s := sqliteStore(t)
	redis := miniredis.RunT(t)
	m, a := ended(t, "redis://"+redis.Addr(), s, true)
	orders := m.rows()
	sale, err := s.Sale(t.Context(), m.sale)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Archive(t.Context(), m.sale, false); err != nil {
		t.Fatal(err)
	}
	restorer := NewRestorer(m.Queue, s, NewDirect(), "b", quiet, nil)
	for _, lost := range []bool{false, true} {
		if lost {
			redis.FlushAll()
		}
		if err := restorer.restore(t.Context(), sale, false); err != nil {
			t.Fatal(err)
		}
		m.wantArchived(orders)
	}
	// One that is past its look when the sale is archived finds out at its end, or leaves it to an archivist.
	if err := m.Rebuild(t.Context(), sale, queue.Reach{}, func(func([]queue.Order) error) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := a.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.wantArchived(orders)
}

func TestAnOrderOfAnArchivedSaleThatTurnsUpIsRejected(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		redis := miniredis.RunT(t)
		m, a := ended(t, "redis://"+redis.Addr(), s, true)
		known := m.rows()
		if err := a.Archive(t.Context(), m.sale, false); err != nil {
			t.Fatal(err)
		}
		late := queue.Order{ID: "late", Sale: m.sale, Item: "main", User: "eve", Qty: 1, RequestID: "r", CreatedAt: opening}
		for range 2 {
			written, err := s.WriteOrders(t.Context(), []queue.Order{late})
			if err != nil || written[0].Order.Status != queue.Rejected || written[0].Reason != RejectedArchived {
				t.Fatalf("it became %+v, %v", written, err)
			}
		}
		for id, order := range known { // a message that comes twice
			if written, err := s.WriteOrders(t.Context(), []queue.Order{order}); err != nil || !written[0].Known || written[0].Order.ID != id {
				t.Fatalf("a known one became %+v, %v", written, err)
			}
		}
		// There is nobody to tell of it, so its move does not wait for ever.
		if err := NewSweeper(m.Queue, s, quiet, nil, nil).Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		if pending, err := s.Pending(t.Context(), "late"); pending || err != nil {
			t.Errorf("its move is pending, or %v", err)
		}
		wantSold(t, s, m.sale, 5)
	})
}

// endedAndSaved is a sale that is over, and its settings are in the database as the server puts them there.
func endedAndSaved(t *testing.T) (*Store, *market, *miniredis.Miniredis) {
	t.Helper()
	s, redis := sqliteStore(t), miniredis.RunT(t)
	m, _ := ended(t, "redis://"+redis.Addr(), s, true)
	closed, err := m.Sale(t.Context(), m.sale)
	if err != nil {
		t.Fatal(err)
	}
	save(t, s, closed)
	return s, m, redis
}

func TestASaleIsArchivedByItselfOnceThatIsDue(t *testing.T) {
	t.Parallel()
	s, m, _ := endedAndSaved(t)
	orders := m.rows()
	archivist := func(node string, after, purge time.Duration) *Archivist {
		return NewArchivist(m.Queue, s, NewDirect(), ArchivistOptions{Node: node, ArchiveAfter: after, PurgeAfter: purge}, quiet)
	}
	once := func(a *Archivist) {
		t.Helper()
		if err := a.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	once(archivist("a", 0, time.Nanosecond)) // off
	once(archivist("b", time.Nanosecond, 0)) // another one has the lease
	once(archivist("a", time.Hour, 0))
	if archived, err := s.Archived(t.Context(), m.sale); archived || err != nil {
		t.Fatalf("it is archived too early, or %v", err)
	}
	once(archivist("a", time.Nanosecond, time.Hour))
	once(archivist("a", time.Nanosecond, time.Hour))
	m.wantArchived(orders)
	once(archivist("a", time.Nanosecond, time.Nanosecond))
	once(archivist("a", time.Nanosecond, time.Nanosecond))
	for _, order := range m.rows() {
		if !strings.HasPrefix(order.User, "purged-") {
			t.Errorf("an order is still of %s", order.User)
		}
	}
	changes, err := s.Changes(t.Context(), m.sale, 0, 10)
	if err != nil || len(changes) != 2 || changes[0].Action != "purge" || changes[1].Action != "archive" || changes[0].Who != "retention" {
		t.Errorf("the audit log says %+v, %v", changes, err)
	}
}

func TestAnArchivistStopsWhereAnotherOneWorks(t *testing.T) {
	t.Parallel()
	s, one, redis := endedAndSaved(t)
	two, _ := ended(t, "redis://"+redis.Addr(), s, true)
	closed, err := two.Sale(t.Context(), two.sale)
	if err != nil {
		t.Fatal(err)
	}
	save(t, s, closed)
	archivist := func(node string) *Archivist {
		return NewArchivist(one.Queue, s, NewDirect(), ArchivistOptions{Node: node, ArchiveAfter: time.Nanosecond}, quiet)
	}
	if err := archivist("b").lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := time.Now().UnixMilli()
	if err := archivist("a").due(t.Context(), at); !errors.Is(err, errNotMine) { // as if its lease had run out meanwhile
		t.Errorf("without the lease it goes on, or %v", err)
	}
	left, err := s.Sales(t.Context())
	if err != nil || len(left) != 1 {
		t.Errorf("%d sales are left, %v", len(left), err)
	}
	if err := archivist("b").due(t.Context(), at); err != nil {
		t.Error(err)
	}
}

func TestASaleThatIsHeldBackIsJudgedAgainAWhileLater(t *testing.T) {
	t.Parallel()
	s, m, redis := endedAndSaved(t)
	orders := m.rows()
	var log bytes.Buffer
	a := NewArchivist(m.Queue, s, NewDirect(), ArchivistOptions{Node: "a", ArchiveAfter: time.Nanosecond}, slog.New(slog.NewTextHandler(&log, nil)))
	now := time.Now()
	once := func(later time.Duration) {
		t.Helper()
		redis.SetTime(now.Add(later))
		if err := a.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		if archived, err := s.Archived(t.Context(), m.sale); archived != (later > archiveAgain) || err != nil {
			t.Errorf("%s later it is archived: %v, %v", later, archived, err)
		}
	}
	stock := "sluice:{" + m.sale + "}:stock"
	redis.HIncrBy(stock, "main", 1)
	once(0)
	redis.HIncrBy(stock, "main", -1)
	once(archiveAgain - time.Second)
	if said := strings.Count(log.String(), "do not add up"); said != 1 {
		t.Errorf("why it is held back is said %d times: %s", said, &log)
	}
	once(archiveAgain + time.Second)
	m.wantArchived(orders)
}

func TestUsersArePurgedWhereverThatIsCutOffAndTheBooksStayBalanced(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		sale := sellOut("phone", 1, 20)
		sale.Access.Deny = []string{"user-3"}
		save(t, s, sale)
		write(t, s, grabs("phone", 0, 7)...)
		if _, err := s.Transition(t.Context(), "phone-00000002", queue.Confirmed, queue.Cancelled, 0); err != nil {
			t.Fatal(err)
		}
		again := grab("phone", 50) // whoever cancelled bought again
		again.User = "user-2"
		write(t, s, again)
		other := sellOut("watch", 1, 5)
		save(t, s, other)
		order := grab("watch", 1)
		write(t, s, order)

		// Not before the sale is archived.
		if more, err := s.PurgeUsers(t.Context(), "phone", 3); more || err != nil {
			t.Fatal(more, err)
		}
		wantOrders := func(user, sale string, want int) {
			t.Helper()
			if orders, err := s.OrdersOf(t.Context(), user, sale); err != nil || len(orders) != want {
				t.Errorf("%d orders of %s in %s, want %d, %v", len(orders), user, sale, want, err)
			}
		}
		wantOrders("user-2", "phone", 2)
		for _, statement := range []string{"UPDATE orders SET expires_at = 0", "UPDATE stock_moves SET done = 1"} {
			if _, err := s.writer.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.BeginArchive(t.Context(), queue.Archive{Sale: "phone", At: opening, Audit: []byte("{}"), Version: 1}); err != nil {
			t.Fatal(err)
		}
		if err := s.EndArchive(t.Context(), "phone", opening); err != nil {
			t.Fatal(err)
		}
		before, err := s.Audit(t.Context(), "phone")
		if err != nil {
			t.Fatal(err)
		}
		// A transaction that fails at its end has changed nothing, and the next one goes on where the last one was.
		cut, cancel := context.WithCancel(t.Context())
		cancel()
		pages := 0
		for more := true; more; pages++ {
			if _, err := s.PurgeUsers(cut, "phone", 3); err == nil {
				t.Fatal("a purge that was cut off succeeded")
			}
			if more, err = s.PurgeUsers(t.Context(), "phone", 3); err != nil {
				t.Fatal(err)
			}
		}
		if pages != 3 {
			t.Errorf("8 orders were %d pages of 3", pages)
		}
		if more, err := s.PurgeUsers(t.Context(), "phone", 3); more || err != nil {
			t.Errorf("a purge that is done goes on: %v, %v", more, err)
		}
		after, err := s.Audit(t.Context(), "phone")
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "the books", after, before)

		names := map[string]int{}
		if err := s.EachOrder(t.Context(), "phone", 100, func(page []queue.Order) error {
			for _, o := range page {
				names[o.User]++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		twice := 0
		for name, n := range names {
			if !strings.HasPrefix(name, "purged-") {
				t.Errorf("an order is still of %s", name)
			}
			if n == 2 {
				twice++
			}
		}
		if len(names) != 7 || twice != 1 {
			t.Errorf("7 users, of whom one has two orders, became %v", names)
		}
		var left int
		if err := s.db.GetContext(t.Context(), &left, "SELECT COUNT(*) FROM archives WHERE purge_key <> '' OR purge_after <> '' OR purged_at = 0"); err != nil || left > 0 {
			t.Errorf("the key of the pseudonyms is still there, or %v", err)
		}
		if kept, err := s.Sale(t.Context(), "phone"); err != nil || len(kept.Access.Deny) > 0 {
			t.Errorf("the settings still name users, or %v", err)
		}
		wantOrders("user-1", "watch", 1)
	})
}
