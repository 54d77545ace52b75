package server

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/queue"
)

const testAdminToken = "the admin token of this test"

var errDown = &queue.Error{Code: queue.Unavailable, Message: "down"}

// testSecret is the secret of a test's server.
func testSecret() []byte { return []byte("a secret of thirty-two bytes or so") }

// testNow is when tests take place.
func testNow() time.Time { return time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) }

// fakeLine is a line whose answers a test writes down. A function that is nil must not be called.
type fakeLine struct {
	join  func(queue.JoinRequest) (queue.Seat, error)
	look  func(sale, user string) (queue.Seat, error)
	leave func(sale, user string, number int64) error
	grab  func(queue.GrabRequest) (queue.Grabbed, error)
	allow func(user, address string) error // nil = all may pass
	left  *queue.Allowance                 // what Allow says is left
	apply func(queue.Sale) error
	step  func(name string, sale queue.Sale) (queue.Sale, error)
	audit *queue.AuditSummary
	nodes []queue.NodeReport
	each  func(func([]queue.DrawEntry) error) error // goes over the entries of a lottery; nil = there are none
	away  error                                     // of whatever an operator alone asks for, when set

	mu       sync.Mutex
	sales    map[string]queue.Sale
	lost     bool // the sale is here but not put right
	restored []string
	steps    []string
	log      func(string) // told of every write, in order
}

func (f *fakeLine) Join(_ context.Context, req queue.JoinRequest) (queue.Seat, error) {
	return f.join(req)
}
func (f *fakeLine) JoinLater(req queue.JoinRequest, _ time.Duration, then func(queue.Seat, error)) {
	then(f.join(req))
}
func (f *fakeLine) Look(_ context.Context, sale, user string) (queue.Seat, error) {
	return f.look(sale, user)
}
func (f *fakeLine) Leave(_ context.Context, sale, user string, number int64) error {
	return f.leave(sale, user, number)
}
func (f *fakeLine) Tell(context.Context, string, []queue.Presence) error { return nil }
func (f *fakeLine) Lease(context.Context, string, string, time.Duration) (bool, error) {
	return true, nil
}
func (f *fakeLine) Freeze(_ context.Context, draw queue.Draw) (queue.Draw, bool, error) {
	return draw, false, nil
}
func (f *fakeLine) Entries(_ context.Context, _ *queue.Draw, fn func([]queue.DrawEntry) error) error {
	if f.each == nil {
		return nil
	}
	return f.each(fn)
}
func (f *fakeLine) Draw(context.Context, queue.Draw, []byte) error             { return nil }
func (f *fakeLine) Reclaim(context.Context, string, int64, []queue.Seat) error { return nil }
func (f *fakeLine) Grab(_ context.Context, req queue.GrabRequest) (queue.Grabbed, error) {
	return f.grab(req)
}
func (f *fakeLine) Sale(_ context.Context, id string) (queue.Sale, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sale, ok := f.sales[id]
	if !ok {
		return queue.Sale{}, &queue.Error{Code: queue.NoSuchSale, Message: "there is no such sale"}
	}
	return sale, nil
}
func (f *fakeLine) Allow(_ context.Context, user, address string) (*queue.Allowance, error) {
	if f.allow == nil {
		return f.left, nil
	}
	return f.left, f.allow(user, address)
}
func (f *fakeLine) Apply(_ context.Context, sale queue.Sale) error {
	if f.apply != nil {
		if err := f.apply(sale); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sales[sale.ID] = sale
	f.told("redis", sale)
	return nil
}
func (f *fakeLine) Check(_ context.Context, sale queue.Sale) error {
	if f.apply != nil {
		return f.apply(sale)
	}
	return nil
}
func (f *fakeLine) OutboxLen(context.Context, string) (int64, error) { return 3, f.away }
func (f *fakeLine) LastAudit(context.Context, string) (*queue.AuditSummary, error) {
	return f.audit, f.away
}
func (f *fakeLine) ReportNode(context.Context, queue.NodeReport) error { return f.away }
func (f *fakeLine) ForgetNode(context.Context, string) error           { return f.away }
func (f *fakeLine) Nodes(context.Context) ([]queue.NodeReport, error)  { return f.nodes, f.away }
func (f *fakeLine) Open(ctx context.Context, id string) (queue.Sale, error) {
	return f.do(ctx, "open", id)
}
func (f *fakeLine) Pause(ctx context.Context, id string) (queue.Sale, error) {
	return f.do(ctx, "pause", id)
}
func (f *fakeLine) Resume(ctx context.Context, id string) (queue.Sale, error) {
	return f.do(ctx, "resume", id)
}
func (f *fakeLine) Close(ctx context.Context, id string) (queue.Sale, error) {
	return f.do(ctx, "close", id)
}
func (f *fakeLine) Recover(ctx context.Context, id string) error {
	_, err := f.do(ctx, "recover", id)
	return err
}
func (f *fakeLine) do(ctx context.Context, name, id string) (queue.Sale, error) {
	sale, err := f.Sale(ctx, id)
	if err != nil {
		return sale, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.steps = append(f.steps, name)
	if f.step == nil {
		return sale, nil
	}
	if sale, err = f.step(name, sale); err == nil {
		f.sales[id] = sale
	}
	return sale, err
}
func (f *fakeLine) Restore(_ context.Context, sale queue.Sale, _ queue.Reach, orders func(yield func([]queue.Order) error) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, here := f.sales[sale.ID]; !here {
		f.sales[sale.ID] = sale
	}
	f.lost = false
	f.told("rebuilt", sale)
	return orders(func(page []queue.Order) error {
		for _, order := range page {
			f.restored = append(f.restored, order.ID)
		}
		return nil
	})
}
func (f *fakeLine) Installed(_ context.Context, id string) (here, ready bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, here = f.sales[id]
	return here, here && !f.lost, nil
}
func (f *fakeLine) LookMany(context.Context, string, []string) ([]queue.Seat, error) {
	panic("nothing over HTTP is about many users")
}
func (f *fakeLine) told(where string, sale queue.Sale) {
	if f.log != nil {
		f.log(writeOf(where, sale))
	}
}

// writeOf is a write of a sale as tests compare it: where, and the total of each item.
func writeOf(where string, sale queue.Sale) string {
	text := where
	for _, item := range sale.Items {
		data, _ := json.Marshal(item.Stock)
		text += " " + item.ID + "=" + string(data)
	}
	return text
}

// fakeStore is a database in memory.
type fakeStore struct {
	mu     sync.Mutex
	sales  map[string]queue.Sale
	orders []queue.Order
	lists  int // calls of Sales

	archives map[string]queue.Archive // by id
	reach    queue.Reach
	fail     error // of every call, when set
	log      func(string)
}

func (f *fakeStore) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}
func (f *fakeStore) SaveSale(_ context.Context, sale queue.Sale) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	f.sales[sale.ID] = sale
	if f.log != nil {
		f.log(writeOf("database", sale))
	}
	return nil
}
func (f *fakeStore) Sales(context.Context) ([]queue.Sale, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists++
	var sales []queue.Sale
	for _, sale := range f.sales {
		sales = append(sales, sale)
	}
	return sales, f.fail
}
func (f *fakeStore) Archives(context.Context) ([]queue.Archive, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.archives)), f.fail
}
func (f *fakeStore) Archive(_ context.Context, id string) (*queue.Archive, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if archive, ok := f.archives[id]; ok {
		return &archive, f.fail
	}
	return nil, f.fail
}
func (f *fakeStore) Sale(_ context.Context, id string) (queue.Sale, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return queue.Sale{}, f.fail
	}
	sale, ok := f.sales[id]
	if !ok {
		return queue.Sale{}, &queue.Error{Code: queue.NoSuchSale, Message: "there is no such sale"}
	}
	return sale, nil
}
func (f *fakeStore) Reach(context.Context, string) (queue.Reach, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reach, f.fail
}
func (f *fakeStore) EachOrder(_ context.Context, sale string, page int, fn func([]queue.Order) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, order := range f.orders {
		if order.Sale == sale {
			if err := fn([]queue.Order{order}); err != nil {
				return err
			}
		}
	}
	return nil
}
func (f *fakeStore) Sold(_ context.Context, sale string) (map[string]int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sold := map[string]int64{}
	for _, order := range f.orders {
		if order.Sale == sale && order.Status.Live() {
			sold[order.Item] += order.Qty
		}
	}
	return sold, f.fail
}
func (f *fakeStore) FindOrders(_ context.Context, filter queue.OrderFilter) ([]queue.Order, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	orders := slices.DeleteFunc(slices.Clone(f.orders), func(o queue.Order) bool {
		return o.Sale != filter.Sale || filter.Status != "" && o.Status != filter.Status || filter.Before != "" && o.ID >= filter.Before ||
			!strings.HasPrefix(o.ID, filter.Begins) && !strings.HasPrefix(o.User, filter.Begins)
	})
	slices.SortFunc(orders, func(a, b queue.Order) int { return strings.Compare(b.ID, a.ID) })
	return orders[:min(len(orders), filter.Limit)], f.fail
}
func (f *fakeStore) Order(_ context.Context, id string) (queue.Order, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return queue.Order{}, f.fail
	}
	for _, order := range f.orders {
		if order.ID == id {
			return order, nil
		}
	}
	return queue.Order{}, &queue.Error{Code: queue.NoSuchOrder, Message: "there is no such order"}
}
func (f *fakeStore) OrdersOf(_ context.Context, user, sale string) ([]queue.Order, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.orders), func(o queue.Order) bool {
		return o.User != user || (sale != "" && o.Sale != sale)
	}), f.fail
}

// fakeSnapshots are the snapshots that a test set up.
type fakeSnapshots map[string]*queue.Snapshot

func (f fakeSnapshots) Snapshot(sale string) *queue.Snapshot { return f[sale] }
func (f fakeSnapshots) Kick(string)                          {}
func (f fakeSnapshots) All() []*queue.Snapshot {
	var all []*queue.Snapshot
	for _, snap := range f {
		all = append(all, snap)
	}
	return all
}

// phoneX is a sale of two items which is open at testNow.
func phoneX() queue.Sale {
	return queue.Sale{
		ID:       "phone-x",
		Title:    queue.Text{"en": "Phone X", "zh": "手机 X"},
		Items:    []queue.Item{{ID: "black", Stock: 600, Price: 299900}, {ID: "white", Stock: 400}},
		Currency: "CNY",
		OpensAt:  testNow().Add(-time.Minute),
		ClosesAt: testNow().Add(time.Hour),
		Lobby:    queue.Duration(30 * time.Minute),
		Limit:    2,
		Line:     queue.Line{Order: queue.FIFO, Rate: 500, Turn: queue.Duration(time.Minute)},
		Hold:     queue.Duration(15 * time.Minute),
	}
}

// solo is a sale of one item which is open at testNow.
func solo() queue.Sale {
	sale := phoneX()
	sale.ID, sale.Items, sale.Limit = "solo", []queue.Item{{ID: queue.MainItem, Stock: 5}}, 1
	return sale
}

func openSnapshot(sale queue.Sale) *queue.Snapshot {
	items := map[string]int64{}
	for _, item := range sale.Items {
		items[item.ID] = item.Stock
	}
	return &queue.Snapshot{
		Sale: &sale, At: testNow().UnixMilli(), State: queue.Open, Items: items, Stock: queue.Available, Issued: 17, Served: 10,
	}
}

// bench is a server with everything around it faked.
type bench struct {
	made bool // what is asked was made up, and is not held against the specification
	*testing.T
	line   *fakeLine
	store  *fakeStore
	snaps  fakeSnapshots
	server *Server
}

// newBench makes one with the sales phone-x and solo. change may change the settings.
func newBench(t *testing.T, change func(*Options)) *bench {
	t.Helper()
	phone, one := phoneX(), solo()
	b := &bench{
		T:     t,
		line:  &fakeLine{sales: map[string]queue.Sale{phone.ID: phone, one.ID: one}},
		store: &fakeStore{sales: map[string]queue.Sale{phone.ID: phone, one.ID: one}},
		snaps: fakeSnapshots{phone.ID: openSnapshot(phone), one.ID: openSnapshot(one)},
	}
	opts := Options{
		Orders: b.store, Sales: b.store, Snapshots: b.snaps,
		Settings: Settings{Secrets: [][]byte{testSecret()}, AdminToken: testAdminToken}, Auth: []string{"jwt", "hmac", "guest"}, Now: testNow,
	}
	if change != nil {
		change(&opts)
	}
	server, err := newServer(opts, b.line)
	if err != nil {
		t.Fatalf("make a server: %v", err)
	}
	b.server = server
	return b
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) field(t *testing.T, name string) any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(a.body, &fields); err != nil {
		t.Fatalf("the answer is no JSON object: %v: %s", err, a.body)
	}
	return fields[name]
}

// send makes a request; header lines alternate name and value.
func (b *bench) send(method, path, body string, header ...string) answer {
	b.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req := httptest.NewRequest(method, path, reader)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	b.server.Handler().ServeHTTP(rec, req)
	a := answer{rec.Code, rec.Header(), rec.Body.Bytes()}
	asked := []byte(body)
	if b.made {
		asked = nil
	}
	b.mustBeSpecified(req, asked, a)
	return a
}

// as is the header of a user.
func (b *bench) as(user string) []string {
	b.Helper()
	token, err := mintUser(testSecret(), user)
	if err != nil {
		b.Fatal(err)
	}
	return []string{"Authorization", "Bearer " + token}
}

// asAdmin is the header of the operator.
func (b *bench) asAdmin() []string { return []string{"Authorization", "Bearer " + testAdminToken} }

// mustFail checks that a is a problem of that status and code.
func (b *bench) mustFail(a answer, status int, code queue.Code) {
	b.Helper()
	if a.status != status || a.header.Get("Content-Type") != "application/problem+json" || a.field(b.T, "code") != string(code) {
		b.Errorf("got %d %s %s, want %d %s", a.status, a.header.Get("Content-Type"), a.body, status, code)
	}
}
