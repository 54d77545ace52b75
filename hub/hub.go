package hub

import (
	"cmp"
	"context"
	"hash/maphash"
	"iter"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// Buffer sizes for the upgrader, in bytes. Most messages of shoppers are shorter; a longer one takes more reads and no
// more memory.
const (
	ReadBufferSize  = 512
	WriteBufferSize = 1024
)

// sendBuffer is the send buffer of a socket in bytes (Linux doubles it). What the kernel holds is out of reach: with the
// megabytes that it grows to by itself, a slow reader would read its way through old positions, and a stalled one would
// cost them.
const sendBuffer = 16 << 10

// Hub holds the sessions of a node.
type Hub struct {
	opts    Options
	metrics *metrics
	start   time.Time
	seed    maphash.Seed
	shards  []*shard
	hands   sync.WaitGroup // the crew
	buffers sync.Pool      // of *[]byte, for frames that are written together
	ids     atomic.Uint64
	perKey  atomic.Int64                                                           // sessions that one key may have; Options.ConnsPerKey to begin with
	pause   func(ctx context.Context, over <-chan struct{}, d time.Duration) error // how Drain waits

	turning sync.Mutex    // held while the wheels turn
	turned  time.Duration // when they turned last
	resumed time.Duration // when they last turned after a standstill
	quit    chan struct{} // closed to stop the heart and the crew
	stopped chan struct{} // closed when the heart has
	calls   chan func()   // to a goroutine of the crew that has nothing to do

	mu       sync.Mutex
	live     int             // sessions whose goroutine runs
	empty    []chan struct{} // closed when live is 0
	draining bool
	closed   bool
}

// New makes a hub and starts its heart, which Close stops.
func New(opts Options) *Hub {
	opts = opts.withDefaults()
	h := &Hub{
		opts:    opts,
		metrics: newMetrics(opts.Registerer),
		start:   opts.Now(),
		seed:    maphash.MakeSeed(),
		shards:  make([]*shard, opts.Shards),
		buffers: sync.Pool{New: func() any { return new(make([]byte, 0, writeAtOnce)) }},
		pause:   pause,
		quit:    make(chan struct{}),
		stopped: make(chan struct{}),
		calls:   make(chan func()),
	}
	h.SetConnsPerKey(opts.ConnsPerKey)
	for i := range h.shards {
		h.shards[i] = newShard()
	}
	go h.beat()
	for range crew * runtime.GOMAXPROCS(0) {
		h.hands.Go(h.work)
	}
	return h
}

// SetConnsPerKey bounds the sessions of one key from the next Bind on, as Options.ConnsPerKey does. Those that are bound stay.
func (h *Hub) SetConnsPerKey(most int) { h.perKey.Store(int64(cmp.Or(most, defaultConnsPerKey))) }

// Accept makes a session of an upgraded connection and returns at once; reading happens in a goroutine of its own, so
// the HTTP handler can return and its memory be freed. The hub owns conn from here on. While the hub drains the session
// is closed with 1012 at once; after Close it has ended, and handler.Closed was called, when Accept returns.
func (h *Hub) Accept(conn *websocket.Conn, handler Handler) *Session {
	s := newSession(h, conn, handler, h.ids.Add(1))
	if !h.enter() {
		s.abort(codeRestarting)
		s.gone = true
		conn.Close()
		s.call(handler.Closed)
		return s
	}
	if tcp := socketOf(conn.NetConn()); tcp != nil {
		_ = tcp.SetWriteBuffer(sendBuffer) // without it everything works, only less tightly
	}
	h.metrics.opened()
	d := h.ofID(s.id)
	d.add(s)
	s.pingAt = s.born + rand.N(h.opts.PingEvery)
	d.wheel.put(s, min(s.pingAt, s.born+h.opts.HelloWithin))
	// Asked after the session was added: whoever empties the hub says so first and then looks what is in it, so the
	// session is found by one of the two.
	if h.emptying() {
		s.Close(codeRestarting, reasonRestarting)
	}
	s.listen()
	return s
}

// socketOf is the TCP connection beneath, also under TLS and whatever else is around it, or nil.
func socketOf(c net.Conn) *net.TCPConn {
	for {
		outer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			tcp, _ := c.(*net.TCPConn)
			return tcp
		}
		c = outer.NetConn()
	}
}

// enter counts a session in, unless the hub is closed.
func (h *Hub) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.live++
	return true
}

func (h *Hub) emptying() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.draining || h.closed
}

// left notes that a session has ended.
func (h *Hub) left(s *Session) {
	h.ofID(s.id).remove(s)
	h.metrics.closed(s.bye.label, s.bye.byPeer)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.live--; h.live == 0 {
		for _, ch := range h.empty {
			close(ch)
		}
		h.empty = nil
	}
}

// Len is the number of sessions whose Closed has not returned yet.
func (h *Hub) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.live
}

// Count is the number of sessions of a key. In Handler.Closed the session itself no longer counts.
func (h *Hub) Count(group, key string) int { return h.ofKey(key).count(group, key) }

// Sessions are the sessions of a group, as they are when their shard is reached. The loop body may block and may call
// anything: no lock is held. It is to use Session.Position or Session.Send; the loop makes way for the writers so
// started, which keeps their number small.
func (h *Hub) Sessions(group string) iter.Seq[*Session] {
	const batch = 64 // goroutines that may be started before they get a chance to finish
	return func(yield func(*Session) bool) {
		n := 0
		for _, d := range h.shards {
			for _, s := range d.ofGroup(group) {
				if !yield(s) {
					return
				}
				if n++; n%batch == 0 {
					runtime.Gosched()
				}
			}
		}
	}
}

// Send gives the frame to each session of a key, as Session.Send, and returns to how many.
func (h *Hub) Send(group, key string, f *Frame) int {
	list := h.ofKey(key).ofKey(group, key)
	n := 0
	for _, s := range list {
		if s.send(f) {
			n++
		}
	}
	return n
}

// Broadcast gives the frame to each session of a group, as Session.Send, and returns to how many.
func (h *Hub) Broadcast(group string, f *Frame) int {
	start := time.Now()
	n := 0
	for s := range h.Sessions(group) {
		if s.send(f) {
			n++
		}
	}
	h.metrics.broadcast.Observe(time.Since(start).Seconds())
	return n
}

func (h *Hub) ofID(id uint64) *shard { return h.shards[id%uint64(len(h.shards))] }

func (h *Hub) ofKey(key string) *shard {
	return h.shards[maphash.String(h.seed, key)%uint64(len(h.shards))]
}

// clock is the time since the hub was made. Unlike a date it does not jump when the system's clock is set.
func (h *Hub) clock() time.Duration { return h.opts.Now().Sub(h.start) }
