package worker

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"

	"sluice/queue"
)

// stuckStore is a database that does not answer until it is let go.
type stuckStore struct {
	*Store
	free chan struct{}
}

func (s stuckStore) WriteOrders(ctx context.Context, orders []queue.Order) ([]Written, error) {
	select {
	case <-s.free:
		return s.Store.WriteOrders(ctx, orders)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestOrdersThatASlowDatabaseKeepsAreNotLost has writers hold orders for two minutes: they are in no outbox and RabbitMQ does not
// count them, and the books add up all the same.
func TestOrdersThatASlowDatabaseKeepsAreNotLost(t *testing.T) {
	t.Parallel()
	s := openTest(t, "sqlite://"+filepath.Join(t.TempDir(), "orders.db"))
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	redis := miniredis.RunT(t)
	m := newMarket(t, "redis://"+redis.Addr(), s, 20, 20, true)
	rabbit := newRabbit(t, rabbitURL(t), AMQPOptions{})
	stuck := stuckStore{Store: s, free: make(chan struct{})}
	stop := start(t, newWorker(Options{Broker: rabbit.AMQP, Logger: quiet, Node: "a"}, m, stuck).Run)
	m.crowd(5)
	auditor := NewAuditor(m.Queue, s, rabbit.AMQP)
	audit := func() Report {
		report, err := auditor.Audit(t.Context(), m.sale)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	eventually(t, "all orders are with the writers", func() bool { return audit().Outbox == 0 && count(rabbit.AMQP.Held(time.Now())) == 5 })
	redis.SetTime(time.Now().Add(2 * time.Minute))
	eventually(t, "the writers say so by this clock", func() bool {
		held, err := m.Held(t.Context(), m.sale)
		return err == nil && len(held) == 5
	})
	if report := audit(); !report.Balanced || report.Breach() || report.InFlight != 5 || report.Broker.Orders != 0 {
		t.Errorf("five orders in hand: %+v", report)
	}
	// A worker that is told to stop goes on with what it has in hand, and goes on saying so.
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	redis.SetTime(time.Now().Add(4 * time.Minute))
	eventually(t, "the writers say so while they are to stop", func() bool {
		held, err := m.Held(t.Context(), m.sale)
		return err == nil && len(held) == 5
	})
	close(stuck.free)
	receive(t, "the end of the worker", stopped)
	// What it had received and not begun with is the broker's again, and another worker's.
	start(t, newWorker(Options{Broker: rabbit.AMQP, Logger: quiet, Node: "b"}, m, s).Run)
	m.settled(5)
	if report := audit(); !report.Balanced || report.InFlight != 0 {
		t.Errorf("five orders written: %+v", report)
	}
	if left := count(rabbit.AMQP.Held(time.Now())); left != 0 {
		t.Errorf("%d orders are in hand after they were acknowledged", left)
	}
}

func count(held map[string][]string) (n int) {
	for _, orders := range held {
		n += len(orders)
	}
	return n
}

// TestWhatTheBrokerMayHoldIsNotLost audits a mark without a row, of two minutes ago, while an order waits in the broker and
// while the broker does not answer. When it does, and has nothing, the order is lost.
func TestWhatTheBrokerMayHoldIsNotLost(t *testing.T) {
	t.Parallel()
	m, _, _ := inspected(t, true)
	order := queue.Order{
		ID: uuid.NewString(), Sale: m.sale, Item: "main", User: "lost", Qty: 1, RequestID: "r", Status: queue.Reserved,
		CreatedAt: time.Now().Add(-2 * time.Minute).UnixMilli(),
	}
	if _, err := m.Adopt(t.Context(), m.sale, []queue.Order{order}); err != nil {
		t.Fatal(err)
	}
	waiting := NewDirect()
	hand(t, waiting, order)
	away, err := NewAMQP("amqp://127.0.0.1:1", AMQPOptions{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		broker Broker
		breach bool
	}{{"with the order", waiting, false}, {"away", away, false}, {"empty", NewDirect(), true}} {
		report, err := NewAuditor(m.Queue, m.store, test.broker).Audit(t.Context(), m.sale)
		if err != nil || report.Balanced == test.breach || report.Breach() != test.breach || report.InFlight != 1 ||
			report.Broker.Away != (test.name == "away") {
			t.Errorf("a broker %s: %+v, %v", test.name, report, err)
		}
	}
}
