package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/queue"
)

// The tests of the Store run over every kind of database, each test in a database of its own.

// eachStore runs a test over every kind of database.
func eachStore(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		s := openTest(t, url)
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		test(t, s)
	})
}

// eachDatabase runs a test over the URL of an empty database of every kind.
func eachDatabase(t *testing.T, test func(t *testing.T, url string)) {
	for name, create := range map[string]func(*testing.T) string{
		"mysql":    func(t *testing.T) string { return serverDatabase(t, "SLUICE_TEST_MYSQL", "mysql") },
		"postgres": func(t *testing.T) string { return serverDatabase(t, "SLUICE_TEST_POSTGRES", "postgres") },
		"sqlite":   func(t *testing.T) string { return "sqlite://" + filepath.Join(t.TempDir(), "orders.db") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, create(t))
		})
	}
}

// serverDatabase makes a database on a server, to be dropped after the test, and returns its URL. any is a database
// that every server of that kind has.
func serverDatabase(t *testing.T, variable, any string) string {
	t.Helper()
	server := os.Getenv(variable)
	if server == "" {
		t.Fatalf("%s is not set; run the tests with: make test", variable)
	}
	name := fmt.Sprintf("sluice_test_%016x", rand.Uint64())
	exec := func(ctx context.Context, statement string) {
		s, err := OpenStore(ctx, server+"/"+any, StoreOptions{Conns: 1})
		if err == nil {
			_, err = s.db.ExecContext(ctx, statement)
			_ = s.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	exec(t.Context(), "CREATE DATABASE "+name)
	t.Cleanup(func() { exec(context.Background(), "DROP DATABASE "+name) })
	return server + "/" + name
}

func openTest(t *testing.T, url string) *Store {
	t.Helper()
	s, err := OpenStore(t.Context(), url, StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// opening is a moment for sales and orders in tests. It has milliseconds that no clock in seconds would keep.
const opening = int64(1796097600123)

// sellOut is a sale with the given stock of the items "black", "white" and so on.
func sellOut(id string, limit int64, stock ...int64) queue.Sale {
	sale := queue.Sale{
		ID:       id,
		Title:    queue.Text{"en": "Phone X", "zh": "Phone X 限量"},
		OpensAt:  time.UnixMilli(opening).UTC(),
		ClosesAt: time.UnixMilli(opening).UTC().Add(time.Hour),
		Limit:    limit,
		Line:     queue.Line{Order: queue.FIFO, Rate: 500, Ratio: 2.5, Turn: queue.Duration(time.Minute)},
		Hold:     queue.Duration(15 * time.Minute),
	}
	for i, units := range stock {
		sale.Items = append(sale.Items, queue.Item{ID: []string{"black", "white", "green"}[i], Stock: units})
	}
	return sale
}

// grab is an order of one black unit as it comes out of the queue; i tells it apart from others, and puts it in order.
func grab(sale string, i int) queue.Order {
	return queue.Order{
		ID:        fmt.Sprintf("%s-%08d", sale, i),
		Sale:      sale,
		Item:      "black",
		User:      fmt.Sprintf("user-%d", i),
		Qty:       1,
		RequestID: fmt.Sprintf("request-%d", i),
		Status:    queue.Reserved,
		CreatedAt: opening + int64(i),
		PayBy:     opening + int64(i) + 900_000,
	}
}

func grabs(sale string, from, to int) []queue.Order {
	var orders []queue.Order
	for i := from; i < to; i++ {
		orders = append(orders, grab(sale, i))
	}
	return orders
}

func save(t *testing.T, s *Store, sale queue.Sale) {
	t.Helper()
	if err := s.SaveSale(t.Context(), sale); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, s *Store, orders ...queue.Order) []Written {
	t.Helper()
	written, err := s.WriteOrders(t.Context(), orders)
	if err != nil {
		t.Fatal(err)
	}
	return written
}

// accepted writes orders, from any goroutine, and returns how many were not rejected.
func accepted(t *testing.T, s *Store, orders []queue.Order) int64 {
	written, err := s.WriteOrders(t.Context(), orders)
	if err != nil {
		t.Error(err)
	}
	var n int64
	for _, w := range written {
		if w.Reason == "" {
			n++
		}
	}
	return n
}

// reasons are the reasons in what was written, one for each order.
func reasons(written []Written) []string {
	var list []string
	for _, w := range written {
		list = append(list, w.Reason)
	}
	return list
}

// wantSold checks that so many black units of a sale are sold, and that its books are sound.
func wantSold(t *testing.T, s *Store, sale string, sold int64) {
	t.Helper()
	audit, err := s.Audit(t.Context(), sale)
	if err != nil {
		t.Fatal(err)
	}
	if !audit.Sound() {
		t.Errorf("the books of sale %s are not sound: %+v", sale, audit)
	}
	for _, item := range audit.Items {
		if item.Item == "black" && item.Sold != sold {
			t.Errorf("sold %d units, want %d", item.Sold, sold)
		}
	}
}

func wantCode(t *testing.T, err error, code queue.Code) {
	t.Helper()
	if queue.CodeOf(err) != code {
		t.Errorf("error %v has the code %q, want %q", err, queue.CodeOf(err), code)
	}
}

func wantSame(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

// together runs fn n times at once and waits for all.
func together(n int, fn func(i int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { fn(i) })
	}
	group.Wait()
}
