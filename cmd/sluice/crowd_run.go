package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// dialTimeout bounds the making of a connection, handshake included.
	dialTimeout = 30 * time.Second
	// auditEvery is the pause between two looks at a sale whose last orders are still on their way.
	auditEvery = 250 * time.Millisecond
	// auditPatience is how long orders may be on their way after the last shopper has its answer; the system promises 10 s.
	auditPatience = 15 * time.Second
	// crowdSettle is how long a shopper whose grab is under way waits for its own answer after it heard that the sale
	// is over for everyone: such news may overtake the answer.
	crowdSettle = 3 * time.Second
)

// crowdOptions say what a crowd is and does.
type crowdOptions struct {
	URL       string // of the server, http or https
	Sale      string
	Users     int
	Prefix    string        // shoppers are PREFIX-1 to PREFIX-Users
	Secret    []byte        // signs their tokens
	Claims    claimFlags    // and these are in them
	Guests    bool          // ask the server for guests instead
	Ramp      time.Duration // arrivals are spread over it
	Abandon   float64       // fraction of shoppers who leave
	GrabDelay time.Duration // a grab comes at a random moment within it
	Item      string        // "" = any that is left
	Qty       int64
	Codes     []string      // what the sale asks for, brought in turn; none = it asks for none
	Timeout   time.Duration // of the whole crowd; 0 = none
	Company   bool          // others may buy at the same time, so more may be sold than the crowd was told of

	HTTP        bool // no sockets: one grab a shopper over HTTP
	Concurrency int  // of HTTP

	Sources []net.IP // local addresses, used in turn; none = the system's choice

	// Audit reads the audit of the sale; nil = the report has none. It is read before the first shopper and after the last.
	Audit func(context.Context) (auditReport, error)

	// What follows has a default that only tests change.

	Backoff       func(attempt int) time.Duration // pause before a reconnect; the contract's full jitter
	Settle        time.Duration                   // crowdSettle
	AuditPatience time.Duration                   // auditPatience
}

// crowd is a number of simulated shoppers at one sale. It runs once.
type crowd struct {
	opts     crowdOptions
	counters crowdCounters
	times    *crowdTimes
	ledger   *crowdLedger
	api      *url.URL // base of the HTTP API
	socket   string   // URL of the WebSocket
	dialer   *websocket.Dialer
	http     *http.Client
	frames   sync.Pool    // *bytes.Buffer, for one frame at a time
	source   atomic.Int64 // how many local addresses were handed out
	began    atomic.Int64 // Unix nanoseconds; 0 = not yet
}

// newCrowd makes a crowd. The options must be sound; the command checks them.
func newCrowd(opts crowdOptions) *crowd {
	if opts.Backoff == nil {
		opts.Backoff = fullJitter
	}
	if opts.Settle == 0 {
		opts.Settle = crowdSettle
	}
	if opts.AuditPatience == 0 {
		opts.AuditPatience = auditPatience
	}
	c := &crowd{opts: opts, times: newCrowdTimes(), ledger: newCrowdLedger()}
	c.dialer = &websocket.Dialer{
		NetDialContext:   c.dial,
		HandshakeTimeout: dialTimeout,
		Subprotocols:     []string{"sluice.v1"},
		// A small buffer for each of many thousand readers; writers are rare and share theirs.
		ReadBufferSize:  1024,
		WriteBufferSize: 4096,
		WriteBufferPool: new(sync.Pool),
	}
	c.http = &http.Client{
		Timeout: dialTimeout,
		Transport: &http.Transport{
			DialContext:         c.dial,
			MaxIdleConns:        max(opts.Concurrency, 1),
			MaxIdleConnsPerHost: max(opts.Concurrency, 1),
			IdleConnTimeout:     dialTimeout,
		},
	}
	return c
}

// fullJitter is the contract's pause before the reconnect with that number, from 0.
func fullJitter(attempt int) time.Duration {
	longest := min(30*time.Second, 3*time.Second<<min(attempt, 10))
	return rand.N(longest)
}

// dial makes one connection, from the next of the local addresses.
func (c *crowd) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	if n := len(c.opts.Sources); n > 0 {
		dialer.LocalAddr = &net.TCPAddr{IP: c.opts.Sources[int(c.source.Add(1)-1)%n]}
	}
	return dialer.DialContext(ctx, network, address)
}

// Progress is the crowd as it is now. It may be called at any time, also while Run runs.
func (c *crowd) Progress() crowdProgress {
	var elapsed time.Duration
	if began := c.began.Load(); began > 0 {
		elapsed = time.Since(time.Unix(0, began))
	}
	return c.counters.snapshot(c.opts.Users, elapsed)
}

// Run sends the shoppers and blocks until each has its answer, the timeout passed or ctx ended, then until the audit is
// settled. What the crowd found to be untrue is in the report; the error is of a crowd that could not be sent at all.
func (c *crowd) Run(ctx context.Context) (crowdReport, error) {
	base, err := url.Parse(c.opts.URL)
	if err != nil {
		return crowdReport{}, fmt.Errorf("read the server's URL: %w", err)
	}
	c.api = base.JoinPath("api", "v1")
	socket := base.JoinPath("ws", "v1", "sales", c.opts.Sale)
	socket.Scheme = map[string]string{"https": "wss"}[base.Scheme]
	if socket.Scheme == "" {
		socket.Scheme = "ws"
	}
	c.socket = socket.String()
	defer c.http.CloseIdleConnections()

	var before auditReport
	if c.opts.Audit != nil {
		if before, err = c.opts.Audit(ctx); err != nil {
			return crowdReport{}, err
		}
	}

	began := time.Now()
	c.began.Store(began.UnixNano())
	shopping, cancel := ctx, context.CancelFunc(func() {})
	if c.opts.Timeout > 0 {
		shopping, cancel = context.WithTimeout(ctx, c.opts.Timeout)
	}
	if c.opts.HTTP {
		c.shopOverHTTP(shopping)
	} else {
		c.shopOverSockets(shopping)
	}
	cancel()

	report := c.report(time.Since(began))
	if c.opts.Audit != nil {
		c.compare(ctx, &report, before)
	}
	report.judge()
	return report, nil
}

// shopOverSockets lets every shopper arrive at its time and waits for all of them.
func (c *crowd) shopOverSockets(ctx context.Context) {
	var shoppers sync.WaitGroup
	defer shoppers.Wait()
	for n := range c.opts.Users {
		if !c.arrive(ctx, n) {
			return
		}
		shoppers.Go(func() { newShopper(c, n+1).shop(ctx) })
	}
}

// arrive waits for the arrival of the nth shopper, from 0; false when ctx ends first.
func (c *crowd) arrive(ctx context.Context, n int) bool {
	at := time.Unix(0, c.began.Load()).Add(time.Duration(float64(c.opts.Ramp) * float64(n) / float64(c.opts.Users)))
	return sleep(ctx, time.Until(at))
}

// compare reads the audit until everything has arrived in the database and puts it beside what the shoppers were told.
func (c *crowd) compare(ctx context.Context, report *crowdReport, before auditReport) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.AuditPatience)
	defer cancel()
	for {
		after, err := c.opts.Audit(ctx)
		if err == nil {
			report.Audit = &after
			report.Sold = after.sold() - before.marked()
		}
		// An audit that does not hold may only be early; one that still does not after this time is wrong.
		if err == nil && after.settled() && after.Balanced && report.explains() {
			return
		}
		if !sleep(ctx, auditEvery) {
			if report.Audit == nil && err != nil {
				report.AuditError = err.Error()
			}
			return
		}
	}
}

// identity returns a user and its token: the nth of our own, or a guest of the server.
func (c *crowd) identity(ctx context.Context, n int) (user, token string, err error) {
	if !c.opts.Guests {
		user = memberOf(c.opts.Prefix, n)
		token, err = c.opts.Claims.mint(c.opts.Secret, user, time.Now().Add(24*time.Hour))
		return user, token, err
	}
	var said error
	for attempt := 0; ; attempt++ {
		answer, again, err := c.post(ctx, "", nil, "guests")
		if err == nil {
			var guest struct {
				User  string `json:"user"`
				Token string `json:"token"`
			}
			if json.Unmarshal(answer, &guest) != nil || guest.Token == "" {
				return "", "", errors.New("the server's guest has no token")
			}
			return guest.User, guest.Token, nil
		}
		if again < 0 {
			return "", "", err
		}
		said = lastWord(said, err)
		if again > 0 {
			c.counters.limited.Add(1)
		}
		if !sleep(ctx, max(again, c.opts.Backoff(attempt))) {
			return "", "", errors.Join(ctx.Err(), said)
		}
	}
}

// sleep waits for d, and is false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
