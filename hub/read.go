package hub

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"
)

// Close codes of the contract that the hub itself uses.
const (
	codeBadMessage = 4400
	codeNoHello    = 4408
	codeTooMany    = 4429
)

// run is the session's goroutine: it reads until the first error, and then ends the session.
func (s *Session) run() {
	err := s.read()
	s.end(err)
	s.call(s.handler.Closed)
	s.hub.left(s)
}

// read hands messages to the handler until the connection fails or the peer closes. Once the session is closing it
// only waits for the peer's answer, and gorilla skips what comes before it.
func (s *Session) read() error {
	for hello := true; ; {
		kind, r, err := s.conn.NextReader()
		if err != nil {
			return err
		}
		if !s.heed() {
			continue
		}
		if kind != websocket.TextMessage {
			s.Close(codeBadMessage, "binary messages are not understood")
			continue
		}
		limit := s.hub.opts.MaxMessage
		if hello || s.rehear.Load() {
			limit = s.hub.opts.MaxHello
		}
		msg, err := io.ReadAll(io.LimitReader(r, limit+1))
		if err != nil {
			return err
		}
		if int64(len(msg)) > limit {
			s.Close(codeBadMessage, fmt.Sprintf("message is longer than %d bytes", limit))
			continue
		}
		if !utf8.Valid(msg) {
			s.Close(codeBadMessage, "message is not UTF-8")
			continue
		}
		if int64(len(msg)) > s.hub.opts.MaxMessage {
			s.rehear.Store(false)
		}
		s.heard.Store(int64(s.hub.clock()))
		s.dispatch(hello, msg)
		hello = false
	}
}

// heed notes that the peer sent a frame and reports whether the session still cares: it does not when it is closing,
// or when this frame is beyond the budget, which closes it.
func (s *Session) heed() bool {
	now := s.hub.clock()
	s.heard.Store(int64(now))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bye != nil || s.done {
		return false
	}
	if s.spend(now) {
		return true
	}
	s.close(codeTooMany, "too many messages")
	return false
}

// spend takes one frame from the budget. The budget is kept as the moment when it will be whole again.
func (s *Session) spend(now time.Duration) bool {
	o := &s.hub.opts
	if o.MessagesPerSecond < 0 {
		return true
	}
	cost := time.Duration(float64(time.Second) / o.MessagesPerSecond)
	credit := max(s.credit, now) + cost
	if credit > now+time.Duration(o.Burst)*cost {
		return false
	}
	s.credit = credit
	return true
}

func (s *Session) onPing(data string) error {
	if !s.heed() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bye != nil || s.done {
		return nil
	}
	// RFC 6455 lets the newest ping stand for those not answered yet, so a flood of them costs one slot.
	s.pong = append([]byte{}, data...)
	s.wake()
	return nil
}

func (s *Session) onPong(string) error {
	s.heed()
	return nil
}

// dispatch hands one message to the handler, unless the session began to close meanwhile.
func (s *Session) dispatch(hello bool, msg []byte) {
	s.mu.Lock()
	s.greeted = true
	closing := s.bye != nil || s.done
	s.busy = !closing
	s.mu.Unlock()
	if closing {
		return
	}
	s.call(func(*Session) {
		if hello {
			s.handler.Hello(s, msg)
		} else {
			s.handler.Message(s, msg)
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	if s.retiring {
		s.close(codeRestarting, reasonRestarting)
	}
}

// call runs a method of the handler. The reader's goroutine has no HTTP server above it that would keep a panic in one
// session from ending the process.
func (s *Session) call(fn func(*Session)) {
	defer func() {
		if p := recover(); p != nil {
			s.hub.opts.Logger.Error("session handler panicked", "session", s.ID(), "panic", p, "stack", string(debug.Stack()))
			s.Close(codeBroken, "internal error")
		}
	}()
	fn(s)
}

// end takes the session out of the hub's index, answers the peer's close frame, waits for the drainer and closes the
// connection. err is why the reader stopped.
func (s *Session) end(err error) {
	closed := (*websocket.CloseError)(nil)
	byPeer := errors.As(err, &closed) && closed.Code != codeVanished // gorilla reports an end without a close frame as 1006

	s.mu.Lock()
	switch {
	case s.bye != nil && byPeer:
		// Both closed at once: ours is written, or fails, within its deadline.
	case s.bye != nil:
		s.silence()
	case byPeer:
		s.silence() // a peer that closed reads no more
		s.done = false
		s.close(answer(closed.Code), "")
		s.bye.label, s.bye.byPeer = closed.Code, true
	default:
		s.bye = &farewell{label: failure(err)}
		s.silence()
	}
	s.gone = true
	var idle chan struct{}
	if s.writing {
		idle = make(chan struct{})
		s.idle = idle
	}
	s.mu.Unlock()

	s.hub.ofID(s.id).wheel.remove(s)
	s.Unbind()
	if !byPeer {
		s.conn.Close() // frees a drainer that is in the middle of a write
	}
	if idle != nil {
		<-idle
	}
	s.conn.Close()
}

// answer is the code that answers a peer's close frame: its own, where it may be sent.
func answer(code int) int {
	if sendable(code) {
		return code
	}
	return websocket.CloseNormalClosure
}

// failure is the code by which a session that ended without a close frame of the peer is counted: 1002 where gorilla
// refused a frame and said so to the peer, 1006 otherwise.
func failure(err error) int {
	network, closed := net.Error(nil), (*websocket.CloseError)(nil)
	if errors.As(err, &network) || errors.As(err, &closed) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return codeVanished
	}
	return websocket.CloseProtocolError
}
