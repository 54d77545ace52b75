package server

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/queue"
)

func TestTheCSVHasEveryOrderAndNoFormula(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	users := map[string]string{ // and how they are written
		"ann":                 `ann`,
		"=1+1":                `'=1+1`,
		"+1":                  `'+1`,
		"-1":                  `'-1`,
		"@SUM(A1)":            `'@SUM(A1)`,
		"a=1":                 `a=1`,
		`says "hi", or`:       `says "hi", or`,
		"手机":                  "手机",
		`=HYPERLINK("x","y")`: `'=HYPERLINK("x","y")`,
	}
	want := [][]string{{"id", "sale", "item", "user", "qty", "status", "created_at", "pay_by", "paid_at"}}
	for user, written := range users {
		b.store.orders = append(b.store.orders, queue.Order{
			ID: annsPaid, Sale: "solo", Item: queue.MainItem, User: user, Qty: 2, Status: queue.Paid, CreatedAt: 1796097600123, PaidAt: 1796097601000,
		})
		want = append(want, []string{annsPaid, "solo", "main", written, "2", "paid", "2026-12-01T04:00:00.123Z", "", "2026-12-01T04:00:01.000Z"})
	}
	b.store.orders = append(b.store.orders, queue.Order{ID: bobsPaid, Sale: "other"})
	a := b.send(http.MethodGet, "/api/v1/admin/sales/solo/orders.csv", "", b.asAdmin()...)
	if a.status != http.StatusOK || a.header.Get("Content-Disposition") != `attachment; filename="solo-orders.csv"` ||
		a.header.Get("Content-Type") != "text/csv; charset=utf-8" || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("got %d %v", a.status, a.header)
	}
	got, err := csv.NewReader(strings.NewReader(string(a.body))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if lines := strings.Count(string(a.body), "\r\n"); lines != len(want) || strings.Count(string(a.body), "\n") != lines {
		t.Errorf("%d lines end as RFC 4180 wants:\n%q", lines, a.body)
	}
	for text, want := range map[string]string{"": "", "\tx": "'\tx", "\rx": "'\rx", " =x": "' =x", "a b;c": "a b;c",
		"a;=x;b": "a;'=x;b", `a;"=x;`: `a;'"=x;`, ";+x; -y": ";'+x;' -y", "a=x;b-c": "a=x;b-c",
		"＝1+1": "'＝1+1", "＋1": "'＋1", "－1": "'－1", "＠SUM(1)": "'＠SUM(1)", "a;＝x": "a;'＝x", "a＝x": "a＝x",
		"\u00a0=1": "'\u00a0=1", "\u3000＝1": "'\u3000＝1", "\ufeff=1": "'\ufeff=1", "\u200b=1": "'\u200b=1", "\u2028-1": "'\u2028-1"} {
		if got := cell(text); got != want {
			t.Errorf("%q is written %q, want %q", text, got, want)
		}
	}
	a = b.send(http.MethodGet, "/api/v1/admin/sales/phone-x/orders.csv", "", b.asAdmin()...)
	if a.status != http.StatusOK || string(a.body) != "id,sale,item,user,qty,status,created_at,pay_by,paid_at\r\n" {
		t.Errorf("without orders: got %d %q", a.status, a.body)
	}
}

// brokenStore fails after the first page.
type brokenStore struct{ *fakeStore }

func (s brokenStore) EachOrder(ctx context.Context, sale string, page int, fn func([]queue.Order) error) error {
	if err := fn([]queue.Order{{ID: annsPaid, Sale: sale}}); err != nil {
		return err
	}
	return errors.New("refused")
}

func TestHalfAFileDoesNotLookLikeAWholeOne(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *Options) { o.Sales = brokenStore{o.Sales.(*fakeStore)} })
	site := httptest.NewServer(b.server.Handler())
	defer site.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site.URL+"/api/v1/admin/sales/solo/orders.csv", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testAdminToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || !strings.Contains(string(body), annsPaid) || err == nil {
		t.Errorf("got %d %q, %v", resp.StatusCode, body, err)
	}
}
