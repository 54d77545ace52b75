package main

import (
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// valve is a way to a server that can be shut: then nothing passes, and no connection breaks.
type valve struct {
	address string
	passing sync.RWMutex // locked while it is shut
}

func newValve(t *testing.T, server string) *valve {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	v := &valve{address: listener.Addr().String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			conn, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			go v.carry(client, conn)
			go v.carry(conn, client)
		}
	}()
	return v
}

func (v *valve) carry(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		v.passing.RLock()
		_, failed := to.Write(buffer[:n])
		v.passing.RUnlock()
		if err != nil || failed != nil {
			return
		}
	}
}

func TestWhoWatchesSeesThatTheDatabaseHangs(t *testing.T) {
	t.Parallel()
	for _, database := range []string{"mysql", "postgres"} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, database)
			i := slices.Index(g.flags, "--database-url") + 1
			server, err := url.Parse(g.flags[i])
			if err != nil {
				t.Fatal(err)
			}
			v := newValve(t, server.Host)
			server.Host = v.address
			g.flags[i] = server.String()
			s := open(t, g.flags...)
			sale := freshID()
			s.apply(saleFile(t, sale, 5, running))
			s.buy(sale, "ann")
			next := s.watch(sale)
			seen(t, next, "the order is written", func(f liveFrame) bool { return f.Orders.Written != nil && *f.Orders.Written == 1 })
			v.passing.Lock()
			for range 3 {
				f := seen(t, next, "the database hangs", func(f liveFrame) bool { return f.Orders.Written == nil })
				if len(f.Troubles) != 1 || !strings.Contains(f.Troubles[0], "database") || f.Line == nil || f.Orders.Taken == nil || *f.Orders.Outbox != 0 {
					t.Errorf("while the database hangs: %+v", f)
				}
			}
			v.passing.Unlock()
			seen(t, next, "the database is back", func(f liveFrame) bool { return len(f.Troubles) == 0 && *f.Orders.Written == 1 })
		})
	}
}
