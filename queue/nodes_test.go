package queue_test

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"sluice/queue"
)

// nodeOf is the report of a node, as its name finds it; other tests may have nodes on the same Redis.
func (l *line) nodeOf(name string) (queue.NodeReport, bool) {
	l.t.Helper()
	nodes, err := l.Nodes(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	if !slices.IsSortedFunc(nodes, func(a, b queue.NodeReport) int {
		if a.Node < b.Node {
			return -1
		}
		return 1
	}) {
		l.t.Errorf("the nodes are in no order: %+v", nodes)
	}
	i := slices.IndexFunc(nodes, func(n queue.NodeReport) bool { return n.Node == name })
	if i < 0 {
		return queue.NodeReport{}, false
	}
	return nodes[i], true
}

func TestNodesKnowOfOneAnotherAsLongAsTheyReport(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		north, south := saleID(), saleID()
		t.Cleanup(func() {
			for _, name := range []string{north, south} {
				_ = l.ForgetNode(context.Background(), name)
			}
		})
		if _, there := l.nodeOf(north); there {
			t.Fatal("a node is there before it has reported")
		}
		report := queue.NodeReport{
			Node: north, Started: 1, At: 2, Connections: 3, Limited: queue.NodeLimited{User: 4, Address: 5, Node: 6},
			Sales: map[string]queue.NodeSale{"phone": {Shoppers: 7, Grabs: map[string]int64{"success": 8, "failed": 9}}},
		}
		for range 2 {
			report.At++
			for _, name := range []string{north, south} {
				report.Node = name
				if err := l.ReportNode(t.Context(), report); err != nil {
					t.Fatal(err)
				}
			}
			report.Node = north
			if got, _ := l.nodeOf(north); !cmp.Equal(got, report) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(report, got))
			}
		}
		// One ends in order, the other one stops reporting.
		if err := l.ForgetNode(t.Context(), south); err != nil {
			t.Fatal(err)
		}
		if _, there := l.nodeOf(south); there {
			t.Error("a node that has ended is still there")
		}
		key := "sluice:{_nodes}:of:" + north
		if lasts := l.rdb.PTTL(t.Context(), key).Val(); lasts <= 0 || lasts > 10*time.Second {
			t.Errorf("a report lasts %s", lasts)
		}
		if l.embedded != nil {
			l.embedded.FastForward(10 * time.Second)
		} else if err := l.rdb.PExpire(t.Context(), key, 0).Err(); err != nil { // Redis will not be hurried otherwise
			t.Fatal(err)
		}
		if _, there := l.nodeOf(north); there {
			t.Error("a node whose report has expired is still there")
		}
		if l.rdb.SIsMember(t.Context(), "sluice:{_nodes}:names", north).Val() {
			t.Error("its name was not dropped")
		}
		if err := l.ReportNode(t.Context(), report); err != nil {
			t.Fatal(err)
		}
		if _, there := l.nodeOf(north); !there {
			t.Error("a node that reports again is not there")
		}
		// A node of another version may write what this one cannot read.
		l.rdb.Set(t.Context(), key, `{"connections":"many"}`, time.Minute)
		if _, there := l.nodeOf(north); there {
			t.Error("a report that cannot be read was")
		}
	})
}

// trips counts the round trips of a client.
type trips struct{ n atomic.Int64 }

func (c *trips) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

func (c *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmds)
	}
}

func TestAReportIsOneRoundTripHoweverManyShoppersThereAre(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		report := queue.NodeReport{Node: saleID(), Connections: 1_000_000, Sales: map[string]queue.NodeSale{}}
		for range 50 {
			report.Sales[saleID()] = queue.NodeSale{Shoppers: 20_000, Grabs: map[string]int64{"success": 1}}
		}
		t.Cleanup(func() { _ = l.ForgetNode(context.Background(), report.Node) })
		count := &trips{}
		l.rdb.AddHook(count)
		if err := l.ReportNode(t.Context(), report); err != nil { // it connects
			t.Fatal(err)
		}
		count.n.Store(0)
		if err := l.ReportNode(t.Context(), report); err != nil || count.n.Load() != 1 {
			t.Errorf("a report takes %d round trips, %v", count.n.Load(), err)
		}
		if size, _ := json.Marshal(report); len(size) > 10_000 {
			t.Errorf("a report of 50 sales has %d bytes", len(size))
		}
	})
}
