package server

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"time"
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

// SetBounds puts other bounds in force for those who come from now on. Those who are here stay, also beyond the bounds; of an
// address that had none so far, only those who come from now on are counted.
func (g *Gate) SetBounds(most, perAddress int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opts.Most, g.opts.PerAddress = most, perAddress
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
