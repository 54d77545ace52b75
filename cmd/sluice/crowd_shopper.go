package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// silence is how long a server that pings every 25 s may say nothing before the connection is given up.
	silence = 75 * time.Second
	// writeTimeout bounds the writing of one small frame.
	writeTimeout = 10 * time.Second
	// steady is how long a connection must have lasted for reconnects to begin anew with the shortest pause.
	steady = 60 * time.Second
	// maxFrame is far above the largest frame, a welcome with the public view of a sale of 50 items.
	maxFrame = 1 << 20
)

// shopper is one person in front of the page. It lives in the goroutine that reads its frames; timers act beside it.
type shopper struct {
	crowd  *crowd
	n      int  // from 1
	leaves bool // it will go before it buys

	user, token string // set before the first connection

	mu   sync.Mutex // guards what follows, and all writing to conn but control frames
	conn *websocket.Conn
	// Of the present connection.
	dialled  time.Time
	welcomed bool
	planned  bool          // a grab is thought of: sent, or about to be
	sent     bool          // the pending grab was sent
	none     bool          // nothing at all was left, when that was said last
	doubt    bool          // the sale is over for everyone, and the own grab is still under way
	pause    time.Duration // what the server asked to wait before the next connection, from pausedAt; 0 = nothing
	pausedAt time.Time

	// Kept over connections.
	seat     string // token of the seat
	number   int64
	epoch    int64
	ahead    int64 // -1 = not known
	items    []string
	gone     []string // items that the shopper knows to be sold out
	joined   bool
	admitted bool
	phase    phase
	request  string // id of the grab that has no answer yet
	item     string // wanted by it
	repeated bool   // it was sent over a connection that broke
	sentAt   time.Time
	order    string // id of the order that the shopper was told of
	boughtAt time.Time
	limited  error // why the server wanted to be asked later, when that was its last word; nil = it was not
	outcome  outcome
}

// errLimited is the wish of a frame to be asked later.
var errLimited = &answerError{status: http.StatusTooManyRequests, code: "limited"}

func newShopper(c *crowd, n int) *shopper {
	s := &shopper{crowd: c, n: n, ahead: -1, leaves: rand.Float64() < c.opts.Abandon}
	c.counters.phases[phaseAway].Add(1)
	if c.opts.Item != "" {
		s.items = []string{c.opts.Item}
	}
	return s
}

// shop is the shopper's whole visit: it returns when the shopper knows how the sale ended for it, or when ctx ends.
func (s *shopper) shop(ctx context.Context) {
	defer s.goHome()
	var err error
	if s.user, s.token, err = s.crowd.identity(ctx, s.n); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if ctx.Err() == nil || limited(err) {
			s.end(s.crowd.turnedAway(err))
		}
		return
	}
	for attempt := 0; ; attempt++ {
		began := time.Now()
		conn, err := s.connect(ctx)
		if err == nil {
			err = s.visit(ctx, conn, began)
		}
		if s.ended(err) || ctx.Err() != nil {
			return
		}
		if time.Since(began) > steady {
			attempt = 0
		}
		wait, asked := s.askedPause()
		if !asked {
			wait = s.crowd.opts.Backoff(attempt)
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

// connect dials. It blocks for the handshake.
func (s *shopper) connect(ctx context.Context) (*websocket.Conn, error) {
	conn, resp, err := s.crowd.dialer.DialContext(ctx, s.crowd.socket, nil)
	if err == nil {
		return conn, nil
	}
	switch {
	case resp != nil && resp.StatusCode == http.StatusTooManyRequests:
		s.mu.Lock()
		s.comeLater(errLimited)
		s.mu.Unlock()
	case ctx.Err() == nil:
		s.crowd.counters.refused.Add(1)
	}
	if resp != nil {
		return nil, fmt.Errorf("connect: answered %s: %w", resp.Status, err)
	}
	return nil, fmt.Errorf("connect: %w", err)
}

// visit says hello and handles frames until the connection ends, and says why it did.
func (s *shopper) visit(ctx context.Context, conn *websocket.Conn, dialled time.Time) error {
	defer s.disconnect()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	err := s.hello(conn, dialled)
	if err == nil {
		err = s.read(conn)
	}
	if ctx.Err() == nil {
		s.lost(err)
	}
	return err
}

// lost notes a connection that ended in the middle of the visit without the node having asked to move. Where a refusal of
// access came instead of a welcome, there was no visit.
func (s *shopper) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outcome != outcomePending || s.pause > 0 {
		return
	}
	if kind, _ := refusalOf(err); kind != outcomeFailed && !s.welcomed {
		if kind == outcomeLimited {
			s.comeLater(err)
		}
		return
	}
	code := websocket.CloseAbnormalClosure
	var closed *websocket.CloseError
	if errors.As(err, &closed) {
		code = closed.Code
	}
	s.crowd.ledger.cutOff(code)
}

// comeLater notes a connection that the server does not want now. Under mu.
func (s *shopper) comeLater(why error) {
	s.limited = why
	s.crowd.counters.limited.Add(1)
}

// hello makes conn the shopper's connection and joins, or resumes the seat.
func (s *shopper) hello(conn *websocket.Conn, dialled time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crowd.counters.connected.Add(1)
	if !s.dialled.IsZero() {
		s.crowd.counters.reconnects.Add(1)
	}
	s.conn, s.dialled = conn, dialled
	s.welcomed, s.planned, s.sent, s.doubt, s.pause = false, false, false, false, 0
	return s.greet()
}

// greet says hello. Under mu.
func (s *shopper) greet() error {
	return s.write(struct {
		Type  string `json:"type"`
		Token string `json:"token"`
		Seat  string `json:"seat,omitempty"`
		Order string `json:"order,omitempty"`
		Code  string `json:"code,omitempty"`
	}{"hello", s.token, s.seat, s.order, s.code()})
}

// code is the shopper's code, "" = it has none.
func (s *shopper) code() string {
	codes := s.crowd.opts.Codes
	if len(codes) == 0 {
		return ""
	}
	return codes[s.n%len(codes)]
}

// read handles frames until the visit is over, or the connection.
func (s *shopper) read(conn *websocket.Conn) error {
	conn.SetReadLimit(maxFrame)
	conn.SetPingHandler(func(data string) error {
		_ = conn.SetReadDeadline(time.Now().Add(silence))
		err := conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTimeout))
		var timeout net.Error
		if errors.Is(err, websocket.ErrCloseSent) || errors.As(err, &timeout) {
			return nil // the read that follows says what is wrong with the connection
		}
		return err
	})
	for {
		_ = conn.SetReadDeadline(time.Now().Add(silence))
		_, message, err := conn.NextReader()
		if err != nil {
			return err
		}
		buffer, _ := s.crowd.frames.Get().(*bytes.Buffer)
		if buffer == nil {
			buffer = new(bytes.Buffer)
		}
		buffer.Reset()
		if _, err = buffer.ReadFrom(message); err != nil {
			return err
		}
		var f frame
		err = json.Unmarshal(buffer.Bytes(), &f)
		s.crowd.frames.Put(buffer)
		if err != nil {
			return fmt.Errorf("understand a frame: %w", err)
		}
		if s.handle(&f, time.Now()) {
			return nil
		}
	}
}

// disconnect forgets the connection. A grab that was under way has an unknown outcome from here on.
func (s *shopper) disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn.Close()
	s.conn = nil
	s.crowd.counters.connected.Add(-1)
	if s.request != "" && s.sent && s.limited == nil { // a limited one took nothing
		s.repeated = true
	}
	if s.outcome == outcomePending {
		s.enter(phaseAway)
	}
}

// ended says whether the visit is over after a connection that ended with err.
func (s *shopper) ended(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outcome != outcomePending {
		return true
	}
	// Who was let in is not asked again: to be kept out later is no outcome but an error.
	if kind, _ := refusalOf(err); kind != outcomeFailed && kind != outcomeLimited && !s.joined && s.order == "" {
		s.end(s.crowd.turnedAway(err))
		return true
	}
	var closed *websocket.CloseError
	if errors.As(err, &closed) && finalClose(closed.Code) {
		s.fail(fmt.Sprintf("close %d %s", closed.Code, closed.Text))
		return true
	}
	return false
}

// finalClose says whether a close code forbids to come back, by the contract's client rule.
func finalClose(code int) bool {
	return code >= 4400 && code <= 4407 || code == 4409
}

// askedPause is what is left of the pause that the server asked for, if it did. It holds for one attempt: when that
// fails, the backoff is the shopper's own.
func (s *shopper) askedPause() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.pause
	s.pause = 0
	return asked - time.Since(s.pausedAt), asked > 0
}

// goHome counts what the shopper takes home besides its outcome.
func (s *shopper) goHome() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.outcome != outcomePending:
	case s.order != "":
		s.crowd.counters.unconfirmed.Add(1)
	case s.limited != nil && !s.repeated: // of a repeated grab it is not known whether it took something
		s.end(s.crowd.turnedAway(s.limited))
	}
	s.enter(phaseDone)
}

// write sends one frame, under mu. After an error the connection is closed, and the reader finds out.
func (s *shopper) write(frame any) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err := s.conn.WriteJSON(frame); err != nil {
		s.conn.Close()
		return fmt.Errorf("write a frame: %w", err)
	}
	return nil
}

// later runs do after d, under mu, unless the connection or the visit has ended by then.
func (s *shopper) later(d time.Duration, do func()) {
	conn := s.conn
	time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.conn == conn && s.outcome == outcomePending {
			do()
		}
	})
}

// comeBack ends the connection after d, with no further pause before the next one. Under mu.
func (s *shopper) comeBack(d time.Duration) {
	s.pause, s.pausedAt = max(d, 1), time.Now()
	conn := s.conn
	s.later(d, func() { conn.Close() })
}

// enter moves the shopper to another phase. Under mu.
func (s *shopper) enter(p phase) {
	s.crowd.counters.phases[s.phase].Add(-1)
	s.crowd.counters.phases[p].Add(1)
	s.phase = p
}

// end is the end of the visit: the shopper knows how the sale ended for it and closes the page. Under mu.
func (s *shopper) end(o outcome) {
	if s.outcome != outcomePending {
		return
	}
	s.outcome = o
	s.crowd.end(o)
	s.enter(phaseDone)
	s.closePage(true)
}

// fail ends the visit of a shopper who was refused for good. Under mu.
func (s *shopper) fail(why string) {
	if s.outcome == outcomePending {
		s.crowd.ledger.failed(why)
		s.end(outcomeFailed)
	}
}

// closePage closes the connection, politely or as a phone does whose battery is empty. Under mu.
func (s *shopper) closePage(polite bool) {
	if s.conn == nil {
		return
	}
	if polite {
		// A failure only means that the connection is gone already.
		_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
	}
	s.conn.Close()
}
