package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v5"

	"sluice/queue"
)

// callerFrom is a connection that was never dialled, from an address.
func callerFrom(address string) net.Conn {
	return &imagined{from: &net.TCPAddr{IP: net.ParseIP(address), Port: 4711}}
}

type imagined struct {
	net.Conn
	from   net.Addr
	closed bool
}

func (c *imagined) RemoteAddr() net.Addr { return c.from }
func (c *imagined) Close() error         { c.closed = true; return nil }

func newTestGate(t *testing.T, opts GateOptions) (*Gate, func(time.Duration)) {
	t.Helper()
	now := testNow()
	opts.Now = func() time.Time { return now }
	g, err := NewGate(opts)
	if err != nil {
		t.Fatal(err)
	}
	return g, func(d time.Duration) { now = now.Add(d) }
}

func TestWhoSaysNothingGivesWayToANewcomer(t *testing.T) {
	t.Parallel()
	g, pass := newTestGate(t, GateOptions{Most: 10})
	var silent []*caller
	for range 5 {
		silent = append(silent, g.admit(callerFrom("192.0.2.1")))
	}
	if c := g.admit(callerFrom("192.0.2.1")); c.why() != crowdedOut {
		t.Error("half of the connections are silent and newly so, and one more was let in")
	} else {
		c.Close()
	}
	silent[0].speaks()
	pass(patience)
	late := g.admit(callerFrom("192.0.2.1")) // there are four silent ones
	for range 3 {
		if c := g.admit(callerFrom("192.0.2.1")); c.why() != welcomed {
			t.Error("nobody gave way")
		}
	}
	for i, c := range silent {
		if closed := c.Conn.(*imagined).closed; closed != (i >= 1 && i <= 3) {
			t.Errorf("number %d: closed is %v", i, closed)
		}
	}
	if late.Conn.(*imagined).closed {
		t.Error("the newest gave way")
	}
	silent[0].falls()
	silent[1].Close() // it has left already
	if g.open != 6 {
		t.Errorf("counts %d connections, want 6", g.open)
	}
}

// The fault: a body that comes a byte at a time holds its connection as long as a header does that never ends.
func TestWhoseBodyDoesNotComeGivesWayToANewcomer(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5, `line: { order: off }`))
	var late atomic.Int64
	n := behindGate(f, GateOptions{Most: 4, Now: func() time.Time { return testNow().Add(time.Duration(late.Load())) }})
	begin := func(head string) (net.Conn, *bufio.Reader) {
		conn := must[net.Conn](t)(net.Dial("tcp", strings.TrimPrefix(n.url, "http://")))
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "POST /api/v1/seckill/%s HTTP/1.1\r\nHost: x\r\n%sContent-Length: 100\r\n\r\n", f.sale, head)
		return conn, bufio.NewReader(conn)
	}
	_, read := begin("Expect: 100-continue\r\nAuthorization: Bearer " + f.shopper("ann").token + "\r\n")
	if resp := must[*http.Response](t)(http.ReadResponse(read, nil)); resp.StatusCode != http.StatusContinue {
		t.Fatalf("got %d", resp.StatusCode)
	}
	late.Store(int64(patience))
	begin("") // half of the room is silent now, and nobody needs it
	resp := must[*http.Response](t)(http.Get(n.url + "/api/v1/sales"))
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the newcomer got %d", resp.StatusCode)
	}
	if answer, _ := io.ReadAll(read); len(answer) > 0 {
		t.Errorf("who sent no body was waited for, and answered %q", answer)
	}
}

func TestAConnectionIsSilentUntilItsBodyHasCome(t *testing.T) {
	t.Parallel()
	g, pass := newTestGate(t, GateOptions{Most: 10})
	c := g.admit(callerFrom("192.0.2.1"))
	before := c.since
	pass(time.Second)
	c.begins()
	if c.place == nil || c.since <= before {
		t.Error("whoever begins a request has not patience for its body")
	}
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
	if _, err := readBody(echo.New().NewContext(req.WithContext(withCaller(t.Context(), c)), httptest.NewRecorder()), 10); err != nil || c.place != nil {
		t.Errorf("the body has come, and the connection is silent: %v", err)
	}
}

func TestAFullNodeTurnsAwayAndDropsWhatIsBeyond(t *testing.T) {
	t.Parallel()
	g, pass := newTestGate(t, GateOptions{Most: 10})
	var seated []*caller
	for range 10 {
		c := g.admit(callerFrom("192.0.2.1"))
		c.speaks()
		seated = append(seated, c)
	}
	pass(time.Hour)
	var turned []*caller
	for range turnedAway {
		c := g.admit(callerFrom("192.0.2.1"))
		if c.why() != crowdedOut {
			t.Fatal("there was no room, and somebody was let in")
		}
		turned = append(turned, c)
	}
	if g.admit(callerFrom("192.0.2.1")) != nil {
		t.Error("those who are to be turned away are without a bound")
	}
	turned[0].Close()
	turned[0].Close()
	if c := g.admit(callerFrom("192.0.2.1")); c == nil || c.why() != crowdedOut {
		t.Error("a place of those who are turned away was not free again")
	}
	seated[3].Close()
	seated[3].Close()
	if c := g.admit(callerFrom("192.0.2.1")); c.why() != welcomed {
		t.Error("somebody left, and there is no room")
	}
	if c := g.admit(callerFrom("192.0.2.1")); c != nil {
		t.Error("closing twice made room for two")
	}
}

func TestConnectionsOfAnAddressAreCountedByHome(t *testing.T) {
	t.Parallel()
	g, _ := newTestGate(t, GateOptions{PerAddress: 2, Trusted: []string{"10.0.0.0/8", "::ffff:172.16.0.0/108", "::ffff:198.51.100.1"}})
	enter := func(address string) refusedAs { return g.admit(callerFrom(address)).why() }
	for i, step := range []struct {
		address string
		want    refusedAs
	}{
		{"192.0.2.1", welcomed}, {"192.0.2.1", welcomed}, {"192.0.2.1", tooMany}, {"192.0.2.2", welcomed},
		{"2001:db8:1:2::1", welcomed}, {"2001:db8:1:2:ffff::9", welcomed}, {"2001:db8:1:2::3", tooMany}, {"2001:db8:1:3::1", welcomed},
		{"::ffff:192.0.2.1", tooMany},
		{"10.0.0.1", welcomed}, {"10.0.0.1", welcomed}, {"10.0.0.1", welcomed},
		{"172.16.0.1", welcomed}, {"172.16.0.1", welcomed}, {"172.16.0.1", welcomed},
		{"198.51.100.1", welcomed}, {"198.51.100.1", welcomed}, {"198.51.100.1", welcomed},
	} {
		if got := enter(step.address); got != step.want {
			t.Errorf("step %d, %s: got %d, want %d", i, step.address, got, step.want)
		}
	}
	// What leaves is forgotten: the memory for addresses is that of those who are here.
	g, _ = newTestGate(t, GateOptions{PerAddress: 1})
	for i := range 1000 {
		g.admit(callerFrom(fmt.Sprintf("10.1.%d.%d", i/250, i%250))).Close()
	}
	if len(g.crowds) != 0 {
		t.Errorf("%d addresses are remembered", len(g.crowds))
	}
}

func TestTheBoundsOfAGateAreChangedWhileConnectionsAreThere(t *testing.T) {
	t.Parallel()
	g, _ := newTestGate(t, GateOptions{Most: 100, PerAddress: 1})
	enter := func(address string) *caller { return g.admit(callerFrom(address)) }
	must := func(c *caller, why refusedAs) *caller {
		t.Helper()
		if c.why() != why {
			t.Fatalf("got %d, want %d", c.why(), why)
		}
		return c
	}
	first := must(enter("192.0.2.1"), welcomed)
	must(enter("192.0.2.1"), tooMany).Close()
	g.SetBounds(100, 2)
	must(enter("192.0.2.1"), welcomed)
	must(enter("192.0.2.1"), tooMany).Close()
	g.SetBounds(2, 0)
	must(enter("192.0.2.2"), crowdedOut).Close() // both are still here
	first.Close()
	g.SetBounds(4, 1) // of whom one is counted for the address
	must(enter("192.0.2.1"), tooMany).Close()
	must(enter("192.0.2.2"), welcomed)
	if g.open != 2 || g.turned != 0 {
		t.Errorf("%d are here and %d are turned away", g.open, g.turned)
	}
}

// behindGate gives the node of a fair a second address, behind a gate, and returns its port.
func behindGate(f *fair, opts GateOptions) *node {
	f.Helper()
	g := must[*Gate](f.T)(NewGate(opts))
	site := httptest.NewUnstartedServer(nil)
	site.Config = NewHTTPServer("", f.main.server.Handler())
	site.Listener = g.Listen(site.Listener)
	site.Start()
	f.Cleanup(site.Close)
	return &node{fair: f, server: f.main.server, hub: f.main.hub, url: site.URL}
}

func TestARotatingXForwardedForIsStillLimited(t *testing.T) {
	t.Parallel()
	for name, trusted := range map[string][]string{"from anybody": nil, "through a proxy": {"127.0.0.0/8"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFair(t, saleOf(50, `line: { order: off }`), change{
				queue:  queue.Options{AddressLimit: queue.Rate{N: 3, Per: time.Hour}},
				server: func(o *Options) { o.TrustedProxies, o.ConnsAddress = trusted, 2 },
			})
			n := behindGate(f, GateOptions{PerAddress: 2, Trusted: trusted})
			var rotation atomic.Int64
			header := func() http.Header { // the proxy adds the address that it sees at the right
				return http.Header{"X-Forwarded-For": {fmt.Sprintf("198.51.100.%d, 203.0.113.7", rotation.Add(1))}}
			}
			for i := range 2 {
				tab := f.shopper(fmt.Sprint("tab-", i)).dial(n, header())
				tab.hello("")
				tab.await("welcome")
			}
			var passed, limited int
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			if trusted == nil {
				n = f.main // two connections are all that it may have at the gate
				f.shopper("third").dial(behindGate(f, GateOptions{PerAddress: 0}), header()).goAway()
			}
			for i := range 4 {
				s := f.shopper(fmt.Sprint("buyer-", i))
				req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodPost, n.url+"/api/v1/seckill/"+f.sale, nil))
				req.Header = header()
				req.Header.Set("Authorization", "Bearer "+s.token)
				resp := must[*http.Response](t)(client.Do(req))
				resp.Body.Close()
				switch resp.StatusCode {
				case http.StatusOK:
					passed++
				case http.StatusTooManyRequests:
					limited++
					if resp.Header.Get(headerLimit) != "3" || resp.Header.Get(headerRemaining) != "0" || resp.Header.Get("Retry-After") == "" {
						t.Errorf("429 with %v", resp.Header)
					}
				}
			}
			// Two hellos and a grab are three.
			if passed != 1 || limited != 3 {
				t.Errorf("%d grabs passed and %d were limited", passed, limited)
			}
		})
	}
}

func TestAnAddressWithTooManyConnectionsIsToldSo(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5, `line: { order: fifo }`), change{server: func(o *Options) { o.TrustedProxies, o.ConnsAddress = []string{"127.0.0.1"}, 2 }})
	n := behindGate(f, GateOptions{PerAddress: 2, Trusted: []string{"127.0.0.1"}})
	from := func(address string) http.Header { return http.Header{"X-Forwarded-For": {"192.0.2.99, " + address}} }
	first := f.shopper("first").dial(n, from("2001:db8::1"))
	first.hello("")
	first.await("welcome")
	f.shopper("second").dial(n, from("2001:db8::2"))
	f.shopper("third").dial(n, from("2001:db8::3")).mustEnd(closeTooMuch, "at most 2")
	other := f.shopper("other").dial(n, from("2001:db8:0:1::1"))
	other.hello("")
	other.await("welcome")
	first.goAway()
	eventually(t, "there is room again once one has left", func() bool {
		tab := f.shopper("again").dial(n, from("2001:db8::4"))
		tab.hello("")
		select {
		case <-tab.frames:
			return true
		case <-tab.stopped:
			return false
		}
	})
}

func TestWhoFindsNoRoomIsAnswered503BeforeTheUpgrade(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5, `line: { order: fifo }`))
	n := behindGate(f, GateOptions{Most: 2})
	ann := f.shopper("ann").dial(n, nil)
	ann.hello("")
	ann.await("welcome")
	bob := f.shopper("bob").dial(n, nil)
	bob.hello("")
	bob.await("welcome")
	for _, upgrade := range []string{"", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"} {
		conn := must[net.Conn](t)(net.Dial("tcp", strings.TrimPrefix(n.url, "http://")))
		fmt.Fprintf(conn, "GET /ws/v1/sales/%s HTTP/1.1\r\nHost: x\r\n%s\r\n", f.sale, upgrade)
		resp := must[*http.Response](t)(http.ReadResponse(bufio.NewReader(conn), nil))
		resp.Body.Close()
		conn.Close()
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !resp.Close {
			t.Errorf("got %d %v", resp.StatusCode, resp.Header)
		}
	}
	bob.goAway()
	eventually(t, "there is room once one has left", func() bool {
		resp, err := http.Get(n.url + "/api/v1/sales")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}
