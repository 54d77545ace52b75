package hub

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	reasonRestarting = "restarting"

	// patience is how long peers get to take and answer a close frame when everything must end at once.
	patience = time.Second

	// returnWithin bounds the delay told to a peer: the first step of the backoff that every client follows anyway.
	returnWithin = 3 * time.Second
)

// Drain empties the hub without a rush at whoever takes over: one session after another, in no order and spread evenly
// over the window, is sent the frame of moving and closed with 1012. moving is given a random delay, at most 3 s, after
// which the peer is to come back; it may be nil or return nil. A session whose handler is running is closed when the
// handler returns, so that its result is still delivered. New sessions are closed at once.
//
// Drain returns when all sessions have ended. When ctx ends first it closes the rest, which takes a second at most, and
// returns the error of ctx without waiting for handlers that still run. Close is still to be called.
func (h *Hub) Drain(ctx context.Context, window time.Duration, moving func(retryIn time.Duration) *Frame) error {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()

	list := h.all()
	h.opts.Logger.Info("draining sessions", "sessions", len(list), "window", window)
	empty := h.whenEmpty()
	start := h.clock()
	for i, s := range list {
		due := start + time.Duration(float64(window)*float64(i)/float64(len(list)))
		if err := h.pause(ctx, empty, due-h.clock()); err != nil {
			break
		}
		if moving != nil {
			if f := moving(rand.N(returnWithin)); f != nil {
				s.Send(f)
			}
		}
		s.retire()
	}
	select {
	case <-h.whenEmpty():
		return nil
	case <-ctx.Done():
	}
	rest := h.Len()
	h.finish()
	return fmt.Errorf("draining: sessions closed early, %d of them: %w", rest, ctx.Err())
}

// retire closes the session with 1012, after the handler has returned when it is running.
func (s *Session) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		s.retiring = true
		return
	}
	s.close(codeRestarting, reasonRestarting)
}

// Close closes all sessions with 1012 at once, drops after a second those that have not answered, and returns when all
// goroutines of the hub have ended; it waits for handlers that are running. It may be called again and always returns
// nil.
func (h *Hub) Close() error {
	h.mu.Lock()
	first := !h.closed
	h.closed = true
	h.mu.Unlock()
	h.finish()
	<-h.whenEmpty()
	if first {
		close(h.quit)
	}
	<-h.stopped
	h.hands.Wait()
	return nil
}

// finish closes all sessions, and drops those that have not ended after a moment.
func (h *Hub) finish() {
	for _, s := range h.all() {
		s.Close(codeRestarting, reasonRestarting)
	}
	timer := time.NewTimer(min(patience, h.opts.WriteTimeout))
	defer timer.Stop()
	select {
	case <-h.whenEmpty():
		return
	case <-timer.C:
	}
	for _, s := range h.all() {
		s.abort(codeVanished)
	}
}

// all are the sessions of the hub, those of one shard in no order and shard by shard.
func (h *Hub) all() []*Session {
	var list []*Session
	for _, d := range h.shards {
		list = append(list, d.all()...)
	}
	return list
}

// whenEmpty is closed when there are no sessions.
func (h *Hub) whenEmpty() <-chan struct{} {
	ch := make(chan struct{})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.live == 0 {
		close(ch)
	} else {
		h.empty = append(h.empty, ch)
	}
	return ch
}

// pause waits for d, or until over is closed, or for the end of ctx, whose error it returns.
func pause(ctx context.Context, over <-chan struct{}, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
