package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"sluice/queue"
)

// Keyring is the public keys of an identity provider, a JWK Set (RFC 7517). It reads them when it begins to run, again and
// again from then on, and when a token names a key that it does not know: providers change their keys, and sign with the new
// one at once. Reading takes place in one goroutine, so however many such tokens come, the provider is asked once in a gap.
// A token whose key is known never waits, and whatever befalls the provider, the keys that were read last stand.
// It is safe for concurrent use.
type Keyring struct {
	source keySource
	log    *slog.Logger
	set    atomic.Pointer[keySet] // nil = never read

	wanted  chan struct{} // somebody waits for the next reading
	mu      sync.Mutex
	next    *reading // the next one that begins
	waiting atomic.Int64

	every    time.Duration // between readings, when nothing asks for one
	gap      time.Duration // between readings at least
	retry    time.Duration // after a reading that failed, at first
	patience time.Duration // of a token for the next reading
	most     int64         // tokens that may wait at once

	reads *prometheus.CounterVec
	last  atomic.Int64 // when the newest keys were read, ms since the epoch; 0 = never
}

// reading is one time that the keys are read.
type reading struct {
	done chan struct{} // closed when it has ended
	set  *keySet       // that it found; nil with err
	err  error
}

// NewKeyring makes a Keyring of the keys at an http:// or https:// URL, or in a file (file:///path or a path). A file must be there
// and have keys; a provider may be away, and then tokens cannot be judged until it answers. registerer may be nil.
func NewKeyring(from string, log *slog.Logger, registerer prometheus.Registerer) (*Keyring, error) {
	source, err := newKeySource(from)
	if err != nil {
		return nil, err
	}
	k := newKeyring(source, log, registerer)
	if source.local {
		set, err := source.take(context.Background())
		if err == nil {
			err = set.usable()
		}
		if err != nil {
			return nil, source.unread(err)
		}
	}
	if source.plain {
		k.log.Warn("the keys of tokens come over plain HTTP: whoever is on the way can let in anybody", "provider", source.name)
	}
	return k, nil
}

func newKeyring(source keySource, log *slog.Logger, registerer prometheus.Registerer) *Keyring {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	k := &Keyring{
		source: source, log: log, wanted: make(chan struct{}, 1), next: newReading(),
		every: source.every, gap: 3 * time.Second, retry: time.Second, patience: 5 * time.Second, most: 1000,
	}
	auto := promauto.With(registerer)
	k.reads = auto.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_jwks_reads_total",
		Help: "Readings of the identity provider's keys, by result: ok or failed.",
	}, []string{"result"})
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sluice_jwks_age_seconds",
		Help: "Time since the identity provider's keys were read; -1 = never.",
	}, k.age)
	return k
}

func newReading() *reading { return &reading{done: make(chan struct{})} }

// age is how old the keys are, in seconds.
func (k *Keyring) age() float64 {
	if last := k.last.Load(); last > 0 {
		return time.Since(time.UnixMilli(last)).Seconds()
	}
	return -1
}

// Run reads the keys until ctx ends.
func (k *Keyring) Run(ctx context.Context) {
	pause := k.retry
	for {
		began := time.Now()
		wait := k.every
		if err := k.read(ctx); err == nil {
			pause = k.retry
		} else {
			// Many nodes lose their provider at once, and are not to come back at once.
			wait = min(pause+rand.N(pause/2+1), k.every)
			pause = min(2*pause, max(k.retry, k.every/5))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-k.wanted:
			timer.Reset(time.Until(began.Add(k.gap)))
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// read reads the keys once. Whoever asks for a reading from here on gets the one after it: this one may come too early to
// have the key that a token was signed with a moment ago.
func (k *Keyring) read(ctx context.Context) error {
	k.mu.Lock()
	now := k.next
	k.next = newReading()
	select {
	case <-k.wanted: // by those who wait for this one
	default:
	}
	k.mu.Unlock()
	defer close(now.done)

	began := time.Now()
	set, err := k.source.take(ctx)
	if err != nil {
		now.err = err
		k.reads.WithLabelValues("failed").Inc()
		if ctx.Err() == nil {
			k.tellUnread(err)
		}
		return err
	}
	now.set = set
	k.reads.WithLabelValues("ok").Inc()
	k.last.Store(began.UnixMilli())
	before := k.set.Swap(set)
	if len(set.keys) == 0 {
		now.set, now.err = nil, errNoKeys
		k.log.Error("the provider has no keys for tokens: nobody can be let in by one", "provider", k.source.name, "ignored", set.useless())
		return errNoKeys
	}
	if before == nil || !before.same(set) {
		k.log.Info("the keys of tokens were read", "provider", k.source.name, "keys", len(set.keys))
		for _, reason := range set.ignored {
			k.log.Warn("a key of the provider is of no use and ignored", "provider", k.source.name, "reason", reason, "not_logged", set.beyond)
		}
	}
	return nil
}

// errNoKeys is that of a provider which has withdrawn all keys, or was set up wrongly. None of the keys before is taken any
// more, but what a token is worth is not known either.
var errNoKeys = errors.New("there is no key that signs with RS256, ES256 or EdDSA")

// tellUnread logs that the keys cannot be read, and what that means: with keys of an earlier reading very little.
func (k *Keyring) tellUnread(err error) {
	known := k.known()
	message := "the keys of tokens cannot be read; those read before stand"
	if known == 0 {
		message = "the keys of tokens cannot be read, and there are none of before: nobody can be let in by one"
	}
	k.log.Error(message, "provider", k.source.name, "error", err, "known", known)
}

// known is how many keys tokens are verified by now.
func (k *Keyring) known() int {
	if set := k.set.Load(); set != nil {
		return len(set.keys)
	}
	return 0
}

// find returns the key for a token. One that is not known is looked for in a reading that begins after the token came, for at
// most patience: only then can it be said that the provider does not have it. Where that cannot be found out the error is a
// *queue.Error Unavailable.
func (k *Keyring) find(ctx context.Context, algorithm, id string) (any, error) {
	if set := k.set.Load(); set != nil {
		if key, err := set.find(algorithm, id); !errors.Is(err, errUnknownKey) {
			return key, err
		}
	}
	set, err := k.renew(ctx)
	if err != nil {
		// The cause is in the log already, once for each reading and not for each token.
		return nil, &queue.Error{
			Code: queue.Unavailable, Message: "your sign-in cannot be checked right now; try again in a moment", RetryAfter: k.gap,
		}
	}
	return set.find(algorithm, id)
}

// renew waits for a reading that begins after the call, and returns what it found.
func (k *Keyring) renew(ctx context.Context) (*keySet, error) {
	defer k.waiting.Add(-1)
	if k.waiting.Add(1) > k.most {
		return nil, errors.New("too many wait for the keys of tokens already")
	}
	k.mu.Lock()
	next := k.next
	select {
	case k.wanted <- struct{}{}:
	default:
	}
	k.mu.Unlock()
	timer := time.NewTimer(k.patience)
	defer timer.Stop()
	select {
	case <-next.done:
		return next.set, next.err
	case <-timer.C:
		return nil, errors.New("the keys of tokens were not read in time")
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the keys of tokens: %w", ctx.Err())
	}
}
