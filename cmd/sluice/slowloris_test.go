package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The attackers of these tests come from addresses of their own on the loopback, so that ports do not run out.

// loris is a crowd of connections that say as little as they can.
type loris struct {
	conns []net.Conn
	ended atomic.Int64
}

// besiege opens n connections: a third never says anything, a third sends a header a byte at a time, and a third becomes a
// socket and never says hello.
func besiege(t *testing.T, s *site, sale string, n int) *loris {
	t.Helper()
	g := &loris{}
	t.Cleanup(func() {
		for _, conn := range g.conns {
			conn.Close()
		}
	})
	upgrade := fmt.Sprintf("GET /ws/v1/sales/%s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", sale)
	for i := range n {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 9, byte(1+i%200))}, Timeout: longest}
		conn, err := dialer.DialContext(t.Context(), "tcp", s.address())
		if errors.Is(err, syscall.ECONNRESET) {
			continue // dropped at once
		}
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		g.conns = append(g.conns, conn)
		switch i % 3 {
		case 1:
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nX-")
		case 2:
			_, _ = io.WriteString(conn, upgrade)
		}
		go func() {
			_, _ = io.Copy(io.Discard, conn) // until the server ends it
			g.ended.Add(1)
		}()
	}
	return g
}

// drip sends one more byte of a header on each of the connections that do so.
func (g *loris) drip() {
	for i, conn := range g.conns {
		if i%3 == 1 {
			_, _ = io.WriteString(conn, "x")
		}
	}
}

func TestFiveThousandSlowConnectionsKeepNobodyFromBuying(t *testing.T) {
	t.Parallel()
	s := open(t, "--data-dir", t.TempDir())
	sale := freshID()
	s.apply(saleFile(t, sale, 20, soon))
	g := besiege(t, s, sale, 5000)
	crowd := s.crowd(sale, 100, "--ramp", "1s", "--grab-delay", "100ms")
	stop := time.NewTicker(time.Second)
	defer stop.Stop()
	for !crowd.ended() {
		g.drip()
		select {
		case <-stop.C:
		case <-crowd.done:
		}
	}
	report := crowd.report()
	want(t, "number of buyers in the crowd", report.Results["success"], 20)
	want(t, "number of those who heard that it is sold out", report.Results["sold_out"], 80)
	want(t, "number of units that the audit counts", s.audit(sale).sold(), 20)
	// The five seconds for a header and the ten for a hello are kept, whatever comes in meanwhile.
	eventually(t, "all of the attackers were put out", func() bool { g.drip(); return g.ended.Load() == int64(len(g.conns)) })
}

// figure is a metric without labels.
func (s *site) figure(name string) int {
	s.t.Helper()
	for line := range strings.Lines(s.metrics()) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return int(value)
		}
	}
	s.t.Fatalf("there is no metric %s", name)
	return 0
}

// What memory goes into is goroutines and descriptors. Bytes are not looked at: the race detector takes more than the product.
func TestWhateverArrivesANodeHoldsNoMoreThanItHasRoomFor(t *testing.T) {
	t.Parallel()
	const room, turnedAway, others = 600, 256, 200
	s := open(t, "--data-dir", t.TempDir(), "--conns-node", fmt.Sprint(room))
	sale := freshID()
	s.apply(saleFile(t, sale, 5, running))
	besiege(t, s, sale, 3000)
	if n := s.figure("process_open_fds"); n > room+turnedAway+others {
		t.Errorf("%d descriptors are in use, with room for %d connections", n, room)
	}
	if n := s.figure("go_goroutines"); n > 2*(room+turnedAway)+others {
		t.Errorf("%d goroutines run, with room for %d connections", n, room)
	}
	eventually(t, "a shopper gets through all the same", func() bool {
		answer, err := s.try(http.MethodPost, "/sales/"+sale+"/grab", tokenOf(t, "ann"), `{"request_id":"r"}`)
		return err == nil && answer.status == http.StatusOK
	})
}
