package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/queue"
)

// fieldsOf are the fields of an answer that must be one of 200.
func (b *bench) fieldsOf(a answer) map[string]any {
	b.Helper()
	var fields map[string]any
	if err := json.Unmarshal(a.body, &fields); err != nil || a.status != http.StatusOK {
		b.Fatalf("got %d %s", a.status, a.body)
	}
	if a.header.Get("Cache-Control") != "no-store" {
		b.Errorf("Cache-Control: %s", a.header.Get("Cache-Control"))
	}
	return fields
}

func TestAnOperatorLearnsAboutTheNode(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *Options) {
		o.Node, o.Version, o.BrokerUI = "north", "v1", "https://rabbit.example"
		o.UserLimit, o.NodeLimit = queue.Rate{N: 20, Per: time.Second}, queue.Rate{N: 3, Per: 10 * time.Second}
		o.WebhookSecrets = [][]byte{[]byte("hook")}
	})
	got := b.fieldsOf(b.send(http.MethodGet, "/api/v1/admin/about", "", b.asAdmin()...))
	want := map[string]any{
		"node": "north", "version": "v1", "broker_ui_url": "https://rabbit.example", "payment": "provider",
		"limits": map[string]any{"user": "20/s", "address": "", "node": "3/10s"}, "time": float64(testNow().UnixMilli()),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b = newBench(t, nil)
	got = b.fieldsOf(b.send(http.MethodGet, "/api/v1/admin/about", "", b.asAdmin()...))
	if _, there := got["broker_ui_url"]; there || got["payment"] != "demo" {
		t.Errorf("got %v", got)
	}
}

// withOrders gives the sale solo orders, one of each status in turn.
func (b *bench) withOrders(n int) {
	for i := range n {
		status := []queue.OrderStatus{queue.Confirmed, queue.Paid, queue.Cancelled}[i%3]
		o := queue.Order{
			ID: fmt.Sprintf("01938f3e-0000-7000-8000-%012x", i), Sale: "solo", Item: queue.MainItem, User: fmt.Sprint("user-", i), Qty: 1,
			Status: status, CreatedAt: 1000 + int64(i),
		}
		if status == queue.Paid {
			o.PayBy, o.PaidAt = 5000, 4000
		}
		b.store.orders = append(b.store.orders, o)
	}
}

func TestOrdersAreListedPageByPage(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.withOrders(120)
	var seen []string
	for next := ""; ; {
		page := b.fieldsOf(b.send(http.MethodGet, "/api/v1/admin/sales/solo/orders?before="+next, "", b.asAdmin()...))
		for _, order := range page["orders"].([]any) {
			seen = append(seen, order.(map[string]any)["id"].(string))
		}
		if next = page["next"].(string); next == "" {
			break
		}
		if len(seen)%50 != 0 || next != seen[len(seen)-1] {
			t.Fatalf("after %d orders comes what is before %s", len(seen), next)
		}
	}
	for i, id := range seen {
		if want := b.store.orders[119-i].ID; id != want {
			t.Fatalf("order %d is %s, want %s", i, id, want)
		}
	}
	if len(seen) != 120 {
		t.Errorf("%d orders", len(seen))
	}
	page := b.fieldsOf(b.send(http.MethodGet, "/api/v1/admin/sales/solo/orders?status=paid&q=user-1&limit=2", "", b.asAdmin()...))
	orders := page["orders"].([]any)
	if len(orders) != 2 || page["next"] == "" {
		t.Fatalf("got %v", page)
	}
	for _, order := range orders {
		if o := order.(map[string]any); o["status"] != "paid" || !strings.HasPrefix(o["user"].(string), "user-1") || o["pay_by"] != 5000.0 || o["paid_at"] != 4000.0 {
			t.Errorf("got %v", o)
		}
	}
}

func TestWhatCannotBeAskedIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *Options) { o.AuditLog = &memoryLog{} })
	for path, tc := range map[string]struct {
		status int
		code   queue.Code
		says   string
	}{
		"/sales/solo/orders?limit=0":                               {422, queue.Invalid, "from 1 to 200"},
		"/sales/solo/orders?limit=201":                             {422, queue.Invalid, "from 1 to 200"},
		"/sales/solo/orders?limit=many":                            {422, queue.Invalid, `"many"`},
		"/sales/solo/orders?status=lost":                           {422, queue.Invalid, "confirmed, paid"},
		"/sales/solo/orders?before=1":                              {422, queue.Invalid, "before"},
		"/sales/solo/orders?q=" + url.QueryEscape("a\x00"):         {422, queue.Invalid, "q must"},
		"/sales/solo/orders?q=" + url.QueryEscape("\xff"):          {422, queue.Invalid, "q must"},
		"/sales/solo/orders?q=" + strings.Repeat("x", maxSearch+1): {422, queue.Invalid, "128 bytes"},
		"/sales/nowhere/orders":                                    {404, queue.NoSuchSale, ""},
		"/sales/No/orders":                                         {404, queue.NoSuchSale, "No"},
		"/sales/nowhere/orders.csv":                                {404, queue.NoSuchSale, ""},
		"/sales/No/orders.csv":                                     {404, queue.NoSuchSale, ""},
		"/sales/nowhere/live":                                      {404, queue.NoSuchSale, ""},
		"/sales/No/live":                                           {404, queue.NoSuchSale, ""},
		"/sales/solo/orders?q=%zz":                                 {400, queue.BadRequest, "query"},
		"/sales/solo/orders?limit=5;q=a":                           {400, queue.BadRequest, "query"},
		"/sales/solo/orders?Status=paid":                           {422, queue.Invalid, `"Status" cannot`},
		"/sales/solo/orders?status=paid&status=confirmed":          {422, queue.Invalid, "status is there 2 times"},
		"/sales/solo/orders.csv?q=a":                               {422, queue.Invalid, "no parameters"},
		"/audit-log?q=a":                                           {422, queue.Invalid, "sale, before, limit"},
		"/audit-log?limit=0":                                       {422, queue.Invalid, "from 1 to 200"},
		"/audit-log?before=0":                                      {422, queue.Invalid, "before"},
		"/audit-log?before=x":                                      {422, queue.Invalid, "before"},
		"/audit-log?sale=nowhere":                                  {404, queue.NoSuchSale, ""},
		"/audit-log?sale=No":                                       {404, queue.NoSuchSale, ""},
	} {
		a := b.send(http.MethodGet, "/api/v1/admin"+path, "", b.asAdmin()...)
		b.mustFail(a, tc.status, tc.code)
		if detail, _ := a.field(t, "detail").(string); !strings.Contains(detail, tc.says) {
			t.Errorf("%s: says %q, want it to say %q", path, detail, tc.says)
		}
	}
	b.store.fail = errors.New("refused")
	for _, path := range []string{"/sales/solo/orders", "/sales/solo/orders.csv", "/audit-log?sale=solo"} {
		b.mustFail(b.send(http.MethodGet, "/api/v1/admin"+path, "", b.asAdmin()...), http.StatusServiceUnavailable, queue.Unavailable)
	}
	b = newBench(t, nil)
	b.mustFail(b.send(http.MethodGet, "/api/v1/admin/audit-log", "", b.asAdmin()...), http.StatusServiceUnavailable, queue.Unavailable)
}

func TestTheAuditLogIsReadPageByPage(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *Options) { o.AuditLog = &memoryLog{} })
	delete(b.line.sales, "solo")
	delete(b.store.sales, "solo")
	b.send(http.MethodPut, "/api/v1/admin/sales/solo", saleFile(5), b.asAdmin()...)
	b.send(http.MethodPut, "/api/v1/admin/sales/solo", saleFile(8), b.asAdmin()...)
	b.send(http.MethodPost, "/api/v1/admin/sales/phone-x/pause", "", b.asAdmin()...)
	stockOf := func(sale any) any {
		if sale == nil {
			return nil
		}
		return sale.(map[string]any)["items"].([]any)[0].(map[string]any)["stock"]
	}
	read := func(query string) (entries []any, next any) {
		t.Helper()
		page := b.fieldsOf(b.send(http.MethodGet, "/api/v1/admin/audit-log"+query, "", b.asAdmin()...))
		return page["entries"].([]any), page["next"]
	}
	first, next := read("?limit=2")
	if len(first) != 2 || next != 2.0 || first[0].(map[string]any)["action"] != "pause" {
		t.Fatalf("got %v, next %v", first, next)
	}
	second := first[1].(map[string]any)
	if second["sale"] != "solo" || second["who"] != "admin" || second["at"] != float64(testNow().UnixMilli()) ||
		stockOf(second["before"]) != 5.0 || stockOf(second["after"]) != 8.0 {
		t.Errorf("got %v", second)
	}
	rest, next := read("?limit=2&before=2")
	if len(rest) != 1 || next != 0.0 || rest[0].(map[string]any)["before"] != nil || stockOf(rest[0].(map[string]any)["after"]) != 5.0 {
		t.Errorf("got %v, next %v", rest, next)
	}
	if mine, next := read("?sale=phone-x"); len(mine) != 1 || next != 0.0 {
		t.Errorf("got %v, next %v", mine, next)
	}
	if none, next := read("?before=1"); len(none) != 0 || next != 0.0 {
		t.Errorf("got %v, next %v", none, next)
	}
}
