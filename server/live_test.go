package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"sluice/queue"
)

// These tests speak HTTP to a server on a real Redis. Only the database is in memory.

// watched are the snapshots of one sale, as its watcher reads them.
type watched struct {
	sale  string
	watch *queue.Watcher
}

func (w watched) Snapshot(sale string) *queue.Snapshot {
	if sale != w.sale {
		return nil
	}
	return w.watch.Snapshot()
}
func (w watched) All() []*queue.Snapshot {
	if snap := w.watch.Snapshot(); snap != nil {
		return []*queue.Snapshot{snap}
	}
	return nil
}
func (w watched) Kick(string) { w.watch.Kick() }

// shop is a server on a real Redis with one sale.
type shop struct {
	*testing.T
	sale  string
	store *fakeStore
	line  *queue.Queue
	watch *queue.Watcher
	url   string
}

// newShop starts one and applies the sale that file makes of its id.
func newShop(t *testing.T, file func(id string) string) *shop {
	t.Helper()
	url := testRedis(t)
	rdb, err := queue.Connect(url, 16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	line := queue.New(rdb, queue.Options{UserLimit: queue.Rate{N: 20, Per: time.Minute}})
	s := &shop{
		T: t, sale: "t-" + uuid.NewString(), line: line,
		store: &fakeStore{sales: map[string]queue.Sale{}},
	}
	s.watch = queue.NewWatcher(line, s.sale, nil)
	server, err := New(Options{
		Queue: line, Orders: s.store, Sales: s.store, Snapshots: watched{s.sale, s.watch},
		Settings: Settings{Secrets: [][]byte{testSecret()}, AdminToken: testAdminToken}, Auth: []string{"hmac"},
	})
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(server.Handler())
	t.Cleanup(site.Close)
	s.url = site.URL
	s.must(http.StatusOK, http.MethodPut, "/api/v1/admin/sales/"+s.sale, file(s.sale), s.asAdmin())

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.watch.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		keys, err := rdb.Keys(context.Background(), "sluice:{"+s.sale+"}:*").Result()
		if err == nil && len(keys) > 0 {
			rdb.Del(context.Background(), keys...)
		}
		rdb.SRem(context.Background(), "sluice:sales", s.sale)
	})
	s.until(func() bool { return s.watch.Snapshot() != nil })
	return s
}

// until polls until done, and fails the test when that takes too long.
func (s *shop) until(done func() bool) {
	s.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); {
		if time.Now().After(deadline) {
			s.Fatal("what was waited for did not come")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (s *shop) asAdmin() http.Header {
	return http.Header{"Authorization": {"Bearer " + testAdminToken}}
}

// user is one of that name who is in no other test: some limits are beside those of a sale.
func (s *shop) user(name string) string { return name + "@" + s.sale }

func (s *shop) as(name string) http.Header {
	user := s.user(name)
	return http.Header{headerUser: {user}, headerToken: {MintHMAC(testSecret(), user, time.Now().Add(time.Hour))}}
}

// send makes a request and returns the status and the fields of the answer. It may be called from any goroutine.
func (s *shop) send(method, path, body string, header http.Header) (int, map[string]any, http.Header) {
	req, err := http.NewRequestWithContext(context.Background(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Error(err)
		return 0, nil, nil
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Error(err)
		return 0, nil, nil
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Error(err)
	}
	var fields map[string]any
	if len(data) > 0 {
		if err := json.Unmarshal(data, &fields); err != nil {
			s.Errorf("%s %s: %v: %s", method, path, err, data)
		}
	}
	return resp.StatusCode, fields, resp.Header
}

// must is send, and checks the status.
func (s *shop) must(status int, method, path, body string, header http.Header) map[string]any {
	s.Helper()
	got, fields, _ := s.send(method, path, body, header)
	if got != status {
		s.Fatalf("%s %s: got %d %v, want %d", method, path, got, fields, status)
	}
	return fields
}

// file makes a sale file of one item.
func file(stock int, more string) func(id string) string {
	return func(id string) string {
		return fmt.Sprintf("id: %s\ntitle: { en: Phone, zh: 手机 }\nitems: [ { stock: %d } ]\nopens_at: \"+0s\"\ncloses_at: \"+1h\"\n%s\n", id, stock, more)
	}
}

func TestAHundredShoppersShareTenUnitsAndAllHearTheTruth(t *testing.T) {
	t.Parallel()
	s := newShop(t, file(10, "line: { order: off }"))
	results := make([]string, 100)
	orders := make([]any, 100)
	var group sync.WaitGroup
	for i := range results {
		group.Go(func() {
			status, fields, _ := s.send(http.MethodPost, "/api/v1/seckill/"+s.sale, "", s.as(fmt.Sprint("user-", i)))
			if status != http.StatusOK {
				s.Errorf("got %d %v", status, fields)
			}
			results[i], _ = fields["result"].(string)
			orders[i] = fields["order"]
		})
	}
	group.Wait()
	counts := map[string]int{}
	for i, result := range results {
		counts[result]++
		if (result == "success") != (orders[i] != nil) {
			t.Errorf("%s with order %v", result, orders[i])
		}
	}
	if counts["success"] != 10 || counts["sold_out"] != 90 {
		t.Errorf("got %v", counts)
	}
	balance, err := s.line.Balance(t.Context(), s.sale)
	if err != nil || balance.Items[0].Stock != 0 || balance.Items[0].Winners != 10 {
		t.Errorf("got %+v, %v", balance, err)
	}
	s.until(func() bool {
		_, view, _ := s.send(http.MethodGet, "/api/v1/sales/"+s.sale, "", http.Header{})
		return view["stock"] == "held"
	})
}

func TestARepeatedGrabTakesNothingAndFindsItsOrder(t *testing.T) {
	t.Parallel()
	s := newShop(t, file(10, "line: { order: off }"))
	path := "/api/v1/sales/" + s.sale + "/grab"
	first := s.must(http.StatusOK, http.MethodPost, path, `{"request_id":"r"}`, s.as("ann"))
	order, _ := first["order"].(map[string]any)
	if first["result"] != "success" || order["status"] != "reserved" || order["pay_by"] == nil {
		t.Fatalf("got %v", first)
	}
	for body, want := range map[string]string{`{"request_id":"r"}`: "success", `{"request_id":"other"}`: "already", ``: "already"} {
		again := s.must(http.StatusOK, http.MethodPost, path, body, s.as("ann"))
		if again["result"] != want || again["order"].(map[string]any)["id"] != order["id"] {
			t.Errorf("%s: got %v, want %s", body, again, want)
		}
	}
	found := s.must(http.StatusOK, http.MethodGet, "/api/v1/orders/"+order["id"].(string), "", s.as("ann"))
	if found["status"] != "reserved" || found["sale"] != s.sale {
		t.Errorf("got %v", found)
	}
	s.must(http.StatusNotFound, http.MethodGet, "/api/v1/orders/"+order["id"].(string), "", s.as("bob"))
	if list := s.must(http.StatusOK, http.MethodGet, "/api/v1/orders", "", s.as("ann")); len(list["orders"].([]any)) != 1 {
		t.Errorf("got %v", list)
	}
	balance, err := s.line.Balance(t.Context(), s.sale)
	if err != nil || balance.Items[0].Stock != 9 {
		t.Errorf("got %+v, %v", balance, err)
	}
	// Once the order was cancelled, its own request id finds it cancelled, and a new one buys again.
	row := queue.Order{
		ID: order["id"].(string), Sale: s.sale, Item: queue.MainItem, User: s.user("ann"), Qty: 1, RequestID: "r", Status: queue.Cancelled,
	}
	s.store.orders = append(s.store.orders, row)
	if released, err := s.line.Release(t.Context(), s.sale, []queue.Order{row}); err != nil || !released[0] {
		t.Fatalf("got %v, %v", released, err)
	}
	late := s.must(http.StatusOK, http.MethodPost, path, `{"request_id":"r"}`, s.as("ann"))
	if late["result"] != "success" || late["order"].(map[string]any)["status"] != "cancelled" {
		t.Errorf("got %v", late)
	}
	if next := s.must(http.StatusOK, http.MethodPost, path, "", s.as("ann")); next["result"] != "success" ||
		next["order"].(map[string]any)["id"] == order["id"] {
		t.Errorf("got %v", next)
	}
}

func TestAShopperGoesThroughTheLineByPolling(t *testing.T) {
	t.Parallel()
	s := newShop(t, file(1, "line: { order: fifo, active: 1, ratio: 1, rate: 50 }"))
	seat, grab := "/api/v1/sales/"+s.sale+"/seat", "/api/v1/sales/"+s.sale+"/grab"
	if early := s.must(http.StatusOK, http.MethodPost, grab, "", s.as("ann")); early["result"] != "no_turn" {
		t.Errorf("without a seat: got %v", early)
	}
	for _, user := range []string{"ann", "bob"} {
		state := s.must(http.StatusOK, http.MethodPost, seat, "", s.as(user))
		if token, _ := state["seat"].(string); token == "" || state["poll_after_ms"] == nil {
			t.Errorf("%s: got %v", user, state)
		}
	}
	await := func(user, kind string) {
		s.Helper()
		s.until(func() bool {
			status, state, _ := s.send(http.MethodGet, seat, "", s.as(user))
			return status == http.StatusOK && state["type"] == kind
		})
	}
	await("ann", "turn")
	state := s.must(http.StatusOK, http.MethodGet, seat, "", s.as("bob"))
	if state["type"] != "queued" || state["ahead"] != 0.0 || state["number"] != 2.0 {
		t.Errorf("bob: got %v", state)
	}
	if mine := s.must(http.StatusOK, http.MethodPost, grab, "", s.as("ann")); mine["result"] != "success" {
		t.Errorf("ann: got %v", mine)
	}
	await("ann", "order")
	s.must(http.StatusNoContent, http.MethodDelete, seat, "", s.as("bob"))
	s.must(http.StatusNoContent, http.MethodDelete, seat, "", s.as("bob"))
	if state := s.must(http.StatusOK, http.MethodGet, seat, "", s.as("bob")); state["seat"] != nil || state["type"] == "queued" {
		t.Errorf("bob, having left: got %v", state)
	}
}

func TestTheSharedLimitAnswersWithRealFigures(t *testing.T) {
	t.Parallel()
	s := newShop(t, file(1, "line: { order: off }"))
	for range 21 {
		status, fields, header := s.send(http.MethodPost, "/api/v1/seckill/"+s.sale, "", s.as("bot"))
		if status == http.StatusOK {
			continue
		}
		if status != http.StatusTooManyRequests || fields["code"] != "limited" || header.Get(headerLimit) != "20" || header.Get("Retry-After") == "" {
			t.Errorf("got %d %v %v", status, fields, header)
		}
		return
	}
	t.Error("21 grabs in a row met no limit of 20/m")
}

func TestAnOperatorDrivesASale(t *testing.T) {
	t.Parallel()
	s := newShop(t, func(id string) string {
		return fmt.Sprintf(`{"id":%q,"items":[{"stock":5}],"opens_at":"+30m","closes_at":"+1h","line":{"order":"off"}}`, id)
	})
	admin, grab := "/api/v1/admin/sales/"+s.sale, "/api/v1/sales/"+s.sale+"/grab"
	result := func(user string) any {
		s.Helper()
		return s.must(http.StatusOK, http.MethodPost, grab, "", s.as(user))["result"]
	}
	step := func(name, state string) {
		s.Helper()
		if view := s.must(http.StatusOK, http.MethodPost, admin+"/"+name, "", s.asAdmin()); view["state"] != state {
			t.Errorf("%s: got %v", name, view)
		}
	}
	if got := result("ann"); got != "not_open" {
		t.Errorf("before the opening: %v", got)
	}
	step("open", "open")
	if got := result("ann"); got != "success" {
		t.Errorf("opened: %v", got)
	}
	step("pause", "paused")
	if got := result("bob"); got != "not_open" {
		t.Errorf("paused: %v", got)
	}
	step("resume", "open")
	if got := result("bob"); got != "success" {
		t.Errorf("resumed: %v", got)
	}
	view := s.must(http.StatusOK, http.MethodGet, admin, "", s.asAdmin())
	stored, opened := s.store.sales[s.sale], view["opens_at"].(string)
	if stored.OpensAt.Format(time.RFC3339Nano) != opened || time.Until(stored.OpensAt) > 0 {
		t.Errorf("the database says it opened at %s, the API %s", stored.OpensAt, opened)
	}
	file := func(stock int) string {
		return fmt.Sprintf(`{"id":%q,"items":[{"stock":%d}],"opens_at":"+30m","closes_at":"+1h","line":{"order":"off"}}`, s.sale, stock)
	}
	for _, tc := range []struct{ stock, status int }{
		{2, http.StatusOK}, {1, http.StatusConflict}, {2, http.StatusOK}, {7, http.StatusOK}, {3, http.StatusOK},
	} {
		status, fields, _ := s.send(http.MethodPut, admin, file(tc.stock), s.asAdmin())
		if status != tc.status {
			t.Errorf("stock %d with 2 sold: got %d %v, want %d", tc.stock, status, fields, tc.status)
		}
		balance, err := s.line.Balance(t.Context(), s.sale)
		if err != nil || balance.Items[0].Total != s.store.sales[s.sale].Items[0].Stock ||
			balance.Items[0].Stock+balance.Items[0].Winners != balance.Items[0].Total {
			t.Errorf("after stock %d: got %+v, %v; the database has %v", tc.stock, balance, err, s.store.sales[s.sale].Items)
		}
	}
	step("close", "closed")
	if got := result("cat"); got != "not_open" {
		t.Errorf("closed: %v", got)
	}
	s.must(http.StatusConflict, http.MethodPost, admin+"/open", "", s.asAdmin())
}

func TestApplyingASaleThatRedisLostPutsItsOrdersBack(t *testing.T) {
	t.Parallel()
	s := newShop(t, file(3, "line: { order: off }"))
	path := "/api/v1/seckill/" + s.sale
	order := s.must(http.StatusOK, http.MethodPost, path, "", s.as("ann"))["order"].(map[string]any)
	s.store.orders = append(s.store.orders, queue.Order{
		ID: order["id"].(string), Sale: s.sale, Item: queue.MainItem, User: s.user("ann"), Qty: 1, RequestID: "x", Status: queue.Confirmed,
	})
	rdb, err := queue.Connect(testRedis(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	keys, err := rdb.Keys(t.Context(), "sluice:{"+s.sale+"}:*").Result()
	if err != nil || len(keys) == 0 {
		t.Fatalf("got %v, %v", keys, err)
	}
	if err := rdb.Del(t.Context(), keys...).Err(); err != nil {
		t.Fatal(err)
	}
	if status, fields, _ := s.send(http.MethodPost, path, "", s.as("bob")); status != http.StatusServiceUnavailable {
		t.Errorf("a grab in a sale that is lost: got %d %v", status, fields)
	}
	s.must(http.StatusOK, http.MethodPut, "/api/v1/admin/sales/"+s.sale, file(3, "line: { order: off }")(s.sale), s.asAdmin())
	balance, err := s.line.Balance(t.Context(), s.sale)
	if err != nil || balance.Items[0].Stock != 2 || balance.Items[0].Winners != 1 {
		t.Errorf("got %+v, %v", balance, err)
	}
	if again := s.must(http.StatusOK, http.MethodPost, path, "", s.as("ann")); again["result"] != "already" {
		t.Errorf("ann, who bought before the loss: got %v", again)
	}
}
