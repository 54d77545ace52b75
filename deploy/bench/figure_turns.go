package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// turnRate is how many turns a second are given while the others wait and hear how they move up.
const turnRate = 500

// measureTurns gives turns to a full line and reads how long each was on its way to the wire.
func (b *bench) measureTurns(ctx context.Context) (result, error) {
	r := newResult()
	const who = "Sluice, a whole node"
	for round := range b.rounds {
		b.say("round %d", round+1)
		w, err := b.newWorld(ctx, "everysec", "mysql")
		if err != nil {
			return *r, err
		}
		node, err := b.startNode(ctx, w)
		if err != nil {
			return *r, err
		}
		if err := b.apply(ctx, node, "turns", 1_000_000, still); err != nil {
			return *r, err
		}
		peers, err := b.startPeers(ctx, node)
		if err != nil {
			return *r, err
		}
		if _, err := tell(peers, order{Do: "connect", N: b.peers, Frames: node.frames}); err != nil {
			return *r, err
		}
		before, err := scrape(ctx, node.metrics)
		if err != nil {
			return *r, err
		}
		if _, err := admin(ctx, node, http.MethodPatch, "sales/turns/line", fmt.Sprintf(`{"rate":%d,"active":1000000,"ratio":1}`, turnRate)); err != nil {
			return *r, err
		}
		var after map[string]float64
		begun, err := node.usage()
		if err != nil {
			return *r, err
		}
		if err := until(ctx, "the turns", time.Duration(b.turns/turnRate)*time.Second+startPatience, func() (bool, error) {
			after, err = scrape(ctx, node.metrics)
			return after["sluice_turn_seconds_count"]-before["sluice_turn_seconds_count"] >= float64(b.turns), err
		}); err != nil {
			return *r, err
		}
		ended, err := node.usage()
		if err != nil {
			return *r, err
		}
		if _, err := tell(peers, order{Do: "status"}); err != nil {
			return *r, err
		}
		for _, q := range []float64{0.5, 0.99} {
			seconds, _ := quantile(before, after, "sluice_turn_seconds", q)
			r.add(fmt.Sprintf("admitted → frame written, ms, p%g (upper bound)", q*100), who, seconds*1000)
		}
		r.add("processor of the node meanwhile, cores", who, (ended.cpu-begun.cpu).Seconds()/ended.at.Sub(begun.at).Seconds())
		b.killAll()
	}
	p99 := r.median("admitted → frame written, ms, p99 (upper bound)", who)
	r.promise(p99 <= 250, "admitted → frame written, p99 ≤ 250 ms at %d waiting and %d turns a second: at most %.0f ms", b.peers, turnRate, p99)
	return *r, nil
}
