package server

import (
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v5"
)

// streamWrite is how long a client may take to read one part of an answer that goes on and on.
const streamWrite = 30 * time.Second

// stream is an answer that takes longer than the HTTP server allows, whose limit is for plain requests. Each part has a
// limit of its own instead: a client that stopped reading is let go.
type stream struct {
	response http.ResponseWriter
	control  *http.ResponseController
}

func newStream(c *echo.Context) *stream {
	return &stream{response: c.Response(), control: http.NewResponseController(c.Response())}
}

// Write hands a part to the client. It blocks while the client does not read, up to streamWrite. Where the limit cannot be
// moved, as in some tests, the one of the server holds.
func (s *stream) Write(part []byte) (int, error) {
	_ = s.control.SetWriteDeadline(time.Now().Add(streamWrite))
	return s.response.Write(part)
}

// flush sends what was written so far.
func (s *stream) flush() error { return s.control.Flush() }

// streams lets all streams without an end of their own end together, so that a node that is to end need not wait for them.
type streams struct {
	mu   sync.Mutex
	over chan struct{} // closed to end those that run; nil while none may begin
}

func newStreams() *streams { return &streams{over: make(chan struct{})} }

// allow says whether streams may begin; those that run end when they may not.
func (s *streams) allow(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case on && s.over == nil:
		s.over = make(chan struct{})
	case !on && s.over != nil:
		close(s.over)
		s.over = nil
	}
}

// begin returns what is closed when the stream has to end, and whether it may begin.
func (s *streams) begin() (over <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over, s.over != nil
}
