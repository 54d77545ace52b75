package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/queue"
)

func TestADryRunWritesNothing(t *testing.T) {
	t.Parallel()
	lost := func(b *bench) { delete(b.line.sales, "solo") }
	sold := func(b *bench) {
		lost(b)
		b.store.orders = []queue.Order{{ID: annsPaid, Sale: "solo", Item: queue.MainItem, Qty: 3, Status: queue.Paid}}
	}
	unknown := func(b *bench) {
		lost(b)
		delete(b.store.sales, "solo")
		delete(b.snaps, "solo")
	}
	later := strings.Replace(saleFile(5), "11:59:00", "12:30:00", 1)
	for name, tc := range map[string]struct {
		setUp  func(*bench)
		file   string
		query  string
		status int
		says   string
	}{
		"what can be done":       {func(*bench) {}, saleFile(8), "true", 200, `"stock":8`},
		"what would be left":     {func(*bench) {}, saleFile(8), "true", 200, `"left":8`},
		"a new sale":             {unknown, later, "true", 200, `"state":"lobby"`},
		"an end that has passed": {func(*bench) {}, strings.Replace(saleFile(5), "13:00:00", "11:59:30", 1), "true", 200, `"state":"closed"`},
		"what Redis refuses": {func(b *bench) {
			b.line.apply = func(queue.Sale) error { return &queue.Error{Code: queue.Conflict, Message: "it is too late"} }
		}, saleFile(8), "true", 409, "too late"},
		"a file that is none":              {func(*bench) {}, saleFile(-1), "true", 422, "stock"},
		"a sale that Redis lost":           {lost, saleFile(8), "true", 200, `"stock":8`},
		"a lost sale below what was sold":  {sold, saleFile(2), "true", 409, "the 3 units that were sold"},
		"a lost sale at what was sold":     {sold, strings.Replace(saleFile(3), `"items"`, `"limit":1,"items"`, 1), "true", 200, `"stock":3`},
		"a lost sale that opened already":  {lost, later, "true", 409, "opens_at"},
		"a word that is neither":           {func(*bench) {}, saleFile(8), "yes", 422, "dry_run"},
		"no word":                          {func(*bench) {}, saleFile(8), "", 422, "dry_run"},
		"one word and another":             {func(*bench) {}, saleFile(8), "false&dry_run=true", 422, "2 times"},
		"a mistyped name":                  {func(*bench) {}, saleFile(8), "false&dryrun=true", 422, "dryrun"},
		"a query that is none":             {func(*bench) {}, saleFile(8), "true;x", 400, "query"},
		"a lottery where none can be held": {func(*bench) {}, strings.Replace(saleFile(5), `"items"`, `"line":{"order":"lottery"},"items"`, 1), "true", 422, "lotteries"},
		"another sale's file":              {func(*bench) {}, strings.Replace(saleFile(5), "solo", "duo", 1), "true", 422, "duo"},
		"a database that is down":          {func(b *bench) { b.store.fail = errDown }, saleFile(8), "true", 503, "down"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &memoryLog{}
			b := newBench(t, func(o *Options) { o.AuditLog = log })
			tc.setUp(b)
			writes := b.journal()
			a := b.send(http.MethodPut, "/api/v1/admin/sales/solo?dry_run="+tc.query, tc.file, b.asAdmin()...)
			if a.status != tc.status || !strings.Contains(string(a.body), tc.says) {
				t.Errorf("got %d %s, want %d about %s", a.status, a.body, tc.status, tc.says)
			}
			if len(*writes) > 0 || len(log.changes) > 0 {
				t.Errorf("wrote %v and logged %v", *writes, log.changes)
			}
		})
	}
	b := newBench(t, nil)
	writes := b.journal()
	if a := b.send(http.MethodPut, "/api/v1/admin/sales/solo?dry_run=false", saleFile(8), b.asAdmin()...); a.status != http.StatusOK || len(*writes) == 0 {
		t.Errorf("no dry run: got %d %s after %v", a.status, a.body, *writes)
	}
}

// What a dry run says on a real Redis is what applying then does.
func TestADryRunSaysWhatApplyingDoes(t *testing.T) {
	t.Parallel()
	write := func(stock, limit int) func(id string) string {
		return func(id string) string {
			return fmt.Sprintf(`{"id":%q,"items":[{"stock":%d}],"opens_at":"+0s","closes_at":"+1h","limit":%d,"line":{"order":"off"}}`, id, stock, limit)
		}
	}
	s := newShop(t, write(5, 1))
	s.must(http.StatusOK, http.MethodPost, "/api/v1/seckill/"+s.sale, "", s.as("ann"))
	s.must(http.StatusOK, http.MethodPost, "/api/v1/seckill/"+s.sale, "", s.as("bob"))
	s.until(func() bool { return s.watch.Snapshot().Units() == 3 })
	path := "/api/v1/admin/sales/" + s.sale
	for _, tc := range []struct {
		stock, limit, status int
		says                 string
	}{
		{1, 1, http.StatusConflict, "the 2 units that were sold"},
		{5, 2, http.StatusConflict, "limit cannot change any more"},
		{2, 1, http.StatusOK, "left:0"},
		{9, 1, http.StatusOK, "left:7"},
	} {
		before := s.must(http.StatusOK, http.MethodGet, path, "", s.asAdmin())
		status, dry, _ := s.send(http.MethodPut, path+"?dry_run=true", write(tc.stock, tc.limit)(s.sale), s.asAdmin())
		if status != tc.status || !containsText(dry, tc.says) {
			t.Errorf("stock %d, limit %d: the dry run says %d %v, want %d about %s", tc.stock, tc.limit, status, dry, tc.status, tc.says)
		}
		balance, err := s.line.Balance(t.Context(), s.sale)
		if err != nil || balance.Items[0].Total != int64(before["items"].([]any)[0].(map[string]any)["stock"].(float64)) {
			t.Errorf("after a dry run: %+v, %v", balance, err)
		}
		if diff := cmp.Diff(before, s.must(http.StatusOK, http.MethodGet, path, "", s.asAdmin())); diff != "" {
			t.Errorf("a dry run changed (-before +after):\n%s", diff)
		}
		if status, fields, _ := s.send(http.MethodPut, path, write(tc.stock, tc.limit)(s.sale), s.asAdmin()); status != tc.status {
			t.Errorf("stock %d, limit %d: applying says %d %v", tc.stock, tc.limit, status, fields)
		}
		if tc.status == http.StatusOK {
			s.until(func() bool {
				return s.watch.Snapshot().Units() == int64(tc.stock)-2 && s.watch.Snapshot().Sale.Units() == int64(tc.stock)
			})
		}
	}
	if sales, err := s.line.Sales(t.Context()); err != nil {
		t.Error(err)
	} else {
		s.must(http.StatusOK, http.MethodPut, "/api/v1/admin/sales/"+s.sale+"-new?dry_run=true", write(5, 1)(s.sale+"-new"), s.asAdmin())
		s.must(http.StatusNotFound, http.MethodGet, "/api/v1/admin/sales/"+s.sale+"-new", "", s.asAdmin())
		again, _ := s.line.Sales(t.Context())
		for _, id := range again {
			if id == s.sale+"-new" {
				t.Errorf("a dry run has listed a sale: %v, before %v", again, sales)
			}
		}
	}
}
