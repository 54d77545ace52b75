package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// message is what is broadcast, as long as the frame that says a sale is paused.
var message = `{"type":"paused","at":1900000000000,"why":"` + strings.Repeat("x", 60) + `"}`

// tell gives peers an order and waits for the answer.
func tell(p *process, o order) (told, error) {
	if err := json.NewEncoder(p.in).Encode(o); err != nil {
		return told{}, fmt.Errorf("tell the peers: %w", err)
	}
	line, err := p.line()
	if err != nil {
		return told{}, err
	}
	var t told
	if err := json.Unmarshal([]byte(line), &t); err != nil {
		return told{}, fmt.Errorf("the peers said %q: %w", line, err)
	}
	switch {
	case t.Error != "":
		return t, fmt.Errorf("peers: %s (log: %s)", t.Error, p.log)
	case t.Lost > 0:
		return t, fmt.Errorf("%d connections were lost, so the figure would be worth nothing; the first: %s", t.Lost, t.Why)
	}
	return t, nil
}

// measureSockets connects peers to each contender, and measures joining, memory, idle processor time and fan-out.
func (b *bench) measureSockets(ctx context.Context) (result, error) {
	r := newResult()
	kinds := []string{"Sluice, a whole node", "Sluice's hub alone", "bare hub", "gorilla chat pattern", "Centrifugo 6.9.1, defaults"}
	for round := range b.rounds {
		for _, kind := range kinds {
			if b.rounds == 1 && b.peers < 1000 && strings.HasPrefix(kind, "Centrifugo") {
				continue // takes minutes to build
			}
			b.say("round %d: %s", round+1, kind)
			if err := b.sockets(ctx, r, kind); err != nil {
				return *r, fmt.Errorf("%s: %w", kind, err)
			}
			b.killAll()
		}
	}
	node, bare := kinds[0], kinds[2]
	n := fmt.Sprintf("%d", b.peers)
	r.promise(r.median("memory, KB a connection", node) <= 10, "memory ≤ 10 KB RSS a seated session at "+n+": %.1f KB", r.median("memory, KB a connection", node))
	r.promise(r.median("stacks, KB a connection", node) <= 2.5, "who waits is a stack of 2 KB: %.2f KB", r.median("stacks, KB a connection", node))
	r.promise(r.median("idle, µs of processor a second and connection", node) <= 2.2, "idle CPU ≤ 2.2 µs/s each: %.2f", r.median("idle, µs of processor a second and connection", node))
	r.promise(r.median("told of a pause, ms until the last", node) <= 200, "a change that concerns everyone reaches "+n+" sessions in ≤ 200 ms: %.0f ms", r.median("told of a pause, ms until the last", node))
	ratio := r.median("fan-out, messages/s", kinds[1]) / r.median("fan-out, messages/s", bare)
	r.promise(ratio >= 0.9, "fan-out ≥ 0.9 × the bare hub's message rate: %.2f ×", ratio)
	ratio = r.median("joins/s", node) / r.median("joins/s", bare)
	r.promise(ratio >= 0.65, "joins, welcome and state frame included, ≥ 0.65 × the bare hub's connects/s: %.2f ×", ratio)
	return *r, nil
}

func (b *bench) sockets(ctx context.Context, r *result, kind string) error {
	c, err := b.startSockets(ctx, kind)
	if err != nil {
		return err
	}
	peers, err := b.startPeers(ctx, c)
	if err != nil {
		return err
	}
	time.Sleep(time.Second) // what starting costs is over
	before, err := c.usage()
	if err != nil {
		return err
	}
	first, err := scrape(ctx, c.metrics)
	if err != nil {
		return err
	}
	joined, err := tell(peers, order{Do: "connect", N: b.peers, Frames: c.frames})
	if err != nil {
		return err
	}
	n := float64(b.peers)
	r.add("joins/s", kind, n/joined.Took)

	time.Sleep(time.Duration(b.settle) * time.Second)
	after, err := c.usage()
	if err != nil {
		return err
	}
	second, err := scrape(ctx, c.metrics)
	if err != nil {
		return err
	}
	r.add("memory, KB a connection", kind, float64(after.resident-before.resident)/n/1024)
	r.add("stacks, KB a connection", kind, (second["go_memstats_stack_inuse_bytes"]-first["go_memstats_stack_inuse_bytes"])/n/1024)
	r.add("goroutines a connection", kind, (second["go_goroutines"]-first["go_goroutines"])/n)

	after, err = c.usage()
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(b.idle) * time.Second)
	later, err := c.usage()
	if err != nil {
		return err
	}
	if _, err := tell(peers, order{Do: "status"}); err != nil {
		return err
	}
	r.add("idle, µs of processor a second and connection", kind, float64((later.cpu-after.cpu).Microseconds())/later.at.Sub(after.at).Seconds()/n)

	if c.broadcast == nil {
		return b.pauseSale(ctx, r, kind, c, peers)
	}
	if _, err := tell(peers, order{Do: "watch", Frames: b.fanOut, Needle: "paused"}); err != nil {
		return err
	}
	begun := time.Now().UnixNano()
	if err := c.broadcast(ctx, message, b.fanOut); err != nil {
		return err
	}
	all, err := tell(peers, order{Do: "wait"})
	if err != nil {
		return err
	}
	r.add("fan-out, messages/s", kind, n*float64(b.fanOut)/time.Duration(all.Last-begun).Seconds())
	return nil
}

// pauseSale measures how long it takes until everyone knows that a sale is paused, and that it goes on.
func (b *bench) pauseSale(ctx context.Context, r *result, kind string, c *contender, peers *process) error {
	for _, step := range []struct{ action, needle string }{{"pause", `"paused"`}, {"resume", `"resumed"`}} {
		if _, err := tell(peers, order{Do: "watch", Frames: 1, Needle: step.needle}); err != nil {
			return err
		}
		begun := time.Now().UnixNano()
		if _, err := admin(ctx, c, http.MethodPost, "sales/sockets/"+step.action, ""); err != nil {
			return err
		}
		all, err := tell(peers, order{Do: "wait"})
		if err != nil {
			return err
		}
		r.add("told of a "+step.action+", ms until the last", kind, float64(all.Last-begun)/1e6)
		r.add("told of a "+step.action+", ms from the first to the last", kind, float64(all.Last-all.First)/1e6)
	}
	return nil
}

func (b *bench) startSockets(ctx context.Context, kind string) (*contender, error) {
	switch {
	case strings.Contains(kind, "node"):
		w, err := b.newWorld(ctx, "everysec", "mysql")
		if err != nil {
			return nil, err
		}
		c, err := b.startNode(ctx, w)
		if err != nil {
			return nil, err
		}
		// One is called and keeps its turn; the others wait, and nothing happens.
		return c, b.apply(ctx, c, "sockets", 1_000_000, still)
	case strings.HasPrefix(kind, "Centrifugo"):
		return b.startCentrifugo(ctx)
	case strings.HasPrefix(kind, "gorilla"):
		return b.startContender(ctx, "chat")
	case strings.HasPrefix(kind, "bare"):
		return b.startContender(ctx, "bare")
	default:
		return b.startContender(ctx, "hub")
	}
}
