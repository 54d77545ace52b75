package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		shipped.remove()
		os.Exit(code)
	}))
}

const (
	stubSecret = "a secret of the tests"
	stubSale   = "phone-x"
	patience   = 20 * time.Second // far beyond what any test needs; only a hang comes near
)

// object is a JSON object on the wire.
type object = map[string]any

// stub plays the server's part of the protocol, as the test tells it to.
type stub struct {
	*httptest.Server
	t    *testing.T
	play func(*stubVisit) // one connection, after its hello

	mu     sync.Mutex
	visits map[string]int // connections so far, by user
	audit  object
	mux    *http.ServeMux

	open sync.WaitGroup // connections whose play is not over
}

func newStub(t *testing.T, play func(*stubVisit)) *stub {
	t.Helper()
	s := &stub{t: t, play: play, visits: map[string]int{}, mux: http.NewServeMux()}
	s.mux.HandleFunc("GET /api/v1/sales/phone-x", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, 200, object{"id": stubSale}) })
	s.mux.HandleFunc("GET /ws/v1/sales/phone-x", s.socket)
	s.mux.HandleFunc("GET /api/v1/admin/sales/phone-x/audit", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer admin" {
			writeProblem(w, 401, object{"code": "unauthenticated", "detail": "no admin token"})
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		writeJSON(w, 200, s.audit)
	})
	s.setAudit(0)
	s.Server = httptest.NewServer(s.mux)
	t.Cleanup(s.Close)
	return s
}

// setAudit makes the audit say that so many of 100 units were sold.
func (s *stub) setAudit(sold int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.audit = auditOf(sold)
}

func auditOf(sold int) object {
	return object{
		"sale": stubSale, "at": time.Now().UnixMilli(), "balanced": true,
		"items": []object{{"item": "main", "total": 100, "stock": 100 - sold, "winners": sold, "sold": sold, "live": sold}},
		"redis": object{"balanced": true}, "database": object{"balanced": true},
		"unmatched": []object{}, "broker": object{"orders": 0, "dead": 0}, "problems": []string{},
	}
}

// socket reads the hello of a connection and lets the test play.
func (s *stub) socket(w http.ResponseWriter, r *http.Request) {
	s.open.Add(1)
	defer s.open.Done()
	upgrader := websocket.Upgrader{Subprotocols: []string{"sluice.v1"}}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		s.t.Errorf("upgrade: %v", err)
		return
	}
	defer ws.Close()
	if ws.Subprotocol() != "sluice.v1" {
		s.t.Errorf("subprotocol is %q", ws.Subprotocol())
	}
	v := &stubVisit{t: s.t, ws: ws}
	hello := v.read()
	if hello["type"] != "hello" {
		s.t.Errorf("the first frame is %v", hello)
		return
	}
	v.hello = hello
	token, _ := hello["token"].(string)
	claims := jwt.RegisteredClaims{}
	if _, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return []byte(stubSecret), nil }); err != nil {
		s.t.Errorf("token of hello: %v", err)
		return
	}
	v.user = claims.Subject
	s.mu.Lock()
	s.visits[v.user]++
	v.n = s.visits[v.user]
	s.mu.Unlock()
	s.play(v)
}

// visit count of a user.
func (s *stub) visitsOf(user string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.visits[user]
}

// stubVisit is the server's end of one connection.
type stubVisit struct {
	t     *testing.T
	ws    *websocket.Conn
	user  string
	n     int // which connection of the user this is, from 1
	hello object
}

// send sends a frame with the present time.
func (v *stubVisit) send(kind string, fields ...any) {
	frame := object{"type": kind, "at": time.Now().UnixMilli()}
	for i := 0; i < len(fields); i += 2 {
		frame[fields[i].(string)] = fields[i+1]
	}
	_ = v.ws.WriteJSON(frame) // a shopper who knows enough has gone, which the test sees by its outcome
}

// welcome sends what every connection begins with.
func (v *stubVisit) welcome(items ...string) {
	list := []object{}
	for _, item := range items {
		list = append(list, object{"id": item})
	}
	v.send("welcome", "user", v.user, "seat", "seat of "+v.user, "number", 7, "epoch", 1, "sale", object{"id": stubSale, "items": list})
}

// read returns the next frame of the shopper, nil when it has gone.
func (v *stubVisit) read() object {
	_ = v.ws.SetReadDeadline(time.Now().Add(patience))
	_, data, err := v.ws.ReadMessage()
	if err != nil {
		return nil
	}
	var frame object
	if err := json.Unmarshal(data, &frame); err != nil {
		v.t.Errorf("frame %q: %v", data, err)
	}
	return frame
}

// grab reads a grab and returns its request id and item.
func (v *stubVisit) grab() (id, item string) {
	frame := v.read()
	if frame["type"] != "grab" {
		v.t.Errorf("%s sent %v instead of a grab", v.user, frame)
	}
	id, _ = frame["id"].(string)
	item, _ = frame["item"].(string)
	if id == "" {
		v.t.Errorf("%s sent a grab without an id", v.user)
	}
	return id, item
}

// buy grants the turn and answers the grab with a confirmed order.
func (v *stubVisit) buy() {
	v.welcome("main")
	v.send("turn", "until", time.Now().Add(time.Minute).UnixMilli())
	id, _ := v.grab()
	v.send("success", "id", id, "order", v.order("confirmed"))
	v.gone()
}

// order is the user's order.
func (v *stubVisit) order(status string) object { return orderOf("order of "+v.user, status) }

func orderOf(id, status string) object {
	return object{"id": id, "item": "main", "qty": 1, "status": status}
}

// gone waits until the shopper has left.
func (v *stubVisit) gone() {
	for v.read() != nil {
	}
}

// close ends the connection with a code.
func (v *stubVisit) close(code int) {
	_ = v.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, "the test wants it"), time.Now().Add(patience))
	v.gone()
}

// crowd sends users shoppers to the stub, in haste.
func (s *stub) crowd(users int, change ...func(*crowdOptions)) crowdReport {
	s.t.Helper()
	opts := crowdOptions{
		URL: s.URL, Sale: stubSale, Users: users, Prefix: "u", Secret: []byte(stubSecret), Qty: 1, Timeout: patience, Concurrency: 4,
		Backoff: func(int) time.Duration { return time.Millisecond }, Settle: 50 * time.Millisecond, AuditPatience: time.Second,
	}
	for _, c := range change {
		c(&opts)
	}
	report, err := newCrowd(opts).Run(s.t.Context())
	if err != nil {
		s.t.Fatalf("run the crowd: %v", err)
	}
	return report
}

// sluice runs one command line in-process.
func sluice(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, err lockedBuffer
	code = run(ctx, args, stdio{in: bytes.NewBufferString(stdin), out: &out, err: &err})
	return code, out.String(), err.String()
}

// lockedBuffer may be written from several goroutines, as standard error is.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func writeProblem(w http.ResponseWriter, status int, body object) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func bodyOf(t *testing.T, r *http.Request) string {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Errorf("read the request: %v", err)
	}
	return string(data)
}

// want fails the test unless got is what was expected.
func want[T comparable](t *testing.T, what string, got, expected T) {
	t.Helper()
	if got != expected {
		t.Errorf("%s is %s, want %s", what, fmt.Sprint(got), fmt.Sprint(expected))
	}
}
