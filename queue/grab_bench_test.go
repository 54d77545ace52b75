package queue_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"sluice/queue"
)

// BenchmarkGrab is a grab that succeeds, alone, on a real Redis: what it allocates is what the node does for it.
func BenchmarkGrab(b *testing.B) {
	url := os.Getenv("SLUICE_TEST_REDIS")
	if url == "" {
		b.Skip("SLUICE_TEST_REDIS is not set")
	}
	rdb := connect(b, url)
	defer rdb.Close()
	q := queue.New(rdb, queue.Options{})
	sale := queue.Sale{
		ID: saleID(), Items: []queue.Item{{ID: "main", Stock: 1_000_000_000}}, Limit: 1, Line: queue.Line{Order: queue.Off},
		OpensAt: time.Now().Add(-time.Second), ClosesAt: time.Now().Add(time.Hour),
	}
	if err := q.Restore(b.Context(), sale, queue.Reach{}, noOrders); err != nil {
		b.Fatal(err)
	}
	defer rdb.Del(b.Context(), rdb.Keys(b.Context(), "sluice:{"+sale.ID+"}:*").Val()...)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		g, err := q.Grab(b.Context(), queue.GrabRequest{Sale: sale.ID, User: strconv.Itoa(n), Item: "main", Qty: 1, RequestID: "first"})
		if err != nil || g.Result != queue.Success {
			b.Fatal(g.Result, err)
		}
	}
}
