package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"sluice/queue"
)

// shops is a queue in memory with the outboxes of several sales.
type shops struct {
	*ledger
	mu      sync.Mutex
	streams map[string]*stream
	err     error
}

func (s *shops) Sales(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sales []string
	for sale := range s.streams {
		sales = append(sales, sale)
	}
	return sales, s.err
}

func (s *shops) OutboxLen(_ context.Context, sale string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[sale] == nil {
		return 0, nil
	}
	return int64(s.streams[sale].left()), nil
}

func (s *shops) Time(context.Context) (int64, error) { return 0, nil }

func (s *shops) Hold(context.Context, string, int64, []string) error { return nil }

func (s *shops) outbox(sale, _ string) outbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[sale]
}

func (s *shops) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func TestWorkerServesSalesAsTheyComeAndGo(t *testing.T) {
	t.Parallel()
	a, b, c := newStream(grabs("sale-a", 0, 20)...), newStream(grabs("sale-b", 0, 20)...), newStream()
	book := newLedger()
	queue := &shops{ledger: book, streams: map[string]*stream{"sale-a": a}}
	registry := prometheus.NewRegistry()
	worker := newWorker(Options{Broker: NewDirect(), Logger: quiet, Registerer: registry, Node: "node"}, queue, book)
	start(t, worker.Run)
	eventually(t, "the first sale is written", func() bool { return a.left() == 0 })

	queue.set(func() { queue.streams["sale-b"], queue.streams["sale-c"] = b, c })
	eventually(t, "the second sale is written", func() bool { return b.left() == 0 })
	eventually(t, "three outboxes are measured", func() bool { return testutil.CollectAndCount(worker.metrics.outbox) == 3 })

	queue.set(func() { delete(queue.streams, "sale-a") })
	eventually(t, "two outboxes are measured", func() bool { return testutil.CollectAndCount(worker.metrics.outbox) == 2 })

	queue.set(func() { queue.err = errors.New("connection refused") })
	c.add(grabs("sale-c", 0, 20)...)
	eventually(t, "the third sale is written while Redis does not say which there are", func() bool { return c.left() == 0 })
	wantAll(t, book.done(), slices.Concat(grabs("sale-a", 0, 20), grabs("sale-b", 0, 20), grabs("sale-c", 0, 20)))
}

func TestWorkerWritesWhatIsOnItsWayWhenItStops(t *testing.T) {
	t.Parallel()
	out := newStream(grabs("sale", 0, 2000)...)
	book := newLedger()
	queue := &shops{ledger: book, streams: map[string]*stream{"sale": out}}
	broker := NewDirect()
	worker := newWorker(Options{Broker: broker, Logger: quiet, Batch: 50}, queue, book)
	stop := start(t, worker.Run)
	eventually(t, "some are written", func() bool { return book.count() > 0 })
	stop()
	if n := len(broker.orders); n != 0 {
		t.Errorf("%d orders were on their way and are not written", n)
	}
	if book.count()+out.left() != 2000 {
		t.Errorf("%d rows and %d orders in the outbox, want 2000 together", book.count(), out.left())
	}
}

func TestWorkerHasTheMetricsOfTheContract(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	m.outbox.WithLabelValues("sale")
	m.confirms.WithLabelValues("ack")
	m.written.WithLabelValues("confirmed")
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, family := range families {
		names = append(names, family.GetName())
	}
	wantSame(t, "the names", names, []string{
		"sluice_dead_letters", "sluice_order_lag_seconds", "sluice_order_write_seconds", "sluice_orders_written_total",
		"sluice_outbox_length", "sluice_publish_confirms_total", "sluice_relay_lag_seconds",
	})
}

// market is a real queue and a real store with one sale that is open and has no line.
type market struct {
	*queue.Queue
	t     *testing.T
	store *Store
	sale  string
}

// newMarket opens a sale with so many units in Redis and in the database.
func newMarket(t *testing.T, redisURL string, store *Store, inRedis, inDatabase int64, embedded bool) *market {
	t.Helper()
	rdb, err := queue.Connect(redisURL, 16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	m := &market{
		Queue: queue.New(rdb, queue.Options{Embedded: embedded}), t: t, store: store, sale: "t-" + uuid.NewString(),
	}
	sale := queue.Sale{
		ID:       m.sale,
		Items:    []queue.Item{{ID: "main", Stock: inRedis}},
		OpensAt:  time.Now().Add(-time.Minute).Truncate(time.Millisecond),
		ClosesAt: time.Now().Add(time.Hour).Truncate(time.Millisecond),
		Limit:    1,
		Line:     queue.Line{Order: queue.Off},
	}
	none := func(func([]queue.Order) error) error { return nil }
	if err := m.Restore(t.Context(), sale, queue.Reach{}, none); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		keys, err := rdb.Keys(context.Background(), "sluice:{"+m.sale+"}:*").Result()
		if err != nil {
			t.Error(err)
			return
		}
		rdb.SRem(context.Background(), "sluice:sales", m.sale)
		for _, key := range keys {
			rdb.Del(context.Background(), key)
		}
	})
	sale.Items[0].Stock = inDatabase
	save(t, store, sale)
	return m
}

// Sales hides the sales of other tests on the same server.
func (m *market) Sales(context.Context) ([]string, error) { return []string{m.sale}, nil }

func (m *market) outbox(sale, consumer string) outbox { return m.Outbox(sale, consumer) }

// worker makes a worker of this sale.
func (m *market) worker(broker Broker, node string) *Worker {
	return newWorker(Options{Broker: broker, Logger: quiet, Node: node, Batch: 100, RelayWindow: 300}, m, m.store)
}

// buy grabs a unit, again until it is known whether it was had, and returns the order or nil.
func (m *market) buy(user string) *queue.Order {
	request := queue.GrabRequest{Sale: m.sale, User: user, Item: "main", Qty: 1, RequestID: "request of " + user}
	for range 100 {
		grabbed, err := m.Grab(m.t.Context(), request)
		if err == nil && grabbed.Result == queue.Success {
			return grabbed.Order
		}
		if err == nil {
			return nil
		}
		sleep(m.t.Context(), 10*time.Millisecond)
	}
	m.t.Errorf("nobody knows whether %s has an order", user)
	return nil
}

// crowd lets so many users buy at once, and returns their orders.
func (m *market) crowd(users int) []queue.Order {
	var mu sync.Mutex
	var orders []queue.Order
	together(users, func(i int) {
		if order := m.buy(fmt.Sprintf("user-%d", i)); order != nil {
			mu.Lock()
			defer mu.Unlock()
			orders = append(orders, *order)
		}
	})
	return orders
}

// settled waits until the outbox and the queue are empty, and Redis and the database agree.
func (m *market) settled(sold int64) {
	m.t.Helper()
	eventually(m.t, "the outbox is empty and the database is complete", func() bool {
		waiting, err := m.OutboxLen(m.t.Context(), m.sale)
		if err != nil {
			return false
		}
		audit, err := m.store.Audit(m.t.Context(), m.sale)
		return err == nil && waiting == 0 && audit.Items[0].Sold == sold
	})
	eventually(m.t, "Redis agrees", func() bool {
		balance, err := m.Balance(m.t.Context(), m.sale)
		return err == nil && balance.Items[0].Winners == sold
	})
	audit, err := m.store.Audit(m.t.Context(), m.sale)
	if err != nil || !audit.Sound() {
		m.t.Errorf("the books are not sound: %+v, %v", audit, err)
	}
	balance, err := m.Balance(m.t.Context(), m.sale)
	if item := balance.Items[0]; err != nil || item.Stock+item.Winners != item.Total {
		m.t.Errorf("the stock in Redis does not add up: %+v, %v", item, err)
	}
}

// rows are the orders in the database.
func (m *market) rows() map[string]queue.Order {
	m.t.Helper()
	rows := map[string]queue.Order{}
	if err := m.store.EachOrder(m.t.Context(), m.sale, 500, func(page []queue.Order) error {
		for _, order := range page {
			rows[order.ID] = order
		}
		return nil
	}); err != nil {
		m.t.Fatal(err)
	}
	return rows
}

// wantRows checks that these orders, and no others, are in the database.
func (m *market) wantRows(orders []queue.Order) {
	m.t.Helper()
	rows := m.rows()
	for _, order := range orders {
		row := rows[order.ID]
		if row.User != order.User || row.RequestID != order.RequestID || row.CreatedAt != order.CreatedAt {
			m.t.Errorf("order %+v has the row %+v", order, row)
		}
	}
	if len(rows) != len(orders) {
		m.t.Errorf("there are %d rows, want %d", len(rows), len(orders))
	}
}

func redisURL(t *testing.T) string {
	t.Helper()
	url := os.Getenv("SLUICE_TEST_REDIS")
	if url == "" {
		t.Fatal("SLUICE_TEST_REDIS is not set; run the tests with: make test")
	}
	return url
}

func TestWorkerBringsEveryGrabToItsRow(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		m := newMarket(t, redisURL(t), s, 500, 500, false)
		broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
		start(t, m.worker(broker, "a").Run)
		start(t, m.worker(broker, "b").Run)
		orders := m.crowd(600)
		if len(orders) != 500 {
			t.Errorf("%d users got a unit, want 500", len(orders))
		}
		m.settled(500)
		m.wantRows(orders)
	})
}

func TestWorkerBringsEveryGrabToItsRowWhateverFails(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		m := newMarket(t, redisURL(t), s, 1000, 1000, false)
		network := newProxy(t)
		broker := newRabbit(t, network.url(), AMQPOptions{})
		start(t, m.worker(broker, "a").Run)

		ended := make(chan struct{})
		var chaos sync.WaitGroup
		chaos.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-ended:
					return
				default:
				}
				stop := start(t, m.worker(broker, fmt.Sprint("b", i)).Run)
				sleep(t.Context(), 50*time.Millisecond)
				network.cut()
				network.mute(true)
				sleep(t.Context(), 20*time.Millisecond)
				network.cut()
				network.mute(false)
				stop()
			}
		})
		var orders []queue.Order
		for i := range 20 {
			for j := range 50 {
				if order := m.buy(fmt.Sprintf("user-%d-%d", i, j)); order != nil {
					orders = append(orders, *order)
				}
			}
			sleep(t.Context(), 20*time.Millisecond)
		}
		close(ended)
		chaos.Wait()
		m.settled(1000)
		m.wantRows(orders)
	})
}

func TestWorkerGivesBackWhatTheDatabaseDoesNotHave(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		m := newMarket(t, redisURL(t), s, 10, 4, false)
		orders := m.crowd(10)
		broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
		start(t, m.worker(broker, "a").Run)
		m.settled(4)
		m.wantRows(orders)
		eventually(t, "no stock move is pending", func() bool {
			moves, err := s.Moves(t.Context(), 0, 100)
			return err == nil && len(moves) == 0
		})
	})
}

func TestWorkerOfOneProcessTellsOfAnOrderWhenItsRowIsThere(t *testing.T) {
	t.Parallel()
	s := openTest(t, "sqlite://"+filepath.Join(t.TempDir(), "orders.db"))
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := newMarket(t, "redis://"+miniredis.RunT(t).Addr(), s, 200, 200, true)
	notifier := NewNotifier(s)
	worker := m.worker(NewDirect(), "a")
	worker.opts.Notifier = notifier
	start(t, worker.Run)
	together(200, func(i int) {
		order := m.buy(fmt.Sprintf("user-%d", i))
		if order == nil {
			t.Error("no unit")
			return
		}
		stored, err := notifier.Wait(t.Context(), order.ID)
		if err != nil || stored.Status != queue.Confirmed {
			t.Errorf("told of %+v, %v", stored, err)
		}
		if _, err := s.Order(t.Context(), order.ID); err != nil {
			t.Errorf("told before the row was there: %v", err)
		}
	})
	m.settled(200)
}
