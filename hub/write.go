package hub

import (
	"errors"
	"net"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"
)

const (
	// maxReason is what a close frame has room for: 125 bytes less the code.
	maxReason = 123

	codeRestarting = websocket.CloseServiceRestart    // 1012
	codeOverloaded = websocket.CloseTryAgainLater     // 1013
	codeBroken     = websocket.CloseInternalServerErr // 1011
	codeVanished   = websocket.CloseAbnormalClosure   // 1006; only ever counted
)

// Send queues a frame that must be delivered. It does nothing once the session is closing. When Options.Pending frames
// wait already, or a write takes longer than Options.WriteTimeout, the session is closed with 1013.
func (s *Session) Send(f *Frame) { s.send(f) }

// send reports whether the frame was queued.
func (s *Session) send(f *Frame) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bye != nil || s.done {
		return false
	}
	if len(s.queue) >= s.hub.opts.Pending {
		s.close(codeOverloaded, "too slow")
		return false
	}
	s.queue = append(s.queue, f)
	s.wake()
	return true
}

// Position queues a frame that the next one makes obsolete: if the last one still waits it is replaced.
func (s *Session) Position(f *Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bye != nil || s.done {
		return
	}
	s.position, s.ahead = f, len(s.queue)
	s.wake()
}

// Close has the frames queued with Send written, then a close frame, and ends the session when the peer answers it; all
// within Options.WriteTimeout for writing and as much for the answer. The first call decides code and reason; later
// ones do nothing. A code that must not be sent (1005, 1006 and such) becomes 1011, and the reason is cut to what fits.
func (s *Session) Close(code int, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close(code, reason)
}

// close is Close under s.mu.
func (s *Session) close(code int, reason string) {
	if s.bye != nil || s.done {
		return
	}
	if !sendable(code) {
		code = codeBroken
	}
	s.bye = &farewell{code: code, reason: cut(reason), by: time.Now().Add(s.hub.opts.WriteTimeout), label: code}
	s.position = nil
	s.wake()
}

// abort ends the session without a close frame, for a peer that would not take one. It does not wait: the reader, and
// a drainer in the middle of a write, find their deadlines in the past.
func (s *Session) abort(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silence() // also when the reader has gone: what cannot be written must not be tried for ever
	if s.gone {
		return
	}
	if s.bye == nil {
		s.bye = &farewell{label: code}
	}
	s.aborted = true
	_ = s.conn.NetConn().SetDeadline(time.Unix(1, 0)) // fails only on a closed connection, which is what is wanted
}

// silence has nothing more written; under s.mu.
func (s *Session) silence() {
	s.done = true
	s.queue, s.position, s.pong, s.pinging = nil, nil, nil, false
}

// ping has a ping written.
func (s *Session) ping() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bye != nil || s.done {
		return
	}
	s.pinging = true
	s.wake()
}

// wake starts the drainer unless it runs; under s.mu.
func (s *Session) wake() {
	if !s.writing {
		s.writing = true
		go s.drain()
	}
}

// output is one thing to be written.
type output struct {
	frame *Frame
	ping  bool
	pong  []byte
	bye   *farewell
	by    time.Time
}

// drain writes until nothing is queued.
func (s *Session) drain() {
	for {
		out, ok := s.next()
		if !ok {
			return
		}
		if err := s.write(out); err != nil {
			code := codeVanished
			if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
				code = codeOverloaded
			}
			s.abort(code)
		} else if out.bye != nil {
			s.saidBye()
		}
	}
}

// next takes what is to be written, or ends the drainer.
func (s *Session) next() (out output, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.done:
	case s.pong != nil:
		out.pong, s.pong = s.pong, nil
		ok = true
	case s.pinging:
		out.ping, s.pinging = true, false
		ok = true
	case s.position != nil && s.ahead == 0:
		out.frame, s.position = s.position, nil
		ok = true
	case len(s.queue) > 0:
		out.frame = s.queue[0]
		s.queue[0] = nil
		s.ahead--
		if s.queue = s.queue[1:]; len(s.queue) == 0 {
			s.queue = nil // an idle session keeps no array
		}
		ok = true
	case s.bye != nil:
		out.bye = s.bye
		ok = true
	}
	if !ok {
		s.writing = false
		if s.idle != nil {
			close(s.idle)
			s.idle = nil
		}
		return out, false
	}
	out.by = time.Now().Add(s.hub.opts.WriteTimeout)
	if s.bye != nil && s.bye.by.Before(out.by) {
		out.by = s.bye.by
	}
	return out, true
}

func (s *Session) write(out output) error {
	// An error of SetWriteDeadline is that of the write that follows.
	_ = s.conn.SetWriteDeadline(out.by)
	switch {
	case out.frame != nil:
		return out.frame.writeTo(s.conn)
	case out.ping:
		return s.conn.WritePreparedMessage(s.hub.ping)
	case out.pong != nil:
		return s.conn.WriteControl(websocket.PongMessage, out.pong, out.by)
	default:
		return s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(out.bye.code, out.bye.reason), out.by)
	}
}

// saidBye gives the peer as long to answer the close frame as it had to take it. The answer is waited for because
// closing a connection with unread bytes resets it, and a reset can overtake the close frame.
func (s *Session) saidBye() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silence()
	if !s.aborted {
		_ = s.conn.SetReadDeadline(time.Now().Add(s.hub.opts.WriteTimeout))
	}
}

// sendable tells whether RFC 6455 allows an endpoint to send the close code.
func sendable(code int) bool {
	switch code {
	case 1004, websocket.CloseNoStatusReceived, websocket.CloseAbnormalClosure, websocket.CloseTLSHandshake:
		return false
	}
	return code >= 1000 && code <= 1014 || code >= 3000 && code <= 4999
}

// cut shortens a reason to what a close frame can carry, at the start of a character. What is no UTF-8 is left out: the
// peer would take the whole close frame for a fault.
func cut(reason string) string {
	reason = strings.ToValidUTF8(reason, "")
	if len(reason) <= maxReason {
		return reason
	}
	end := maxReason
	for !utf8.RuneStart(reason[end]) {
		end--
	}
	return reason[:end]
}
