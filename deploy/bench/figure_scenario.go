package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// scenarioNode is how many shoppers one node has, and one crowd: a process may have 20,000 files here.
	scenarioNode  = 18_750
	scenarioUnits = 10_000
	promisedCrowd = 300_000
	// scenarioPace is how many arrive a second.
	scenarioPace = 500
)

// crowdSaw is what the bench reads of a crowd's report.
type crowdSaw struct {
	Users      int              `json:"users"`
	Joined     int64            `json:"joined"`
	Results    map[string]int64 `json:"results"`
	Unanswered int64            `json:"unanswered"`
	Refused    int64            `json:"refused"`
	Reconnects int64            `json:"reconnects"`
	AheadRose  int64            `json:"ahead_rose"`
	Moved      int64            `json:"moved"`
	ToldUnits  int64            `json:"told_units"`
	Problems   []string         `json:"problems"`
}

// measureScenario is the case of the mission: everyone waits in the lobby of one sale, at many nodes, when it opens.
func (b *bench) measureScenario(ctx context.Context) (result, error) {
	r := newResult()
	w, err := b.newWorld(ctx, "everysec", "mysql")
	if err != nil {
		return *r, err
	}
	count := (b.crowd + scenarioNode - 1) / scenarioNode
	var nodes []*contender
	for range count {
		node, err := b.startOneOfMany(ctx, w, "--redis-pool=8")
		if err != nil {
			return *r, err
		}
		nodes = append(nodes, node)
	}
	const sale = "scenario"
	opens := time.Now().Add(24 * time.Hour) // the operator opens it when everybody is there
	if err := b.put(ctx, nodes[0], sale, scenarioUnits, opens, "{ order: fifo, rate: 2000, active: 4000, ratio: 2, turn: 20s }", "0s"); err != nil {
		return *r, err
	}
	ramp := time.Duration(b.crowd/scenarioPace) * time.Second
	b.say("%d nodes; %d shoppers arrive over %s", count, b.crowd, ramp)
	reports := make([]crowdSaw, count)
	errs := make([]error, count)
	var group sync.WaitGroup
	arrived := time.Now()
	for i, node := range nodes {
		users := min(scenarioNode, b.crowd-i*scenarioNode)
		crowd, err := b.startBehind(ctx, "crowd", b.sluice, "crowd", "--sale="+sale, "--url="+node.base, "--secret="+secret, "--json", "--no-audit",
			fmt.Sprintf("--prefix=s%d", i), fmt.Sprintf("--users=%d", users), fmt.Sprintf("--ramp=%s", ramp), "--grab-delay=1s", "--timeout=30m",
			fmt.Sprintf("--source=127.1.%d.1,127.1.%d.2", i, i))
		if err != nil {
			return *r, err
		}
		group.Go(func() { errs[i] = json.NewDecoder(crowd.out).Decode(&reports[i]) })
	}
	peak := b.watchMemory(ctx)
	if err := until(ctx, "everyone to be in the lobby", 2*ramp+time.Minute, func() (bool, error) {
		time.Sleep(2 * time.Second)
		here := 0.0
		for _, node := range nodes {
			m, err := scrape(ctx, node.metrics)
			if err != nil {
				return false, err
			}
			here += m["sluice_connections"]
		}
		return here >= float64(b.crowd), nil
	}); err != nil {
		return *r, err
	}
	joined := time.Since(arrived)
	b.say("all are there after %.0f s; the sale opens", joined.Seconds())
	opened := time.Now()
	if _, err := admin(ctx, nodes[0], "POST", "sales/"+sale+"/open", ""); err != nil {
		return *r, err
	}
	group.Wait()
	told := time.Since(opened)
	if err := errors.Join(errs...); err != nil {
		return *r, fmt.Errorf("read the report of a crowd: %w", err)
	}
	audit, err := b.audit(ctx, nodes[0], sale)
	if err != nil {
		return *r, err
	}
	written := time.Since(opened)
	machine := peak()

	all := crowdSaw{Results: map[string]int64{}}
	for _, one := range reports {
		all.Users += one.Users
		all.Joined += one.Joined
		all.Unanswered += one.Unanswered
		all.Refused += one.Refused
		all.Reconnects += one.Reconnects
		all.AheadRose += one.AheadRose
		all.Moved += one.Moved
		all.ToldUnits += one.ToldUnits
		all.Problems = append(all.Problems, one.Problems...)
		for what, n := range one.Results {
			all.Results[what] += n
		}
	}
	used, err := sum(nodes)
	if err != nil {
		return *r, err
	}
	who := fmt.Sprintf("%d nodes", count)
	r.add("shoppers with a live socket", who, float64(all.Joined))
	r.add("s until all had joined", who, joined.Seconds())
	for what, n := range all.Results {
		r.add("told: "+what, who, float64(n))
	}
	r.add("without an answer", who, float64(all.Unanswered))
	r.add("reconnects", who, float64(all.Reconnects))
	r.add("times a place became worse", who, float64(all.AheadRose))
	r.add("s from the opening to the last result", who, told.Seconds())
	r.add("s from the opening to books that add up, all rows written", who, written.Seconds())
	r.add("units sold, by the audit", who, float64(audit.sold()))
	r.add("peak memory of all nodes, GB", who, float64(used.peak)/(1<<30))
	r.add("peak memory of the machine, crowd and services included, GB", who, machine/(1<<30))
	for _, problem := range all.Problems {
		b.say("untrue: %s", problem)
	}
	r.promise(all.Unanswered == 0 && len(all.Problems) == 0 && all.Users >= promisedCrowd, "%s shoppers with live sockets, everyone told the truth: %s, %d without an answer, %d untruths",
		number(promisedCrowd), number(float64(all.Users)), all.Unanswered, len(all.Problems))
	r.promise(audit.sold() == scenarioUnits && all.ToldUnits == scenarioUnits, "sold out exactly: %s sold, %s told of", number(float64(audit.sold())), number(float64(all.ToldUnits)))
	return *r, nil
}

// watchMemory looks at the memory in use of the whole machine twice a second, until the function that it returns is called
// for the most that it saw, in bytes.
func (b *bench) watchMemory(ctx context.Context) func() float64 {
	ctx, stop := context.WithCancel(ctx)
	most := make(chan float64)
	go func() {
		peak := 0.0
		for {
			peak = max(peak, usedMemory())
			select {
			case <-ctx.Done():
				most <- peak
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	return func() float64 {
		stop()
		return <-most
	}
}
