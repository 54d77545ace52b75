package hub

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// Handler receives what happens to a session. Calls for one session come one after another; see also Session.Later. While one runs nothing is read from that peer, not even its pongs, so one that runs for as long as
// Options.SilentAfter costs the session. msg is UTF-8, not otherwise checked, and the handler's to keep. A panic is
// logged and closes the session with 1011.
type Handler interface {
	// Hello is called with the first message.
	Hello(s *Session, msg []byte)
	// Message is called with each later one.
	Message(s *Session, msg []byte)
	// Closed is called exactly once, when the session has ended and left the index, also if there never was a Hello.
	// Nothing is called after it.
	Closed(s *Session)
}

// Session is one WebSocket connection. Its methods may be called from any goroutine and do not block on the network.
type Session struct {
	hub     *Hub
	conn    *websocket.Conn
	handler Handler
	id      uint64

	holds  atomic.Int32  // reasons not to read on
	heard  atomic.Int64  // when the peer last sent anything, on the hub's clock
	rehear atomic.Bool   // the next long message may be as long as a hello
	credit time.Duration // when the message budget is whole again; the reader's
	spoken bool          // the first message came; the reader's
	got    arrival       // from the reader's waiting to its reading on; on its stack it would be too much
	pingAt time.Duration // when the next ping is due; the heart's
	born   time.Duration // when the session was accepted

	spoke   spoke    // place in the wheel; guarded by its lock
	sibling *Session // next session of the same key; guarded by the lock of the key's shard

	mu         sync.Mutex
	value      any
	group, key string
	queue      []*Frame // must-deliver frames that wait; nil when none do
	position   *Frame   // latest position frame that waits
	ahead      int      // how many of queue go before position
	pong       []byte   // what the last unanswered ping said; nil when none is
	bye        *farewell
	idle       chan struct{} // closed when the drainer returns; made by who waits for it

	bound    bool // is in the index
	greeted  bool // the first message came
	busy     bool // the handler is running
	retiring bool // close with 1012 once the handler returns
	pinging  bool // a ping waits to be written
	writing  bool // a drainer runs
	done     bool // nothing will be written any more
	aborted  bool // the deadlines of the connection are in the past and must stay there
	gone     bool // the reader left; Closed is called or about to be
}

// farewell is how a session ends.
type farewell struct {
	code   int // on the wire
	reason string
	by     time.Time // when writing must be over, by the kernel's clock

	label  int  // as counted
	byPeer bool // the peer closed
}

func newSession(h *Hub, conn *websocket.Conn, handler Handler, id uint64) *Session {
	s := &Session{hub: h, conn: conn, handler: handler, id: id, born: h.clock()}
	s.heard.Store(int64(s.born))
	conn.SetPingHandler(s.onPing)
	conn.SetPongHandler(s.onPong)
	conn.SetCloseHandler(leaveAnswerToEnd)
	return s
}

// leaveAnswerToEnd replaces gorilla's close handler, which would answer from the reader and beside the one writer.
func leaveAnswerToEnd(int, string) error { return nil }

// ID tells the session from all others of this hub; it is not a secret.
func (s *Session) ID() string { return strconv.FormatUint(s.id, 36) }

// Group is the group the session is bound to, "" when it is not bound.
func (s *Session) Group() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.group
}

// Key is the key the session is bound to, "" when it is not bound.
func (s *Session) Key() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

// SetValue keeps v with the session, for the handler's own use.
func (s *Session) SetValue(v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value = v
}

// Value is what SetValue was last given.
func (s *Session) Value() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value
}

// Bind puts the session under a key of a group, so that Hub.Send and Hub.Broadcast reach it. A session bound before
// leaves its earlier key first. It returns ErrTooMany when the key has as many sessions as it may, and
// ErrClosed when the session has ended; the session is then not bound. Calls for one session must not overlap.
func (s *Session) Bind(group, key string) error {
	s.mu.Lock()
	same := s.bound && s.group == group && s.key == key
	s.mu.Unlock()
	if same {
		return nil
	}
	s.Unbind()
	return s.hub.ofKey(key).bind(s, group, key, int(s.hub.perKey.Load()))
}

// Unbind takes the session out of its group and key; it stays open and Group and Key still tell where it was.
func (s *Session) Unbind() {
	s.mu.Lock()
	bound, group, key := s.bound, s.group, s.key
	s.bound = false
	s.mu.Unlock()
	if bound {
		s.hub.ofKey(key).unbind(s, group, key)
	}
}

// ExpectHello lets one later message be as long as a hello, for a peer that may ask for a new seat. It arrives as a
// Message.
func (s *Session) ExpectHello() { s.rehear.Store(true) }
