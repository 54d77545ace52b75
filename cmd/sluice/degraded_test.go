package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// lead is a way to a server that can be cut: connections break, and new ones end at once.
type lead struct {
	address string
	mu      sync.Mutex
	broken  bool
	open    map[net.Conn]bool
}

// newLead leads to the server that a flag names, and has the flag name the lead instead.
func newLead(t *testing.T, g *ground, flag string) *lead {
	t.Helper()
	i := slices.Index(g.flags, flag) + 1
	server, err := url.Parse(g.flags[i])
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &lead{address: listener.Addr().String(), open: map[net.Conn]bool{}}
	t.Cleanup(func() { listener.Close(); l.cut() })
	far := server.Host
	server.Host = l.address
	g.flags[i] = server.String()
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			conn, err := net.Dial("tcp", far)
			if err != nil || !l.keep(near, conn) {
				near.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{near, conn}, {conn, near}} {
				go func() {
					_, _ = io.Copy(way[0], way[1]) // it ends when either end does
					way[0].Close()
					way[1].Close()
				}()
			}
		}
	}()
	return l
}

// keep has both ends closed when the lead is cut; it says no when it is cut already.
func (l *lead) keep(near, far net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		far.Close()
		return false
	}
	l.open[near], l.open[far] = true, true
	return true
}

func (l *lead) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = true
	for conn := range l.open {
		conn.Close()
	}
	clear(l.open)
}

func (l *lead) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = false
}

// called is one request in an outage and how it is answered: with a status, and where that is 200, what the field says.
type called struct {
	what, method, path, user string // user "admin" is an operator
	status                   int
	field, value             string
}

// TestWhatGoesOnInAnOutage cuts a node off from one service after the other, and holds the table of docs/reliability.md.
func TestWhatGoesOnInAnOutage(t *testing.T) {
	t.Parallel()
	const down, ok = http.StatusServiceUnavailable, http.StatusOK
	for name, outage := range map[string]struct {
		flag  string
		calls []called
		ready int
	}{
		"redis": {"--redis-url", []called{
			{"joining", "POST", "/sales/LINE/seat", "zoe", down, "", ""},
			{"asking for a place", "GET", "/sales/LINE/seat", "ann", down, "", ""},
			{"looking at a sale", "GET", "/sales/SALE", "", ok, "state", "open"},
			{"grabbing", "POST", "/sales/SALE/grab", "cat", down, "", ""},
			{"looking at an order", "GET", "/orders/ANN", "ann", ok, "status", "confirmed"},
			{"listing orders", "GET", "/orders", "ann", down, "", ""},
			{"paying", "POST", "/orders/ANN/pay", "ann", ok, "status", "paid"},
			{"cancelling", "POST", "/orders/BOB/cancel", "bob", ok, "status", "cancelled"},
			{"listing sales", "GET", "/admin/sales", "admin", ok, "", ""},
			{"listing all orders", "GET", "/admin/sales/SALE/orders", "admin", ok, "", ""},
			{"pausing", "POST", "/admin/sales/SALE/pause", "admin", down, "", ""},
			{"auditing", "GET", "/admin/sales/SALE/audit", "admin", down, "", ""},
		}, down},
		"rabbitmq": {"--amqp-url", []called{
			{"joining", "POST", "/sales/LINE/seat", "zoe", ok, "type", "lobby"},
			{"asking for a place", "GET", "/sales/LINE/seat", "ann", ok, "type", "lobby"},
			{"looking at a sale", "GET", "/sales/SALE", "", ok, "state", "open"},
			{"grabbing", "POST", "/sales/SALE/grab", "cat", ok, "result", "success"},
			{"paying what has no row", "POST", "/orders/CAT/pay", "cat", down, "", ""},
			{"looking at what has no row", "GET", "/orders/CAT", "cat", ok, "status", "reserved"},
			{"listing orders", "GET", "/orders", "cat", ok, "", ""},
			{"paying", "POST", "/orders/ANN/pay", "ann", ok, "status", "paid"},
			{"cancelling", "POST", "/orders/BOB/cancel", "bob", ok, "status", "cancelled"},
			{"pausing", "POST", "/admin/sales/LINE/pause", "admin", ok, "", ""},
			{"auditing", "GET", "/admin/sales/SALE/audit", "admin", ok, "", ""},
		}, ok},
		"the database": {"--database-url", []called{
			{"joining", "POST", "/sales/LINE/seat", "zoe", ok, "type", "lobby"},
			{"asking for a place", "GET", "/sales/LINE/seat", "ann", ok, "type", "lobby"},
			{"looking at a sale", "GET", "/sales/SALE", "", ok, "state", "open"},
			{"grabbing", "POST", "/sales/SALE/grab", "cat", ok, "result", "success"},
			{"looking at an order", "GET", "/orders/ANN", "ann", down, "", ""},
			{"listing orders", "GET", "/orders", "ann", down, "", ""},
			{"paying", "POST", "/orders/ANN/pay", "ann", down, "", ""},
			{"cancelling", "POST", "/orders/BOB/cancel", "bob", down, "", ""},
			{"listing sales", "GET", "/admin/sales", "admin", ok, "incomplete", "the database does not give its sales: these are those that Redis knows, and there may be others"},
			{"pausing", "POST", "/admin/sales/LINE/pause", "admin", ok, "", ""},
			{"changing the pace", "PATCH", "/admin/sales/LINE/line", "admin", down, "", ""},
			{"auditing", "GET", "/admin/sales/SALE/audit", "admin", down, "", ""},
		}, ok},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, "mysql")
			way := newLead(t, g, outage.flag)
			s := open(t, g.flags...)
			sale, line := freshID(), freshID()
			s.apply(saleFile(t, sale, 20, fmt.Sprintf(heldSale, "1h")))
			s.apply(saleFile(t, line, 20, "opens_at: +1h\ncloses_at: +2h"))
			ids := []string{"SALE", sale, "LINE", line, "ANN", s.buy(sale, "ann"), "BOB", s.buy(sale, "bob")}
			want(t, "the status of joining", s.ask(http.MethodPost, "/sales/"+line+"/seat", tokenOf(t, "ann"), "").status, ok)
			eventually(t, "the node knows that the sale is open", func() bool {
				return s.ask(http.MethodGet, "/sales/"+sale, "", "").fields["state"] == "open"
			})
			way.cut()
			for _, c := range outage.calls {
				token, body := e2eAdmin, ""
				switch {
				case c.user == "":
					token = ""
				case c.user != "admin":
					token = tokenOf(t, c.user)
				}
				switch {
				case strings.HasSuffix(c.path, "/grab"):
					body = `{"request_id":"r"}`
				case strings.HasSuffix(c.path, "/line"):
					body = `{"rate":5}`
				}
				got := s.ask(c.method, strings.NewReplacer(ids...).Replace(c.path), token, body)
				if got.status != c.status || (c.field != "" && got.fields[c.field] != c.value) {
					t.Errorf("%s is answered %d %s", c.what, got.status, got.body)
				}
				if _, detail := got.problem(); c.user == "admin" && c.status == down && !strings.Contains(detail, way.address) {
					t.Errorf("of %s an operator is told %q, without the address %s", c.what, detail, way.address)
				} else if c.user != "admin" && strings.Contains(string(got.body), way.address) {
					t.Errorf("of %s a shopper is told where things are: %s", c.what, got.body)
				}
				if order, there := got.fields["order"].(map[string]any); there {
					ids = append(ids, "CAT", order["id"].(string))
				}
			}
			want(t, "readiness", s.probe("/readyz"), outage.ready)
			want(t, "health", s.probe("/healthz"), ok)

			way.mend()
			eventually(t, "cat has an order that is written", func() bool {
				answer, err := s.try(http.MethodPost, "/sales/"+sale+"/grab", tokenOf(t, "cat"), `{"request_id":"r"}`)
				order, _ := answer.fields["order"].(map[string]any)
				return err == nil && answer.fields["result"] == "success" && order["status"] == "confirmed"
			})
			eventually(t, "the books add up", func() bool {
				answer := s.ask(http.MethodGet, "/admin/sales/"+sale+"/audit", e2eAdmin, "")
				return answer.fields["balanced"] == true && answer.fields["in_flight"] == 0.0
			})
		})
	}
}

// probe is the status with which the operations listener answers.
func (s *site) probe(path string) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.ops+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
