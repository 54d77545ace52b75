package server

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v5"

	"sluice/queue"
)

// maxWindow bounds the memory of a window: 8 bytes for each request that its limit allows at once.
const maxWindow = 1 << 20

// window is a limit of N requests in any stretch of time of its length. A token bucket full at the edge of a second
// lets through nearly twice its rate within one; remembering when the last N passed costs 8 bytes each and is exact.
type window struct {
	rate queue.Rate

	mu   sync.Mutex
	at   []time.Duration // when the last N passed, since start; a ring
	next int             // where the oldest of them is
	used int             // how much of the ring was ever written
	zero time.Time
}

// CheckNodeLimit says whether a node can count so many requests as [Settings.NodeLimit] asks for.
func CheckNodeLimit(r queue.Rate) error {
	if r.N > maxWindow {
		return fmt.Errorf("rate %s: at most %d requests can be counted; use a shorter window", r, maxWindow)
	}
	return nil
}

// newWindow makes the window of a rate, nil for one that is off.
func newWindow(r queue.Rate) (*window, error) {
	if !r.On() {
		return nil, nil
	}
	if err := CheckNodeLimit(r); err != nil {
		return nil, err
	}
	return &window{rate: r, at: make([]time.Duration, r.N)}, nil
}

// take counts a request at now, or says how long until the next one may pass.
func (w *window) take(now time.Time) (wait time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.zero.IsZero() {
		w.zero = now
	}
	elapsed := now.Sub(w.zero)
	if w.used == len(w.at) {
		if wait := w.at[w.next] + w.rate.Per - elapsed; wait > 0 {
			return wait, false
		}
	} else {
		w.used++
	}
	w.at[w.next] = elapsed
	w.next = (w.next + 1) % len(w.at)
	return 0, true
}

// idle says whether nothing has passed within the window before now.
func (w *window) idle(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.used == 0 {
		return true
	}
	newest := w.at[(w.next+len(w.at)-1)%len(w.at)]
	return now.Sub(w.zero)-newest >= w.rate.Per
}

// limit refuses what is beyond this node's limit before anything is spent on it.
func (s *Server) limit(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		node := s.current().node
		if node == nil {
			return next(c)
		}
		now := s.now()
		wait, ok := node.take(now)
		if ok {
			return next(c)
		}
		s.counted.refused("node")
		return &queue.Error{
			Code:       queue.Limited,
			Message:    fmt.Sprintf("it is crowded: this server takes %s requests, and has had them; you keep your place, try again in a moment", node.rate),
			RetryAfter: wait,
			Limit:      node.rate.N,
			Reset:      now.Add(wait),
		}
	}
}

// caller is who sent a request that costs Redis or the database something and is no join or grab, which are counted where they
// are done. It is refused when it is beyond the limits of its user or address, which all nodes share.
func (s *Server) caller(c *echo.Context) (Identity, error) {
	who, err := s.current().identities.Request(c.Request())
	if err != nil {
		return who, err
	}
	return who, s.allow(c, who.User)
}

// limitAddress refuses what nobody in particular asks for when it is beyond the limit of its address.
func (s *Server) limitAddress(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		if err := s.allow(c, ""); err != nil {
			return err
		}
		return next(c)
	}
}

// allow asks the limits that all nodes share. While Redis does not answer, the limit of the node alone counts: orders can be paid
// without Redis, and what is there to protect it must not be what stops that.
func (s *Server) allow(c *echo.Context, user string) error {
	left, err := s.line.Allow(c.Request().Context(), user, addressOf(c))
	if queue.CodeOf(err) != queue.Limited {
		showAllowance(c, left)
		return nil
	}
	s.countLimited(err)
	return err
}

// countLimited counts a refusal by the limits that all nodes share.
func (s *Server) countLimited(err error) {
	var e *queue.Error
	if errors.As(err, &e) && e.Code == queue.Limited {
		s.counted.refused(e.By)
	}
}

// showAllowance says with an answer what the limits leave to who asked; nothing when no limit was asked.
func showAllowance(c *echo.Context, left *queue.Allowance) {
	if left != nil {
		setFigures(c.Response().Header(), left.Limit, left.Remaining, left.Reset)
	}
}

// hideAllowance takes that off an answer that caches may keep for everybody.
func hideAllowance(c *echo.Context) {
	for _, name := range []string{headerLimit, headerRemaining, headerReset} {
		c.Response().Header().Del(name)
	}
}

// setFigures writes the figures of a limit. The moment is rounded up, so that nobody comes early.
func setFigures(header http.Header, limit, remaining int64, reset time.Time) {
	header.Set(headerLimit, strconv.FormatInt(limit, 10))
	header.Set(headerRemaining, strconv.FormatInt(remaining, 10))
	header.Set(headerReset, strconv.FormatInt(reset.Add(time.Second-1).Unix(), 10))
}
