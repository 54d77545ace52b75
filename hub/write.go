package hub

import (
	"errors"
	"math"
	"net"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"
)

const (
	// maxReason is what a close frame has room for: 125 bytes less the code.
	maxReason = 123

	// writeAtOnce is how many bytes of waiting frames are written together, at most.
	writeAtOnce = 4 << 10

	codeRestarting = websocket.CloseServiceRestart    // 1012
	codeOverloaded = websocket.CloseTryAgainLater     // 1013
	codeBroken     = websocket.CloseInternalServerErr // 1011
	codeVanished   = websocket.CloseAbnormalClosure   // 1006; only ever counted
)

// Send queues a frame that must be delivered. It does nothing once the session is closing. When Options.Pending frames
// wait already, or a write takes longer than Options.WriteTimeout, the session is closed with 1013.
func (s *Session) Send(f *Frame) { s.send(f) }

// SendWithNext is Send for a frame that is soon followed by another: the two are written together.
func (s *Session) SendWithNext(f *Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enqueue(f)
}

// send reports whether the frame was queued.
func (s *Session) send(f *Frame) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.enqueue(f) {
		return false
	}
	s.wake()
	return true
}

// enqueue puts a frame into the queue, or closes the session of a peer that is too slow; under s.mu.
func (s *Session) enqueue(f *Frame) bool {
	if s.bye != nil || s.done {
		return false
	}
	if len(s.queue) >= s.hub.opts.Pending {
		s.close(codeOverloaded, "too slow")
		return false
	}
	s.queue = append(s.queue, f)
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

// drain writes until nothing is queued. What is queued together goes to the kernel together.
func (s *Session) drain() {
	var out output
	for s.next(&out) {
		if out.late != nil {
			out.late.finish() // without a lock: whoever queues more must not wait for it
			continue
		}
		err := s.write(&out)
		if out.buffer != nil {
			s.hub.buffers.Put(out.buffer)
		}
		if err != nil {
			code := codeVanished
			if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
				code = codeOverloaded
			}
			s.abort(code)
			continue
		}
		for _, fn := range out.written {
			fn()
		}
		if out.bye != nil {
			s.saidBye()
		}
	}
}

// write writes what next took. The close frame goes through gorilla, which then knows of it: of a peer that breaks the
// rules afterwards it would otherwise complain in a second one.
func (s *Session) write(out *output) error {
	if len(out.wire) > 0 {
		if _, err := s.conn.NetConn().Write(out.wire); err != nil {
			return err
		}
	}
	if out.bye == nil {
		return nil
	}
	return s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(out.bye.code, out.bye.reason), out.by)
}

// output is what is written at once.
type output struct {
	wire    []byte
	buffer  *[]byte   // what wire is part of, if it must be given back; nil = it belongs to a frame
	written []func()  // to be called afterwards
	bye     *farewell // what ends it, if anything
	by      time.Time // by when it has to be written
	late    *Frame    // is to be encoded first; then there is nothing else
}

// next takes what is to be written, and says by when, or ends the drainer. Nothing but drainers writes to the connection,
// except that gorilla's reader may say what is wrong with a frame; every write is of whole frames, so the two cannot mix.
func (s *Session) next(out *output) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	*out = output{written: out.written[:0]}
	if out.late = s.unready(); out.late != nil {
		return true
	}
	var ok bool
	if out.wire, ok = s.take(out, math.MaxInt); !ok {
		s.writing = false
		if s.idle != nil {
			close(s.idle)
			s.idle = nil
		}
		return false
	}
	for {
		wire, ok := s.take(out, writeAtOnce-len(out.wire))
		if !ok {
			break
		}
		if out.buffer == nil {
			out.buffer = s.hub.buffers.Get().(*[]byte)
			out.wire = append((*out.buffer)[:0], out.wire...)
		}
		out.wire = append(out.wire, wire...)
	}
	by := time.Now().Add(s.hub.opts.WriteTimeout)
	if s.bye != nil && s.bye.by.Before(by) {
		by = s.bye.by
	}
	out.by = by
	if !s.aborted {
		_ = s.conn.NetConn().SetWriteDeadline(by) // its error is that of the write that follows
	}
	return true
}

// unready is the first queued frame that is not encoded yet; under s.mu.
func (s *Session) unready() *Frame {
	if s.position != nil && !s.position.ready() {
		return s.position
	}
	for _, f := range s.queue {
		if !f.ready() {
			return f
		}
	}
	return nil
}

// take takes the next thing that is to be written, unless it is longer than there is room for; under s.mu.
func (s *Session) take(out *output, room int) (wire []byte, ok bool) {
	var f *Frame
	switch {
	case s.done || out.bye != nil:
		return nil, false
	case s.pong != nil:
		wire, s.pong = appendFrame(nil, websocket.PongMessage, s.pong), nil
		return wire, true
	case s.pinging:
		s.pinging = false
		return appendFrame(nil, websocket.PingMessage, nil), true
	case s.position != nil && s.ahead == 0:
		if f = s.position; len(f.wire) > room {
			return nil, false
		}
		s.position = nil
	case len(s.queue) > 0:
		if f = s.queue[0]; len(f.wire) > room {
			return nil, false
		}
		s.queue[0] = nil
		s.ahead--
		if s.queue = s.queue[1:]; len(s.queue) == 0 {
			s.queue = nil // an idle session keeps no array
		}
	case s.bye != nil:
		out.bye = s.bye
		return nil, true
	default:
		return nil, false
	}
	if f.written != nil {
		out.written = append(out.written, f.written)
	}
	return f.wire, true
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
