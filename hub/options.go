package hub

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options are the settings of a Hub. A zero field means its default.
type Options struct {
	Shards int // parts the sessions are divided into, each with its own locks; 32

	HelloWithin  time.Duration // a session whose first message takes longer is closed with 4408; 10 s
	PingEvery    time.Duration // how often a peer is pinged, the first time at a random moment; 25 s, below the idle timeouts of common proxies (60 s)
	SilentAfter  time.Duration // a peer not heard of for so long is dropped; 60 s
	WriteTimeout time.Duration // bounds each write, and the closing of a session as a whole; 5 s

	MaxHello   int64 // bytes of the first message; 16 KiB
	MaxMessage int64 // bytes of each later one; 4 KiB

	Pending     int // must-deliver frames that may wait for one session; 64
	ConnsPerKey int // sessions one key may have; 8, negative for no limit

	// A session may send Burst frames at once and MessagesPerSecond in the long run, pings and pongs included; one
	// that sends more is closed with 4429. 10 and 20; a negative rate means no limit.
	MessagesPerSecond float64
	Burst             int

	Logger     *slog.Logger          // nil discards
	Registerer prometheus.Registerer // nil counts for nobody
	Now        func() time.Time      // time.Now
}

// defaultConnsPerKey is that of Options.ConnsPerKey.
const defaultConnsPerKey = 8

func (o Options) withDefaults() Options {
	o.Shards = cmp.Or(o.Shards, 32)
	o.HelloWithin = cmp.Or(o.HelloWithin, 10*time.Second)
	o.PingEvery = cmp.Or(o.PingEvery, 25*time.Second)
	o.SilentAfter = cmp.Or(o.SilentAfter, time.Minute)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 5*time.Second)
	o.MaxHello = cmp.Or(o.MaxHello, 16<<10)
	o.MaxMessage = cmp.Or(o.MaxMessage, 4<<10)
	o.Pending = cmp.Or(o.Pending, 64)
	o.MessagesPerSecond = cmp.Or(o.MessagesPerSecond, 10)
	o.Burst = cmp.Or(o.Burst, 20)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
