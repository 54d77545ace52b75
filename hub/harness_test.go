package hub

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(crowdURL); url != "" {
		os.Exit(crowd(url))
	}
	goleak.VerifyTestMain(m)
}

// patient bounds every wait of the tests. Nothing is asserted about how long something takes.
const patient = 20 * time.Second

// fakeClock is a clock that moves when told.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func newFakeClock() *fakeClock {
	return &fakeClock{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// recorder is a handler that tells what it was called with and fails the test when a call comes too many.
type recorder struct {
	t        testing.TB
	hello    chan string
	messages chan string
	closed   chan struct{}
	do       func(s *Session, msg string) // runs in Hello and Message when set

	mu      sync.Mutex
	running bool
	ended   bool
}

func newRecorder(t testing.TB) *recorder {
	return &recorder{t: t, hello: make(chan string, 1024), messages: make(chan string, 1024), closed: make(chan struct{})}
}

func (r *recorder) enter(what string) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running {
		r.t.Errorf("%s called while another call runs", what)
	}
	if r.ended {
		r.t.Errorf("%s called after Closed", what)
	}
	r.running = true
	return func() {
		r.mu.Lock()
		r.running = false
		r.mu.Unlock()
	}
}

func (r *recorder) Hello(s *Session, msg []byte) {
	defer r.enter("Hello")()
	r.hello <- string(msg)
	if r.do != nil {
		r.do(s, string(msg))
	}
}

func (r *recorder) Message(s *Session, msg []byte) {
	defer r.enter("Message")()
	r.messages <- string(msg)
	if r.do != nil {
		r.do(s, string(msg))
	}
}

func (r *recorder) Closed(*Session) {
	defer r.enter("Closed")()
	r.mu.Lock()
	first := !r.ended
	r.ended = true
	r.mu.Unlock()
	if first {
		close(r.closed)
	}
}

// site is a hub behind a real listener.
type site struct {
	t     testing.TB
	hub   *Hub
	clock *fakeClock
	url   string

	mu      sync.Mutex
	next    *recorder
	arrived chan *Session
}

func newSite(t testing.TB, opts Options) *site {
	t.Helper()
	s := &site{t: t, clock: newFakeClock(), arrived: make(chan *Session, 1)}
	opts.Now = s.clock.Now
	s.hub = New(opts)
	up := websocket.Upgrader{ReadBufferSize: ReadBufferSize, WriteBufferSize: WriteBufferSize, WriteBufferPool: new(sync.Pool)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := up.Upgrade(w, r, nil)
		if err != nil {
			t.Errorf("upgrade: %v", err)
			return
		}
		s.arrived <- s.hub.Accept(conn, s.next)
	}))
	s.url = "ws" + strings.TrimPrefix(srv.URL, "http")
	t.Cleanup(func() {
		s.hub.Close()
		srv.Close()
	})
	return s
}

// visit is a peer and the session that holds it.
type visit struct {
	*recorder
	peer    *websocket.Conn
	session *Session
}

// dial connects a peer. Changes to its recorder are made by prepare, before anything can call it.
func (s *site) dial(prepare ...func(*recorder)) *visit {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := newRecorder(s.t)
	for _, p := range prepare {
		p(r)
	}
	s.next = r
	peer, resp, err := websocket.DefaultDialer.Dial(s.url, nil)
	if err != nil {
		s.t.Fatalf("dial: %v", err)
	}
	resp.Body.Close()
	s.t.Cleanup(func() { peer.Close() })
	if err := peer.SetReadDeadline(time.Now().Add(patient)); err != nil {
		s.t.Fatal(err)
	}
	return &visit{recorder: r, peer: peer, session: await(s.t, s.arrived, "the session")}
}

// greet sends a hello and waits until the handler has it.
func (v *visit) greet() {
	v.t.Helper()
	v.say(`{"type":"hello"}`)
	await(v.t, v.hello, "hello")
}

func (v *visit) say(text string) {
	v.t.Helper()
	if err := v.peer.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		v.t.Fatalf("peer writes: %v", err)
	}
}

// hear returns the next message the peer receives.
func (v *visit) hear() string {
	v.t.Helper()
	_, msg, err := v.peer.ReadMessage()
	if err != nil {
		v.t.Fatalf("peer reads: %v", err)
	}
	return string(msg)
}

// ends reads until the connection ends and wants it closed with the code. It returns what was received before, and the
// reason.
func (v *visit) ends(code int) (msgs []string, reason string) {
	v.t.Helper()
	for {
		_, msg, err := v.peer.ReadMessage()
		if err == nil {
			msgs = append(msgs, string(msg))
			continue
		}
		closed := (*websocket.CloseError)(nil)
		if !errors.As(err, &closed) || closed.Code != code {
			v.t.Fatalf("connection ended with %v; want close code %d", err, code)
		}
		await(v.t, v.closed, "Closed")
		return msgs, closed.Text
	}
}

func await[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patient):
		t.Fatalf("waited too long for %s", what)
		panic("unreachable")
	}
}

// eventually polls for what has no channel to wait on.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patient); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited too long: %s", what)
		}
	}
}
