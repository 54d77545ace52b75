package main

import (
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// TestTheRestOfTheProtocolIsSpoken has a script ask a real server for the frames that no journey meets, so that the
// recordings of web/test/frames have them all.
func TestTheRestOfTheProtocolIsSpoken(t *testing.T) {
	t.Parallel()
	g := newGround(t, "mysql")
	g.flags = append(g.flags, "--auth", "jwt,hmac,guest")
	limited := open(t, append(g.flags, "--limit-user", "2/5s", "--no-worker")...)

	redis, err := url.Parse(g.flags[1])
	if err != nil {
		t.Fatal(err)
	}
	line := layCable(t, redis.Host)
	redis.Host = line.address()
	flags := append([]string{}, g.flags...)
	flags[1] = redis.String()
	s := open(t, flags...)
	sale := freshID()
	// A line is kept in the database every second, and what is not can only be lost.
	lineIsKept := func() bool {
		var issued int
		err := g.rows.QueryRowContext(t.Context(), "SELECT issued FROM reach WHERE sale_id = '"+sale+"-lost'").Scan(&issued)
		return err == nil && issued == 3
	}
	travel(t, s, "record-rest", sale, "LIMITED="+limited.url, "SECRET="+e2eSecret).arrives(map[string]func(){
		"flush": func() { eventually(t, "the line is in the database", lineIsKept); g.flush() },
		"cut":   line.cut,
		"mend":  line.mend,
	})
}

// cable leads to a server, and can be cut and mended.
type cable struct {
	listener net.Listener
	to       string
	running  sync.WaitGroup

	mu   sync.Mutex
	cuts bool
	ends map[net.Conn]bool
}

func layCable(t *testing.T, to string) *cable {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(to, ":") {
		to += ":6379"
	}
	c := &cable{listener: listener, to: to, ends: map[net.Conn]bool{}}
	c.running.Go(c.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		c.cut()
		c.running.Wait()
	})
	return c
}

func (c *cable) address() string { return c.listener.Addr().String() }

func (c *cable) accept() {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", c.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		if !c.keep(near, far) {
			continue
		}
		c.running.Go(func() { c.lead(near, far) })
		c.running.Go(func() { c.lead(far, near) })
	}
}

// keep notes both ends of a connection, or closes them while the cable is cut.
func (c *cable) keep(ends ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, end := range ends {
		if c.cuts {
			_ = end.Close()
		} else {
			c.ends[end] = true
		}
	}
	return !c.cuts
}

func (c *cable) lead(from, to net.Conn) {
	_, _ = io.Copy(to, from) // it ends when either end is closed
	_, _ = from.Close(), to.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ends, from)
}

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cuts = true
	for end := range c.ends {
		_ = end.Close()
	}
}

func (c *cable) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cuts = false
}
