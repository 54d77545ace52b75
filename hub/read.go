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

// listen waits for a message and handles it; when the connection fails or the peer closes it ends the session. Each message is
// waited for by a goroutine of its own: handlers call deep, and the stack that had grown for one would stay as large for
// all the time that the peer says nothing. For the same reason the goroutine is nothing but that call: the stack of one who waits
// is just small enough for the least that there is, and some ten bytes more would double it.
func (s *Session) listen() {
	go func() {
		s.got.kind, s.got.text, s.got.err = s.conn.NextReader()
		s.receive()
	}()
}

// arrival is what a session has just read the beginning of.
type arrival struct {
	kind int
	text io.Reader
	err  error
}

// receive hands a message to the handler, and has the session read on after it. Once the session is closing it only waits for
// the peer's answer, and gorilla skips what comes before it.
func (s *Session) receive() {
	got := s.got
	s.got = arrival{}
	msg, err := []byte(nil), got.err
	if err == nil {
		msg, err = s.message(got.kind, got.text)
	}
	switch {
	case err != nil:
		s.end(err)
		s.call(s.handler.Closed)
		s.hub.left(s)
		return
	case msg == nil:
		s.listen()
		return
	}
	s.heard.Store(int64(s.hub.clock()))
	hello := !s.spoken
	s.spoken = true
	s.hub.engage(func() { s.dispatch(hello, msg) })
}

// message reads a message; nil is one that nobody is to hear of.
func (s *Session) message(kind int, r io.Reader) ([]byte, error) {
	if !s.heed() {
		return nil, nil
	}
	if kind != websocket.TextMessage {
		s.Close(codeBadMessage, "binary messages are not understood")
		return nil, nil
	}
	limit := s.hub.opts.MaxMessage
	if !s.spoken || s.rehear.Load() {
		limit = s.hub.opts.MaxHello
	}
	msg, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(msg)) > limit {
		s.Close(codeBadMessage, fmt.Sprintf("message is longer than %d bytes", limit))
		return nil, nil
	}
	if !utf8.Valid(msg) {
		s.Close(codeBadMessage, "message is not UTF-8")
		return nil, nil
	}
	if int64(len(msg)) > s.hub.opts.MaxMessage {
		s.rehear.Store(false)
	}
	return msg, nil
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

// dispatch hands one message to the handler, unless the session began to close meanwhile. The session reads on when the
// handler has returned and all that it put off is done.
func (s *Session) dispatch(hello bool, msg []byte) {
	s.mu.Lock()
	s.greeted = true
	closing := s.bye != nil || s.done
	s.busy = !closing
	s.mu.Unlock()
	s.holds.Store(1)
	if !closing {
		s.call(func(*Session) {
			if hello {
				s.handler.Hello(s, msg)
			} else {
				s.handler.Message(s, msg)
			}
		})
	}
	s.release()
}

// Later is for a handler that has to wait for something: its call counts as running until the function that it returns was
// called with the rest of it, from any goroutine, but holds no goroutine meanwhile. It may only be called from within Hello or
// Message.
func (s *Session) Later() func(rest func()) {
	s.holds.Add(1)
	return func(rest func()) {
		s.call(func(*Session) { rest() })
		s.release()
	}
}

// release lets go of one of the reasons not to read on.
func (s *Session) release() {
	if s.holds.Add(-1) != 0 {
		return
	}
	s.mu.Lock()
	s.busy = false
	if s.retiring {
		s.close(codeRestarting, reasonRestarting)
	}
	s.mu.Unlock()
	s.listen()
}

// call runs a method of the handler. There is no HTTP server above it that would keep a panic in one session from ending the
// process.
func (s *Session) call(fn func(*Session)) {
	defer func() {
		if p := recover(); p != nil {
			s.hub.opts.Logger.Error("session handler panicked", "session", s.ID(), "panic", p, "stack", string(debug.Stack()))
			s.holds.Store(1) // what it put off may never be done
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
