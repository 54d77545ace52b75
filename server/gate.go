package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/labstack/echo/v4"

	"sluice/queue"
)

const (
	// patience is how long a connection may be silent before it gives way to a newcomer of a crowded node: several round trips
	// of the slowest network, and no time to somebody who holds thousands of them open.
	patience = 2 * time.Second
	// turnedAway is how many connections beyond the bound may be on their way to hear that they are. Beyond that they are
	// dropped, which costs nothing.
	turnedAway = 256
)

// GateOptions are the bounds of a Gate.
type GateOptions struct {
	Most       int      // connections at once, all kinds together; 0 = any number
	PerAddress int      // connections of one address (IPv6: of one /64) at once; 0 = any number
	Trusted    []string // proxies, as addresses or ranges: those who come through them are counted by what these say of them
	Now        func() time.Time
}

// Gate bounds the connections of a listener, so that memory and descriptors last whoever comes. A connection is silent until
// it has brought a request with its whole body or, when it became a socket, a hello that was accepted; and again between two
// requests. At the bound, or when half of it is silent, the one that has been silent longest gives way to a newcomer. Where
// none has been for longer than patience, more come than the node gets to hear, and it is the newcomer who is asked to come
// back later.
//
// So nobody is kept out by connections that say nothing, however many, and a node that can keep up turns nobody away.
type Gate struct {
	opts    GateOptions
	proxies proxies

	mu     sync.Mutex
	open   int                     // connections that are here
	turned int                     // connections beside them that are to hear that they are beyond a bound
	silent list.List               // of *caller: those of open that are silent, the one that has been for longest in front
	crowds map[netip.Prefix]*crowd // by address; those with a connection
}

// crowd is how many connections an address has.
type crowd struct {
	address netip.Prefix
	n       int
}

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

// NewGate makes a gate. Errors: a trusted proxy that is no address.
func NewGate(opts GateOptions) (*Gate, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	trusted, err := parseProxies(opts.Trusted)
	if err != nil {
		return nil, err
	}
	return &Gate{opts: opts, proxies: trusted, crowds: map[netip.Prefix]*crowd{}}, nil
}

// Listen puts the gate before a listener. Its connections belong to an http.Server of NewHTTPServer.
func (g *Gate) Listen(l net.Listener) net.Listener { return &gated{Listener: l, gate: g} }

type gated struct {
	net.Listener
	gate *Gate
}

// Accept returns the next connection that is not dropped.
func (l *gated) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.gate.admit(conn); c != nil {
			return c, nil
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // nothing of it is to stay, not even in the kernel
		}
		_ = conn.Close()
	}
}

// admit counts a connection in, or returns nil for one that is to be dropped.
func (g *Gate) admit(conn net.Conn) *caller {
	c := &caller{Conn: conn, gate: g}
	address, known := peerOf(conn)
	g.mu.Lock()
	leaves, room := g.room()
	c.proxied = known && g.proxies.trust(address)
	switch {
	case !room:
		c.refused = crowdedOut
	case known && !c.proxied && !g.count(c, address):
		c.refused = tooMany
	}
	switch {
	case c.refused == welcomed:
		g.open++
		g.hush(c)
	case g.turned < turnedAway:
		g.turned++
	default:
		c = nil
	}
	g.mu.Unlock()
	if leaves != nil {
		_ = leaves.Conn.Close()
	}
	return c
}

// room says whether there is room for one more, and who has to leave for it, already counted out; under g.mu.
func (g *Gate) room() (leaves *caller, ok bool) {
	if g.opts.Most == 0 || g.open < g.opts.Most && g.silent.Len() < (g.opts.Most+1)/2 {
		return nil, true
	}
	first := g.silent.Front()
	if first == nil {
		return nil, false
	}
	leaves = first.Value.(*caller)
	if g.opts.Now().UnixNano()-leaves.since < int64(patience) {
		return nil, false
	}
	g.forget(leaves)
	return leaves, true
}

// hush puts a connection among the silent; under g.mu.
func (g *Gate) hush(c *caller) {
	if c.place == nil && !c.gone && c.refused == welcomed {
		c.since = g.opts.Now().UnixNano()
		c.place = g.silent.PushBack(c)
	}
}

// heed takes a connection from among the silent; under g.mu.
func (g *Gate) heed(c *caller) {
	if c.place != nil {
		g.silent.Remove(c.place)
		c.place = nil
	}
}

// forget counts a connection out; under g.mu. It may be called again.
func (g *Gate) forget(c *caller) {
	if c.gone {
		return
	}
	g.heed(c)
	c.gone = true
	if c.refused == welcomed {
		g.open--
	} else {
		g.turned--
	}
	if c.crowd != nil {
		if c.crowd.n--; c.crowd.n == 0 {
			delete(g.crowds, c.crowd.address)
		}
	}
}

// count counts a connection for its address, unless that has as many as it may; under g.mu.
func (g *Gate) count(c *caller, address netip.Addr) bool {
	if g.opts.PerAddress == 0 {
		return true
	}
	home := homeOf(address)
	there := g.crowds[home]
	if there == nil {
		there = &crowd{address: home}
		g.crowds[home] = there
	}
	if there.n >= g.opts.PerAddress {
		return false
	}
	there.n++
	c.crowd = there
	return true
}

// peerOf is the address of the other end.
func peerOf(conn net.Conn) (netip.Addr, bool) {
	tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	address := tcp.AddrPort().Addr().Unmap()
	return address, address.IsValid()
}

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

// shedAfter is when those are to come back for whom there was no room, at the earliest.
const shedAfter = 2 * time.Second

// admit is before every request: it answers those whose connection is beyond a bound. Sockets hear it from openSocket, in a way
// that a browser can read.
func (s *Server) admit(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		caller := callerOf(c.Request().Context())
		if caller == nil {
			return next(c)
		}
		switch why := caller.why(); {
		case why == welcomed && c.Request().ContentLength != 0:
			caller.begins() // readBody has it speak
			return next(c)
		case why == welcomed:
			caller.speaks()
			return next(c)
		case why == tooMany && websocket.IsWebSocketUpgrade(c.Request()):
			return next(c)
		default:
			c.Response().Header().Set(echo.HeaderConnection, "close")
			return s.turnAway(why)
		}
	}
}

// turnAway is the answer to a connection that is beyond a bound.
func (s *Server) turnAway(why refusedAs) error {
	if why == tooMany {
		s.counted.refused("connections")
		return &queue.Error{
			Code: queue.Limited, RetryAfter: shedAfter, Limit: int64(s.opts.ConnsAddress),
			Message: manyConnections(s.opts.ConnsAddress) + "; you keep your place, try again in a moment",
		}
	}
	s.counted.refused("crowded")
	return &queue.Error{
		Code: queue.Unavailable, RetryAfter: shedAfter,
		Message: "it is crowded: this server has no room for another connection just now; you keep your place, try again in a moment",
	}
}

func manyConnections(most int) string {
	return fmt.Sprintf("too many connections from your address: at most %d", most)
}
