package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"
	"github.com/redis/go-redis/v9"

	"sluice/hub"
	"sluice/queue"
)

// These tests are real shoppers on real sockets, against nodes on a real Redis. Only the database is in memory.

// patient bounds every wait. Nothing is asserted about how long something takes.
const patient = 20 * time.Second

// fair is one sale and the nodes that serve it.
type fair struct {
	*testing.T
	sale  string
	redis string
	rdb   redis.UniversalClient
	line  *queue.Queue
	store *fakeStore
	main  *node
}

// node is one server with a hub of its own.
type node struct {
	*fair
	server *Server
	hub    *hub.Hub
	url    string
	stop   func() // ends its ticks, and waits until they have
}

// die ends the node without a word to the line or to its shoppers.
func (n *node) die() {
	n.stop()
	n.hub.Close()
}

// change is what a test sets otherwise.
type change struct {
	redis  string // "" = that of the fair
	queue  queue.Options
	server func(*Options)
}

// newFair starts a node and applies the sale that file makes of its id.
func newFair(t *testing.T, file func(id string) string, changes ...change) *fair {
	t.Helper()
	f := &fair{
		T: t, sale: "t-" + uuid.NewString(), redis: testRedis(t),
		store: &fakeStore{sales: map[string]queue.Sale{}},
	}
	var err error
	if f.rdb, err = queue.Connect(f.redis, 8); err != nil {
		t.Fatal(err)
	}
	f.line = queue.New(f.rdb, queue.Options{})
	t.Cleanup(func() {
		keys, err := f.rdb.Keys(context.Background(), "sluice:{"+f.sale+"}:*").Result()
		if err == nil && len(keys) > 0 {
			f.rdb.Del(context.Background(), keys...)
		}
		f.rdb.SRem(context.Background(), "sluice:sales", f.sale)
		f.rdb.Close()
	})
	f.main = f.node("main", changes...)
	f.apply(file)
	eventually(t, "the node has seen that the sale is ready", func() bool {
		snap := f.main.server.opts.Snapshots.Snapshot(f.sale)
		return snap != nil && snap.State != queue.Recovering
	})
	return f
}

// testRedis is a logical database that only the tests of this package use: a node gives turns in every sale of its
// database, and the tests of other packages want to give theirs themselves.
func testRedis(t *testing.T) string {
	t.Helper()
	url := os.Getenv("SLUICE_TEST_REDIS")
	if url == "" {
		t.Fatal("SLUICE_TEST_REDIS is not set; run the tests with: make test")
	}
	return strings.TrimSuffix(url, "/") + "/15"
}

// apply installs the sale, or puts it right.
func (f *fair) apply(file func(id string) string) {
	f.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPut, f.main.url+"/api/v1/admin/sales/"+f.sale, strings.NewReader(file(f.sale)))
	if err != nil {
		f.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testAdminToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		f.Fatalf("apply the sale: got %d %s", resp.StatusCode, body)
	}
}

// node starts one more.
func (f *fair) node(name string, changes ...change) *node {
	f.Helper()
	c := change{redis: f.redis}
	for _, c = range changes {
		if c.redis == "" {
			c.redis = f.redis
		}
	}
	rdb, err := queue.Connect(c.redis, 8)
	if err != nil {
		f.Fatal(err)
	}
	n := &node{fair: f, hub: hub.New(hub.Options{ConnsPerKey: 8, MessagesPerSecond: -1})}
	opts := Options{
		Node: name, Queue: queue.New(rdb, c.queue), Hub: n.hub, Orders: f.store, Sales: f.store,
		Settings: Settings{Secrets: [][]byte{testSecret()}, AdminToken: testAdminToken, ConnsSeat: 8}, Auth: []string{"jwt"},
	}
	if c.server != nil {
		c.server(&opts)
	}
	if n.server, err = New(opts); err != nil {
		f.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); n.server.Run(ctx) }()
	n.stop = func() { stop(); <-done }
	site := httptest.NewServer(n.server.Handler())
	n.url = site.URL
	f.Cleanup(func() {
		n.hub.Close()
		site.Close()
		n.stop()
		rdb.Close()
	})
	return n
}

// must fails the test when a step of it does not work.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// eventually polls until done, and fails the test when that takes too long.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patient); !done(); {
		if time.Now().After(deadline) {
			t.Fatalf("it did not come to this: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// adopt is the writer: it has the order's row, and says so.
func (f *fair) adopt(order orderView, user string) {
	f.Helper()
	_, err := f.line.Adopt(f.Context(), f.sale, []queue.Order{f.rowOf(order, user, queue.Confirmed)})
	if err != nil {
		f.Fatal(err)
	}
}

// rowOf puts the order into the database.
func (f *fair) rowOf(order orderView, user string, status queue.OrderStatus) queue.Order {
	row := queue.Order{
		ID: order.ID, Sale: f.sale, Item: order.Item, User: user, Qty: order.Qty, RequestID: "r", Status: status,
		CreatedAt: order.CreatedAt, PayBy: order.PayBy,
	}
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	f.store.orders = slices.DeleteFunc(slices.Clone(f.store.orders), func(o queue.Order) bool { return o.ID == row.ID })
	f.store.orders = append(f.store.orders, row)
	return row
}

// taken is how many units were sold.
func (f *fair) taken() int64 {
	f.Helper()
	balance := must[queue.Balance](f.T)(f.line.Balance(f.Context(), f.sale))
	var n int64
	for _, item := range balance.Items {
		if item.Stock+item.Winners != item.Total {
			f.Errorf("the sale does not add up: %+v", item)
		}
		n += item.Winners
	}
	return n
}

// frame is any frame of the server.
type frame struct {
	Type       string          `json:"type"`
	At         int64           `json:"at"`
	ID         string          `json:"id"`
	Sale       saleView        `json:"sale"`
	User       string          `json:"user"`
	Seat       string          `json:"seat"`
	Number     int64           `json:"number"`
	Node       string          `json:"node"`
	Payment    string          `json:"payment"`
	Entries    int64           `json:"entries"`
	Ahead      int64           `json:"ahead"`
	Recalled   int64           `json:"recalled"`
	Reason     string          `json:"reason"`
	Total      int64           `json:"total"`
	Until      int64           `json:"until"`
	Limit      int64           `json:"limit"`
	Items      []itemStock     `json:"items"`
	Pass       string          `json:"pass"`
	RawOrder   json.RawMessage `json:"order"` // an order, or the order of the line
	Item       string          `json:"item"`
	Stock      string          `json:"stock"`
	Left       int64           `json:"left"`
	State      queue.State     `json:"state"`
	Why        string          `json:"why"`
	Code       queue.Code      `json:"code"`
	Msg        string          `json:"msg"`
	RetryAfter int64           `json:"retry_after_ms"`
	Reset      int64           `json:"reset"`

	text string
}

// order is the order of a success, already or order frame.
func (f frame) order(t *testing.T) orderView {
	t.Helper()
	var order orderView
	if err := json.Unmarshal(f.RawOrder, &order); err != nil {
		t.Fatalf("no order in %s: %v", f.text, err)
	}
	return order
}

// shopper is a user with the newest seat they were told of.
type shopper struct {
	*fair
	user  string
	token string
	seat  string

	mu     sync.Mutex
	number int64
	ahead  int64 // of number; -1 = not told yet
}

func (f *fair) shopper(user string) *shopper {
	f.Helper()
	token := must[string](f.T)(MintJWT(testSecret(), user, time.Now().Add(time.Hour)))
	return &shopper{fair: f, user: user, token: token, ahead: -1}
}

// tab is one connection. All that it receives is checked against what holds for every connection: welcome comes first,
// one state frame comes next and nothing between, and `ahead` of a number never rises.
type tab struct {
	*shopper
	conn    *websocket.Conn
	frames  chan frame
	stopped chan struct{}
	code    int // why it ended, when stopped is closed
	reason  string
	expects string // "hello", "welcome", "state" or "" for anything; the reader's
}

var stateFrames = []string{"lobby", "queued", "turn", "order", "closed", "sold_out", "missed", "none", "paused"}

// dial opens a connection without saying hello.
func (s *shopper) dial(n *node, header http.Header) *tab {
	s.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{subprotocol}, HandshakeTimeout: patient}
	conn, resp, err := dialer.DialContext(s.Context(), "ws"+strings.TrimPrefix(n.url, "http")+"/ws/v1/sales/"+s.sale, header)
	if err != nil {
		s.Fatalf("dial: %v", err)
	}
	resp.Body.Close()
	if conn.Subprotocol() != subprotocol {
		s.Errorf("the subprotocol is %q", conn.Subprotocol())
	}
	t := &tab{shopper: s, conn: conn, frames: make(chan frame, 10_000), stopped: make(chan struct{}), expects: "welcome"}
	s.Cleanup(func() { conn.Close(); <-t.stopped })
	go t.read()
	return t
}

// read is the tab's goroutine.
func (t *tab) read() {
	defer close(t.stopped)
	for {
		_, msg, err := t.conn.ReadMessage()
		if err != nil {
			var closed *websocket.CloseError
			if errors.As(err, &closed) {
				t.code, t.reason = closed.Code, closed.Text
				if err := specification(t.T).Ended(closed.Code); err != nil && closed.Code != websocket.CloseAbnormalClosure {
					t.Error(err)
				}
			}
			return
		}
		f := frame{text: string(msg)}
		if err := json.Unmarshal(msg, &f); err != nil {
			t.Errorf("%s: %v: %s", t.user, err, msg)
		}
		if err := specification(t.T).Told(msg); err != nil {
			t.Errorf("%s: %v", t.user, err)
		}
		t.check(f)
		t.frames <- f
	}
}

func (t *tab) check(f frame) {
	t.mu.Lock()
	defer t.mu.Unlock()
	answer := f.Type == "error" || f.Type == "limited"
	switch {
	case f.At == 0:
		t.Errorf("%s: no time in %s", t.user, f.text)
	case f.Type == "welcome":
		t.expects = "state"
		if f.Number != t.number {
			t.number, t.ahead = f.Number, -1
		}
		if f.Seat != "" {
			t.seat = f.Seat
		}
	case t.expects == "welcome" && !answer:
		t.Errorf("%s: got %s before welcome", t.user, f.text)
	case t.expects == "state" && !answer && f.ID == "":
		if !slices.Contains(stateFrames, f.Type) {
			t.Errorf("%s: got %s before a state frame", t.user, f.text)
		}
		t.expects = ""
	}
	if f.Type == "queued" && f.Number == t.number {
		if t.ahead >= 0 && f.Ahead > t.ahead {
			t.Errorf("%s, number %d: %d were ahead, and now %d", t.user, t.number, t.ahead, f.Ahead)
		}
		t.ahead = f.Ahead
	}
}

// say sends a message as it is.
func (t *tab) say(text string) {
	t.Helper()
	if err := t.conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		t.Errorf("%s: send: %v", t.user, err)
	}
}

// hello says it, with the seat token where the shopper is to resume.
func (t *tab) hello(seat string) {
	t.Helper()
	t.ask(fmt.Sprintf(`{"type":"hello","token":%q,"seat":%q}`, t.token, seat))
}

func (t *tab) grab(id string) {
	t.Helper()
	t.ask(fmt.Sprintf(`{"type":"grab","id":%q}`, id))
}

// ask says what a shopper may say.
func (t *tab) ask(text string) {
	t.Helper()
	if err := specification(t.T).Said([]byte(text)); err != nil {
		t.Error(err)
	}
	t.say(text)
}

// next is the next frame.
func (t *tab) next() frame {
	t.Helper()
	timer := time.NewTimer(patient)
	defer timer.Stop()
	select {
	case f := <-t.frames:
		return f
	default:
	}
	select {
	case f := <-t.frames:
		return f
	case <-t.stopped:
		select {
		case f := <-t.frames:
			return f
		default:
		}
		t.Fatalf("%s: the connection ended with %d %s instead of a frame", t.user, t.code, t.reason)
	case <-timer.C:
		t.Fatalf("%s: no frame came", t.user)
	}
	return frame{}
}

// await passes over frames until one of that type for which all hold.
func (t *tab) await(kind string, hold ...func(frame) bool) frame {
	t.Helper()
	var passed []string
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); {
		f := t.next()
		if f.Type == kind && !slices.ContainsFunc(hold, func(ok func(frame) bool) bool { return !ok(f) }) {
			return f
		}
		passed = append(passed, f.text)
	}
	t.Fatalf("%s: no such %s came, but %s", t.user, kind, strings.Join(passed[max(0, len(passed)-5):], " "))
	return frame{}
}

// expect takes the next frame, which must be of that type; positions that come meanwhile are passed over.
func (t *tab) expect(kind string) frame {
	t.Helper()
	for {
		f := t.next()
		if f.Type == kind {
			return f
		}
		if f.Type != "queued" && f.Type != "lobby" {
			t.Fatalf("%s: got %s, want %s", t.user, f.text, kind)
		}
	}
}

// quiet fails the test when anything but positions came since, by asking for something that is refused.
func (t *tab) quiet() {
	t.Helper()
	id := uuid.NewString()
	t.say(fmt.Sprintf(`{"type":"grab","id":%q,"qty":-1}`, id))
	if f := t.expect("error"); f.ID != id {
		t.Errorf("%s: got %s", t.user, f.text)
	}
}

// ends waits for the close frame and returns it.
func (t *tab) ends() (code int, reason string) {
	t.Helper()
	select {
	case <-t.stopped:
	case <-time.After(patient):
		t.Fatalf("%s: the connection was not closed", t.user)
	}
	return t.code, t.reason
}

// mustEnd waits for the close frame of that code, whose reason must say why.
func (t *tab) mustEnd(code int, why string) {
	t.Helper()
	if got, reason := t.ends(); got != code || !strings.Contains(reason, why) {
		t.Errorf("%s: closed with %d %q, want %d about %q", t.user, got, reason, code, why)
	}
}

// goAway ends the connection like somebody who goes away, and keeps the seat.
func (t *tab) goAway() {
	t.Helper()
	_ = t.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(patient))
	t.ends()
}

// enter says hello on a new connection and returns it with welcome and state frame.
func (s *shopper) enter(n *node) (t *tab, welcome, state frame) {
	s.Helper()
	return s.come(n, "")
}

// called is enter, and waits for the turn.
func (s *shopper) called(n *node) (t *tab, welcome, turn frame) {
	s.Helper()
	t, welcome, turn = s.enter(n)
	if turn.Type != "turn" {
		turn = t.await("turn")
	}
	return t, welcome, turn
}

// resume is enter with the seat token.
func (s *shopper) resume(n *node) (t *tab, welcome, state frame) {
	s.Helper()
	s.mu.Lock()
	seat := s.seat
	s.mu.Unlock()
	return s.come(n, seat)
}

func (s *shopper) come(n *node, seat string) (t *tab, welcome, state frame) {
	s.Helper()
	t = s.dial(n, nil)
	t.hello(seat)
	return t, t.await("welcome"), t.next()
}

// pipe is a way to Redis that can be cut.
type pipe struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	isCut bool
	conns map[net.Conn]bool
	group sync.WaitGroup
}

// newPipe makes one and returns it with the URL through it.
func newPipe(t *testing.T, target string) (*pipe, string) {
	t.Helper()
	u := must[*url.URL](t)(url.Parse(target))
	p := &pipe{listener: must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0")), to: u.Host, conns: map[net.Conn]bool{}}
	p.group.Go(p.serve)
	t.Cleanup(func() {
		p.listener.Close()
		p.cut()
		p.group.Wait()
	})
	u.Host = p.listener.Addr().String()
	return p, u.String()
}

func (p *pipe) serve() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.to)
		if err != nil || !p.add(near, far) {
			near.Close()
			if far != nil {
				far.Close()
			}
			continue
		}
		for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
			p.group.Go(func() {
				_, _ = io.Copy(way[0], way[1])
				way[0].Close()
				way[1].Close()
			})
		}
	}
}

func (p *pipe) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
	return !p.isCut
}

// cut ends all connections, and new ones at once.
func (p *pipe) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = true
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

func (p *pipe) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = false
}

// saleOf makes a sale file of one item, open now unless more says otherwise.
func saleOf(stock int, more ...string) func(id string) string {
	return func(id string) string {
		var text bytes.Buffer
		fmt.Fprintf(&text, "id: %s\nitems: [ { stock: %d } ]\ncloses_at: \"+2h\"\n", id, stock)
		if !slices.ContainsFunc(more, func(line string) bool { return strings.HasPrefix(line, "opens_at") }) {
			text.WriteString("opens_at: \"+0s\"\n")
		}
		for _, line := range more {
			text.WriteString(line + "\n")
		}
		return text.String()
	}
}
