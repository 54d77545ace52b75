package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/queue"
)

func TestThePublicViewTellsWhatAPageNeeds(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	snap := b.snaps["phone-x"]
	snap.Items["white"], snap.Rate = 0, 12.5
	a := b.send(http.MethodGet, "/api/v1/sales/phone-x", "")
	ms := func(d time.Duration) float64 { return float64(testNow().Add(d).UnixMilli()) }
	var got map[string]any
	if err := json.Unmarshal(a.body, &got); err != nil || a.status != http.StatusOK {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	delete(got, "title") // its form is package queue's
	want := map[string]any{
		"id": "phone-x", "currency": "CNY", "limit": 2.0, "hold": 900_000.0,
		"opens_at": ms(-time.Minute), "closes_at": ms(time.Hour), "lobby_at": ms(-31 * time.Minute), "server_time": ms(0),
		"state": "open", "stock": "available", "waiting": 7.0, "rate": 12.5, "line": map[string]any{"order": "fifo"},
		"items": []any{
			map[string]any{"id": "black", "price": 299900.0, "stock": 600.0, "total": 600.0},
			map[string]any{"id": "white", "stock": 0.0, "total": 400.0},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := a.header.Get("Cache-Control"); got != "public, max-age=1" {
		t.Errorf("Cache-Control: %s", got)
	}
}

func TestASaleIsSentAgainOnlyWhenItChanged(t *testing.T) {
	t.Parallel()
	now := testNow()
	b := newBench(t, func(o *Options) { o.Now = func() time.Time { return now } })
	for _, path := range []string{"/api/v1/sales/phone-x", "/api/v1/sales"} {
		first := b.send(http.MethodGet, path, "")
		etag := first.header.Get("ETag")
		now = now.Add(time.Second) // only the time is another one
		for _, header := range []string{etag, `"x", ` + etag, "*", etag[2:]} {
			a := b.send(http.MethodGet, path, "", "If-None-Match", header)
			if a.status != http.StatusNotModified || len(a.body) > 0 || a.header.Get("ETag") != etag {
				t.Errorf("%s for %s: got %d %s", path, header, a.status, a.body)
			}
		}
		if a := b.send(http.MethodGet, path, "", "If-None-Match", `W/"other"`); a.status != http.StatusOK {
			t.Errorf("%s: got %d for a tag of something else", path, a.status)
		}
		b.snaps["phone-x"].Issued++
		if a := b.send(http.MethodGet, path, "", "If-None-Match", etag); a.status != http.StatusOK || a.header.Get("ETag") == etag {
			t.Errorf("%s: got %d after a change", path, a.status)
		}
	}
}

func TestAnUnknownSaleIs404AndOneNotYetRead503(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.line.sales["new"] = phoneX()
	for _, path := range []string{"/api/v1/sales/nowhere", "/api/v1/sales/..", "/api/v1/sales/%20", "/api/v1/sales/UPPER"} {
		b.mustFail(b.send(http.MethodGet, path, ""), http.StatusNotFound, queue.NoSuchSale)
	}
	b.mustFail(b.send(http.MethodGet, "/api/v1/sales/new", ""), http.StatusServiceUnavailable, queue.Unavailable)
}

func TestASaleThatRedisLostIsNotCalledMissing(t *testing.T) {
	t.Parallel()
	now := testNow()
	b := newBench(t, func(o *Options) { o.Now = func() time.Time { return now } })
	clear(b.snaps)
	clear(b.line.sales)
	calls := []struct{ method, path string }{
		{http.MethodGet, "/api/v1/sales/%s"}, {http.MethodGet, "/api/v1/sales/%s/seat"}, {http.MethodPost, "/api/v1/sales/%s/seat"},
		{http.MethodDelete, "/api/v1/sales/%s/seat"}, {http.MethodPost, "/api/v1/sales/%s/grab"}, {http.MethodPost, "/api/v1/seckill/%s"},
	}
	for _, call := range calls {
		b.mustFail(b.send(call.method, fmt.Sprintf(call.path, "solo"), "", b.as("ann")...), http.StatusServiceUnavailable, queue.Unavailable)
		b.mustFail(b.send(call.method, fmt.Sprintf(call.path, "nowhere"), "", b.as("ann")...), http.StatusNotFound, queue.NoSuchSale)
	}
	b.mustFail(b.send(http.MethodPost, "/api/v1/admin/sales/solo/pause", "", b.asAdmin()...), http.StatusServiceUnavailable, queue.Unavailable)
	b.mustFail(b.send(http.MethodPost, "/api/v1/admin/sales/nowhere/pause", "", b.asAdmin()...), http.StatusNotFound, queue.NoSuchSale)

	// However many ask, the database is asked once a second.
	if b.store.lists != 1 {
		t.Errorf("the database was asked %d times", b.store.lists)
	}
	now = now.Add(catalogAge)
	b.store.fail = errors.New("dial tcp: refused")
	b.mustFail(b.send(http.MethodGet, "/api/v1/sales/nowhere", ""), http.StatusServiceUnavailable, queue.Unavailable)
}

func TestTheListHasAllSalesInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	var got struct {
		Sales []struct {
			ID string `json:"id"`
		} `json:"sales"`
	}
	if err := json.Unmarshal(b.send(http.MethodGet, "/api/v1/sales", "").body, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Sales) != 2 || got.Sales[0].ID != "phone-x" || got.Sales[1].ID != "solo" {
		t.Errorf("got %v", got)
	}
	clear(b.snaps)
	a := b.send(http.MethodGet, "/api/v1/sales", "")
	if sales, ok := a.field(t, "sales").([]any); !ok || len(sales) != 0 {
		t.Errorf("without sales: got %s", a.body)
	}
}
