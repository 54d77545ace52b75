package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
)

// caller is a connection that came through a gate.
type caller struct {
	net.Conn
	gate *Gate

	socket  atomic.Bool // it has become one, and is read at the pace of a shopper
	inbound inbound

	// Guarded by gate.mu.
	since   int64         // when it became silent, in ns of the Unix epoch
	place   *list.Element // among the silent; nil = it is none of them
	crowd   *crowd        // nil = not counted by address
	proxied bool          // its peer is a trusted proxy, so that its address is only known from its request
	refused refusedAs
	gone    bool
}

// refusedAs is why a connection is turned away.
type refusedAs uint8

const (
	welcomed   refusedAs = iota
	crowdedOut           // the node has as many as it bears
	tooMany              // its address has as many as it may
)

// Close closes the connection and counts it out.
func (c *caller) Close() error {
	c.gate.mu.Lock()
	c.gate.forget(c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

// Read reads, of a socket no faster than a shopper speaks.
func (c *caller) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.socket.Load() {
		c.inbound.read(n)
	}
	return n, err
}

// upgrades notes that the connection has become a socket.
func (c *caller) upgrades() {
	if c != nil {
		c.socket.Store(true)
	}
}

// NetConn is the connection beneath.
func (c *caller) NetConn() net.Conn { return c.Conn }

// speaks notes that there is a whole request, or a hello that was accepted.
func (c *caller) speaks() {
	if c == nil {
		return
	}
	c.gate.mu.Lock()
	c.gate.heed(c)
	c.gate.mu.Unlock()
}

// falls notes that the connection is silent from now on.
func (c *caller) falls() {
	if c == nil {
		return
	}
	c.gate.mu.Lock()
	c.gate.hush(c)
	c.gate.mu.Unlock()
}

// begins notes that there is a request, of which the body is still to come.
func (c *caller) begins() {
	if c == nil {
		return
	}
	c.gate.mu.Lock()
	c.gate.heed(c)
	c.gate.hush(c)
	c.gate.mu.Unlock()
}

// why says whether the connection is to be turned away.
func (c *caller) why() refusedAs {
	if c == nil {
		return welcomed
	}
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	return c.refused
}

// claim counts a connection through a proxy for the address that it came from. It is turned away when that has too many,
// and crowded out when there are too many of those.
func (c *caller) claim(address netip.Addr) refusedAs {
	if c == nil {
		return welcomed
	}
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.refused == welcomed && c.proxied && c.crowd == nil && !c.gone && !g.count(c, address) {
		if g.turned >= turnedAway {
			return crowdedOut
		}
		g.heed(c)
		g.open--
		g.turned++
		c.refused = tooMany
	}
	return c.refused
}

// callerKey is the key of a request's connection in its context.
type callerKey struct{}

// callerOf is the connection of a request, nil when it came through no gate.
func callerOf(ctx context.Context) *caller {
	c, _ := ctx.Value(callerKey{}).(*caller)
	return c
}

// callerIn is the caller in a connection, nil when there is none.
func callerIn(conn net.Conn) *caller {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	c, _ := conn.(*caller)
	return c
}

// withCaller makes callerOf work.
func withCaller(ctx context.Context, conn net.Conn) context.Context {
	if c := callerIn(conn); c != nil {
		return context.WithValue(ctx, callerKey{}, c)
	}
	return ctx
}

// noteIdle has connections that wait for their next request count as silent.
func noteIdle(conn net.Conn, state http.ConnState) {
	if state == http.StateIdle {
		callerIn(conn).falls()
	}
}
