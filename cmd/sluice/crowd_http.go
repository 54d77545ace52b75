package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// never is the pause before a request that must not be repeated.
const never = time.Duration(-1)

// shopOverHTTP sends one grab for each shopper, Concurrency at once.
func (c *crowd) shopOverHTTP(ctx context.Context) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range c.opts.Concurrency {
		workers.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= c.opts.Users || !c.arrive(ctx, n) {
					return
				}
				c.grabOverHTTP(ctx, n+1)
			}
		})
	}
	workers.Wait()
}

// grabOverHTTP is the whole life of a shopper without a socket: one request, repeated under its id until it is answered.
func (c *crowd) grabOverHTTP(ctx context.Context, n int) {
	user, token, err := c.identity(ctx, n)
	if err != nil {
		if ctx.Err() == nil || limited(err) {
			c.end(c.turnedAway(err))
		}
		return
	}
	body, err := json.Marshal(struct {
		Item      string `json:"item,omitempty"`
		Qty       int64  `json:"qty"`
		RequestID string `json:"request_id"`
	}{c.opts.Item, c.opts.Qty, uuid.NewString()})
	if err != nil {
		c.fail(err.Error())
		return
	}
	c.counters.connected.Add(1)
	defer c.counters.connected.Add(-1)

	sent := time.Now()
	var said error // instead of an answer to the grab
	for attempt := 0; ; attempt++ {
		answer, again, err := c.post(ctx, token, body, "seckill", c.opts.Sale)
		if err == nil {
			c.times.grab.add(time.Since(sent))
			c.answered(user, answer, attempt > 0)
			return
		}
		if again < 0 {
			c.end(c.turnedAway(err))
			return
		}
		said = lastWord(said, err)
		if again > 0 {
			c.counters.limited.Add(1)
		} else {
			c.counters.refused.Add(1)
			again = c.opts.Backoff(attempt)
		}
		if !sleep(ctx, again) {
			if limited(said) {
				c.end(c.turnedAway(said))
			}
			return
		}
	}
}

// answered counts the answer to a grab. After a repetition `already` is the order of the first attempt, if that was lost.
func (c *crowd) answered(user string, answer []byte, repeated bool) {
	var grab struct {
		Result string     `json:"result"`
		Order  *wireOrder `json:"order"`
	}
	if err := json.Unmarshal(answer, &grab); err != nil {
		c.fail("unreadable answer")
		return
	}
	result := grab.Result
	if result == "already" && repeated && grab.Order != nil {
		result = "success"
	}
	switch result {
	case "success":
		if grab.Order == nil || grab.Order.ID == "" {
			c.fail("success without an order")
			return
		}
		c.ledger.told(user, *grab.Order)
		c.end(outcomeSuccess)
	case "already":
		c.end(outcomeAlready)
	case "sold_out":
		c.end(outcomeSoldOut)
	case "no_turn":
		c.end(outcomeNoTurn)
	case "not_open":
		c.end(outcomeNotOpen)
	default:
		c.fail("unknown result")
	}
}

// post sends one request and returns the body of a 2xx answer. With an error it says when it may be repeated: after a
// positive pause that the server named, after a pause of the caller's choice (0), or never.
func (c *crowd) post(ctx context.Context, token string, body []byte, path ...string) ([]byte, time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.api.JoinPath(path...).String(), bytes.NewReader(body))
	if err != nil {
		return nil, never, fmt.Errorf("make a request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, 0, cause(err) // whether the server took it is unknown: the same id settles it
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	switch {
	case err != nil:
		return nil, 0, err
	case resp.StatusCode/100 == 2:
		return answer, 0, nil
	}
	var p problem
	_ = json.Unmarshal(answer, &p) // a proxy's answer is no problem document, and then the status says it all
	err = &answerError{status: resp.StatusCode, code: firstOf(p.Code, "answered "+resp.Status), reason: p.Reason, detail: p.Detail}
	switch {
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable:
		return nil, retryAfter(resp, p), err
	case resp.StatusCode >= 500:
		return nil, 0, err
	}
	return nil, never, err
}

// retryAfter is the pause that an answer asks for, 0 when it names none.
func retryAfter(resp *http.Response, p problem) time.Duration {
	if p.RetryAfterMS > 0 {
		return time.Duration(p.RetryAfterMS) * time.Millisecond
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return 0
}

// end counts the outcome of one shopper.
func (c *crowd) end(o outcome) { c.counters.outcomes[o].Add(1) }

// fail counts a shopper who was refused for good, and why.
func (c *crowd) fail(why string) {
	c.ledger.failed(why)
	c.end(outcomeFailed)
}
