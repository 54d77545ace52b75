//go:build brokers

package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/deploy/control"
)

// brokers are the nodes of a RabbitMQ cluster that the test has for itself.
type brokers struct {
	t       *testing.T
	control control.Control
	urls    []string // of brokers-1 and so on, in this order
	prefix  string   // of the names of the queues
}

// findBrokers finds the cluster, which deploy/services starts only for those who name it.
func findBrokers(t *testing.T) *brokers {
	t.Helper()
	list := setting(t, "SLUICE_TEST_AMQP_CLUSTER")
	c, err := control.Find()
	if err != nil {
		t.Fatal(err)
	}
	return &brokers{t: t, control: c, urls: strings.Split(list, ","), prefix: freshID() + "-"}
}

// tell does something to a node, by its index.
func (b *brokers) tell(what string, node int) string {
	b.t.Helper()
	answer, err := b.control.Tell(fmt.Sprintf("%s brokers-%d", what, node+1))
	if err != nil {
		b.t.Fatal(err)
	}
	return answer
}

// membership is where a queue is, by the indexes of nodes.
type membership struct {
	leader  int
	members []int
}

// queues asks a node for both queues, that of orders first.
func (b *brokers) queues(node int) (orders, dead membership) {
	b.t.Helper()
	ctl := exec.CommandContext(b.t.Context(), filepath.Join(b.tell("dir", node), "ctl"), "--silent", "list_queues", "name", "leader", "members", "--formatter", "json")
	out, err := ctl.Output()
	if err != nil {
		b.t.Fatalf("ask node %d for its queues: %v\n%s", node, err, out)
	}
	var list []struct {
		Name, Leader string
		Members      []string
	}
	if err := json.Unmarshal(out, &list); err != nil {
		b.t.Fatalf("understand the queues of node %d: %v\n%s", node, err, out)
	}
	find := func(name string) membership {
		for _, queue := range list {
			if queue.Name == b.prefix+name {
				m := membership{leader: b.index(queue.Leader)}
				for _, member := range queue.Members {
					m.members = append(m.members, b.index(member))
				}
				slices.Sort(m.members)
				return m
			}
		}
		b.t.Fatalf("node %d has no queue %s:\n%s", node, name, out)
		panic("unreachable")
	}
	return find("sluice.orders"), find("sluice.dead")
}

// index is that of a node by its name, like sluice-2@localhost.
func (b *brokers) index(name string) int {
	for i := range b.urls {
		if strings.HasPrefix(name, fmt.Sprintf("sluice-%d@", i+1)) {
			return i
		}
	}
	return -1 // a queue without a leader has an empty name there
}

// from is the list of URLs that begins with one node, or with the one after it.
func (b *brokers) from(node int) string {
	node %= len(b.urls)
	return strings.Join(append(slices.Clone(b.urls[node:]), b.urls[:node]...), ",")
}

// rowCount is how many rows there were from a moment on.
type rowCount struct {
	at   time.Time
	rows int64
}

// rowWatch looks at the rows of a database all the time, as somebody with a stopwatch would.
type rowWatch struct {
	ended   chan struct{}
	changes []rowCount // read them after ended
}

func watchRows(t *testing.T, db *sql.DB, until int64) *rowWatch {
	w := &rowWatch{ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for last := int64(-1); last < until; {
			var n int64
			if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders").Scan(&n); err != nil {
				return // the test has ended
			}
			if n != last {
				w.changes = append(w.changes, rowCount{time.Now(), n})
				last = n
			}
			<-ticker.C
		}
	}()
	return w
}

// longest is the longest time without a new row that ends after the one moment and begins before the other.
func (w *rowWatch) longest(after, before time.Time) (from, to time.Time) {
	for i := 1; i < len(w.changes); i++ {
		begin, end := w.changes[i-1].at, w.changes[i].at
		if w.changes[i-1].rows > 0 && end.After(after) && begin.Before(before) && end.Sub(begin) > to.Sub(from) {
			from, to = begin, end
		}
	}
	return from, to
}

// TestASaleOutlivesTheNodeThatLeadsItsQueue takes away, in the middle of a sale, the node of a RabbitMQ cluster that leads
// the queue of orders, and brings it back. The others elect another leader, nothing is lost, and nothing is there twice. It
// prints how long no order was written.
func TestASaleOutlivesTheNodeThatLeadsItsQueue(t *testing.T) {
	for _, test := range []struct {
		name       string
		lose, back string // as deploy/services calls it
		away       int    // how far from the leader, in nodes, is the one that the processes are connected to
	}{
		{"it dies, and everybody is connected to it", "kill", "start", 0},
		{"it dies, and nobody is connected to it", "kill", "start", 1},
		{"it falls silent, and everybody is connected to it", "freeze", "thaw", 0},
	} {
		t.Run(test.name, func(t *testing.T) { loseTheLeader(t, test.lose, test.back, test.away) })
	}
}

func loseTheLeader(t *testing.T, lose, back string, away int) {
	const stock, users, rate = 2000, 3000, 100
	b := findBrokers(t)
	databaseURL, rows := createDatabase(t, "mysql")
	redisURL := claimRedis(t)
	flags := func(first int) []string {
		return []string{"--redis-url", redisURL, "--amqp-url", b.from(first), "--amqp-prefix", b.prefix, "--database-url", databaseURL}
	}
	// Whoever connects first declares the queues.
	succeed(t, append([]string{"dead", "list"}, flags(0)...)...)
	orders, dead := b.queues(0)
	want(t, "members of the queue of orders", fmt.Sprint(orders.members), "[0 1 2]")
	want(t, "members of the queue of dead letters", fmt.Sprint(dead.members), "[0 1 2]")
	victim := orders.leader

	s := open(t, append(flags(victim+away), "--no-worker")...)
	for range 2 {
		begin(t, append([]string{"worker", "--ops-listen", "127.0.0.1:0"}, flags(victim+away)...)...).says("msg=(working)")
	}
	sale := freshID()
	s.apply(saleFile(t, sale, stock, fmt.Sprintf("opens_at: +20s\ncloses_at: +1h\nlobby: 1h\nhold: 0s\nline: { order: lottery, rate: %d, active: 0, ratio: 0, turn: 60s }", rate)))
	watch := watchRows(t, rows, stock)
	crowd := s.crowd(sale, users, "--ramp", "10s", "--timeout", "5m")
	reach := func(n int64) {
		eventually(t, fmt.Sprintf("%d orders are written", n), func() bool {
			written, err := countOf(rows, "SELECT COUNT(*) FROM orders")
			return err == nil && written >= n
		})
	}
	reach(stock / 4)
	lost := time.Now()
	b.tell(lose, victim)
	t.Cleanup(func() { // whatever came of it, and whatever it thinks of the others after its silence, the next test finds it sound
		b.tell("kill", victim)
		b.tell("start", victim)
	})
	reach(stock / 2)
	others := (victim + 1) % len(b.urls)
	if orders, _ = b.queues(others); orders.leader == victim || orders.leader < 0 {
		t.Errorf("orders are written although their queue is led by node %d, and node %d is away", orders.leader, victim)
	}
	returning := time.Now()
	b.tell(back, victim)
	returned := time.Now()
	reach(stock)
	<-watch.ended

	report := crowd.report()
	want(t, "shoppers who were told that they have bought", report.Results["success"], int64(stock))
	want(t, "shoppers who were told that all is sold", report.Results["sold_out"], int64(users-stock))
	if left := report.Unanswered + report.Unconfirmed + report.Duplicates + report.Shared + report.AheadRose + report.Moved; left > 0 {
		t.Errorf("not everybody was told the truth: %+v", report)
	}
	written, err := countOf(rows, "SELECT COUNT(*) FROM orders")
	want(t, "rows of orders, whatever their status", fmt.Sprint(written, err), fmt.Sprint(stock, " <nil>"))
	var told []string
	for user, orders := range report.Orders {
		for range orders {
			told = append(told, user)
		}
	}
	bought := buyers(t, rows, sale)
	slices.Sort(told)
	slices.Sort(bought)
	if !slices.Equal(told, bought) || len(slices.Compact(bought)) != stock {
		t.Errorf("%d users were told of an order and %d have one", len(told), len(bought))
	}
	audit := s.audit(sale)
	want(t, "dead letters", audit.Broker.Dead, int64(0))
	succeed(t, "verify", sale, "--url", s.url)
	orders, _ = b.queues(others)
	want(t, "members of the queue in the end", fmt.Sprint(orders.members), "[0 1 2]")
	if orders.leader < 0 { // the one that was away may have been elected again
		t.Error("the queue has no leader in the end")
	}

	stood, went := watch.longest(lost, returning)
	grabbed, err := countOf(rows, fmt.Sprintf("SELECT COUNT(*) FROM orders WHERE created_at BETWEEN %d AND %d", stood.UnixMilli(), went.UnixMilli()))
	if err != nil {
		t.Error(err)
	}
	gap := func(from, to time.Time) time.Duration { return to.Sub(from).Round(time.Millisecond) }
	t.Logf("no order was written for %s around the loss; %d were bought meanwhile", gap(stood, went), grabbed)
	t.Logf("the longest time without a new row before the loss: %s; from the return of the node on, which took %s: %s",
		gap(watch.longest(time.Time{}, lost.Add(-time.Second))), gap(returning, returned), gap(watch.longest(returning, time.Now())))
	t.Logf("shoppers: %v, reconnects %d, refused %d, failures %v, cut off %v; a grab was answered after %s, its order confirmed after %s",
		report.Results, report.Reconnects, report.Refused, report.Failures, report.Cut, spread(report.Grab), spread(report.Confirm))
}

// spread is how a time varied.
func spread(l *latency) string {
	if l == nil {
		return "never"
	}
	return fmt.Sprintf("%.0f ms (median), %.0f ms (p99), %.0f ms (most)", l.P50, l.P99, l.Max)
}

// countOf is the number that a query says.
func countOf(db *sql.DB, query string) (n int64, err error) {
	err = db.QueryRow(query).Scan(&n)
	return n, err
}
