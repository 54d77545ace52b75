package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"sluice/queue"
)

const (
	challengeTimeout = 5 * time.Second
	challengeAtOnce  = 64       // questions that a node has open at a verifier
	challengeWaiting = 1024     // shoppers of a node who wait for that verifier, those included
	longestAnswer    = 64 << 10 // bytes of a verifier's answer, and of its headers
	longestSolution  = 4 << 10  // bytes of what a shopper brings, above what verifiers hand out
)

// verifier asks a service, the kind that captchas have, whether what a shopper brings solves a challenge. It is asked
// once for each solution and never again, since a solution counts once; no answer is neither yes nor no. How many wait
// for it is bounded, for each host, so that a slow one costs the sales that name it some patience and the node nothing else.
type verifier struct {
	client  *http.Client
	timeout time.Duration

	mu     sync.Mutex
	crowds map[string]*questions // by host; those where somebody waits
}

// questions are those of one host that somebody waits for.
type questions struct {
	waiting int           // guarded by verifier.mu
	asking  chan struct{} // those that are open
}

func newVerifier() *verifier {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library says so
	transport.MaxIdleConnsPerHost, transport.MaxConnsPerHost = challengeAtOnce, challengeAtOnce
	transport.MaxResponseHeaderBytes = longestAnswer
	return &verifier{
		client: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		timeout: challengeTimeout,
		crowds:  map[string]*questions{},
	}
}

// solved is nil when the verifier says that it is. Errors: Forbidden with ChallengeNeeded when it says that it is not, and
// Unavailable when it says nothing that counts. It blocks challengeTimeout at most.
func (v *verifier) solved(ctx context.Context, secret, at, solution string, peer netip.Addr) error {
	if len(solution) > longestSolution {
		return queue.Barred(queue.ChallengeNeeded)
	}
	ctx, cancel := context.WithTimeout(ctx, v.timeout)
	defer cancel()
	leave, err := v.enter(ctx, at)
	if err != nil {
		return errNoVerdict(err)
	}
	defer leave()
	yes, err := v.ask(ctx, secret, at, solution, peer)
	switch {
	case err != nil:
		return errNoVerdict(err)
	case !yes:
		return queue.Barred(queue.ChallengeNeeded)
	}
	return nil
}

// enter waits until the verifier may be asked. leave is to be called after that.
func (v *verifier) enter(ctx context.Context, at string) (leave func(), err error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, errors.New("the URL of the verifier cannot be read")
	}
	v.mu.Lock()
	there := v.crowds[u.Host]
	if there == nil {
		there = &questions{asking: make(chan struct{}, challengeAtOnce)}
		v.crowds[u.Host] = there
	}
	if there.waiting >= challengeWaiting {
		v.mu.Unlock()
		return nil, errors.New("too many wait for the verifier")
	}
	there.waiting++
	v.mu.Unlock()
	goes := func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if there.waiting--; there.waiting == 0 {
			delete(v.crowds, u.Host)
		}
	}
	select {
	case there.asking <- struct{}{}:
		return func() { <-there.asking; goes() }, nil
	case <-ctx.Done():
		goes()
		return nil, ctx.Err()
	}
}

// ask is the question, as the services agree on it: a form with secret, response and remoteip, answered with JSON in which
// success is true or not.
func (v *verifier) ask(ctx context.Context, secret, at, solution string, peer netip.Addr) (bool, error) {
	form := url.Values{"response": {solution}}
	if secret != "" {
		form.Set("secret", secret)
	}
	if peer.IsValid() {
		form.Set("remoteip", peer.Unmap().String())
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	resp, err := v.client.Do(req)
	if err != nil {
		return false, withoutURL(err) // its query may hold a key
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, longestAnswer))
	if err != nil {
		return false, err
	}
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("the verifier answered %s", resp.Status)
	}
	var answer struct {
		Success *bool `json:"success"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Success == nil {
		return false, errors.New("the verifier's answer is no JSON object with success")
	}
	return *answer.Success, nil
}

// errNoVerdict is what a shopper hears who could not be asked about. Nobody is let in for the want of an answer, and
// nobody is turned away.
func errNoVerdict(cause error) error {
	return &queue.Error{
		Code:       queue.Unavailable,
		Message:    "your challenge cannot be checked right now; nothing was taken, try again in a moment",
		RetryAfter: time.Second,
		Err:        fmt.Errorf("ask the verifier of challenges: %w", cause),
	}
}
