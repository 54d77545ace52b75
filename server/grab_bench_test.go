package server

import (
	"net/http/httptest"
	"strings"
	"testing"

	"sluice/queue"
)

// BenchmarkGrab is a grab over HTTP with everything behind the server faked: what it allocates is what the server does
// for it, and what the test makes of request and answer.
func BenchmarkGrab(b *testing.B) {
	sale, store := solo(), &fakeStore{sales: map[string]queue.Sale{}}
	order := queue.Order{ID: anOrder, Sale: sale.ID, Item: queue.MainItem, User: "ann", Qty: 1, Status: queue.Reserved, CreatedAt: 1}
	line := &fakeLine{grab: func(queue.GrabRequest) (queue.Grabbed, error) {
		return queue.Grabbed{Result: queue.Success, Order: &order}, nil
	}}
	server, err := newServer(Options{
		Orders: store, Sales: store, Snapshots: fakeSnapshots{sale.ID: openSnapshot(sale)}, Auth: []string{"jwt"}, Settings: Settings{Secrets: [][]byte{testSecret()}}, Now: testNow,
	}, line)
	if err != nil {
		b.Fatal(err)
	}
	token, err := mintUser(testSecret(), "ann")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		req := httptest.NewRequest("POST", "/api/v1/sales/solo/grab", strings.NewReader(`{"request_id":"r"}`))
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		if server.Handler().ServeHTTP(answer, req); answer.Code != 200 {
			b.Fatal(answer.Code, answer.Body)
		}
	}
}
