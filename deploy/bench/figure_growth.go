package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sluice/queue"
)

const (
	// perNode is how many sessions a node of the growing crowd has at most: a process may have 20,000 files here.
	perNode = 15_000
	// perSale is how many wait in each of many sales.
	perSale = 50
)

// measureGrowth measures what more sessions, more sales and more stock cost.
func (b *bench) measureGrowth(ctx context.Context) (result, error) {
	r := newResult()
	memory := chart{Title: "Memory", X: "waiting shoppers", Y: "KB each"}
	cpu := chart{Title: "Processor while nothing happens", X: "waiting shoppers", Y: "µs a second each"}
	commands := chart{Title: "Redis while nothing happens", X: "waiting shoppers", Y: "commands a second each"}
	for _, n := range b.sessions {
		b.say("%d sessions", n)
		c, err := b.crowded(ctx, n)
		b.killAll()
		if err != nil {
			return *r, fmt.Errorf("%d sessions: %w", n, err)
		}
		who := fmt.Sprintf("%s waiting", number(float64(n)))
		r.add("memory, KB a session", who, c.memory)
		r.add("idle, µs of processor a second and session", who, c.cpu)
		r.add("commands to Redis a second, all nodes", who, c.commands)
		memory.add("nodes", float64(n), c.memory)
		cpu.add("nodes", float64(n), c.cpu)
		commands.add("Redis", float64(n), c.commands/float64(n))
	}
	sales := chart{Title: "Sales on one node, 50 waiting in each", X: "sales", Y: "cores"}
	for _, n := range b.sales {
		b.say("%d sales", n)
		node, store, calls, err := b.manySales(ctx, n)
		b.killAll()
		if err != nil {
			return *r, fmt.Errorf("%d sales: %w", n, err)
		}
		who := fmt.Sprintf("%d sales", n)
		r.add("processor of the node, cores", who, node)
		r.add("processor of Redis, cores", who, store)
		r.add("commands to Redis a second", who, calls)
		sales.add("node", float64(n), node)
		sales.add("Redis", float64(n), store)
	}
	stocks := chart{Title: "Stock: grabs a second until it is gone", X: "units", Y: "grabs/s"}
	bytes := chart{Title: "Stock: memory of Redis for each order", X: "units", Y: "bytes"}
	for _, n := range b.stocks {
		b.say("stock %d", n)
		rate, each, err := b.sellAll(ctx, n)
		if err != nil {
			return *r, fmt.Errorf("stock %d: %w", n, err)
		}
		who := fmt.Sprintf("%s units", number(float64(n)))
		r.add("grabs/s until all is sold", who, rate)
		r.add("memory of Redis, bytes an order in the outbox", who, each)
		stocks.add("grabs/s", float64(n), rate)
		if n >= 1000 {
			bytes.add("bytes", float64(n), each)
		}
	}
	r.Charts = []chart{memory, cpu, commands, sales, stocks, bytes}
	few, many := memory.first(), memory.last()
	r.promise(many <= few*1.1, "memory grows no faster than linear: %.1f KB each of %d sessions, %.1f KB each of %d", few, b.sessions[0], many, b.sessions[len(b.sessions)-1])
	least, most := commands.first()*float64(b.sessions[0]), commands.last()*float64(b.sessions[len(b.sessions)-1])
	nodes := func(n int) float64 { return float64((n + perNode - 1) / perNode) }
	r.promise(most/nodes(b.sessions[len(b.sessions)-1]) <= 1.5*least, "a waiting shopper costs Redis nothing: %.0f commands a second of one node with %d, %.0f of each node with %d in all",
		least, b.sessions[0], most/nodes(b.sessions[len(b.sessions)-1]), b.sessions[len(b.sessions)-1])
	return *r, nil
}

// cost is what a crowd costs while it waits.
type cost struct{ memory, cpu, commands float64 }

// crowded has n shoppers wait at as many nodes as they need.
func (b *bench) crowded(ctx context.Context, n int) (cost, error) {
	w, err := b.newWorld(ctx, "everysec", "mysql")
	if err != nil {
		return cost{}, err
	}
	var nodes []*contender
	var crowds []*process
	var counts []int
	for left := n; left > 0; left -= perNode {
		node, err := b.startNode(ctx, w)
		if err != nil {
			return cost{}, err
		}
		if len(nodes) == 0 {
			err = b.apply(ctx, node, "growth", 1_000_000, still)
			if err != nil {
				return cost{}, err
			}
		}
		node.socket = "ws" + node.base[len("http"):] + "/ws/v1/sales/growth"
		peers, err := b.startPeers(ctx, node)
		if err != nil {
			return cost{}, err
		}
		nodes, crowds, counts = append(nodes, node), append(crowds, peers), append(counts, min(left, perNode))
	}
	time.Sleep(time.Second) // what starting costs is over
	before, err := sum(nodes)
	if err != nil {
		return cost{}, err
	}
	errs := make([]error, len(crowds))
	var group sync.WaitGroup
	for i := range crowds {
		group.Go(func() { _, errs[i] = tell(crowds[i], order{Do: "connect", N: counts[i], Frames: 2}) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return cost{}, err
		}
	}
	time.Sleep(time.Duration(b.settle) * time.Second)
	full, err := sum(nodes)
	if err != nil {
		return cost{}, err
	}
	asked, err := b.infoNumber(ctx, "stats", "total_commands_processed")
	if err != nil {
		return cost{}, err
	}
	time.Sleep(time.Duration(b.idle) * time.Second)
	later, err := sum(nodes)
	if err != nil {
		return cost{}, err
	}
	askedLater, err := b.infoNumber(ctx, "stats", "total_commands_processed")
	if err != nil {
		return cost{}, err
	}
	for _, peers := range crowds {
		if _, err := tell(peers, order{Do: "status"}); err != nil {
			return cost{}, err
		}
	}
	seconds := later.at.Sub(full.at).Seconds()
	return cost{
		memory:   float64(full.resident-before.resident) / float64(n) / 1024,
		cpu:      float64((later.cpu - full.cpu).Microseconds()) / seconds / float64(n),
		commands: (askedLater - asked) / seconds,
	}, nil
}

// sum adds up what several processes use.
func sum(all []*contender) (usage, error) {
	total := usage{}
	for _, c := range all {
		u, err := c.usage()
		if err != nil {
			return total, err
		}
		total.at, total.resident, total.peak, total.cpu = u.at, total.resident+u.resident, total.peak+u.peak, total.cpu+u.cpu
	}
	return total, nil
}

// manySales has a node with n open sales and a few who wait in each, and returns the cores that the node and Redis need,
// and the commands a second.
func (b *bench) manySales(ctx context.Context, n int) (node, store, commands float64, err error) {
	w, err := b.newWorld(ctx, "everysec", "mysql")
	if err != nil {
		return 0, 0, 0, err
	}
	c, err := b.startNode(ctx, w)
	if err != nil {
		return 0, 0, 0, err
	}
	for i := range n {
		if err := b.apply(ctx, c, fmt.Sprintf("sale-%d", i), 1_000_000, still); err != nil {
			return 0, 0, 0, err
		}
		peers, err := b.startPeers(ctx, c)
		if err != nil {
			return 0, 0, 0, err
		}
		if _, err := tell(peers, order{Do: "connect", N: perSale, Frames: 2}); err != nil {
			return 0, 0, 0, err
		}
	}
	time.Sleep(time.Duration(b.settle) * time.Second)
	measure := func() (usage, float64, float64, error) {
		u, err := c.usage()
		if err != nil {
			return u, 0, 0, err
		}
		calls, err := b.infoNumber(ctx, "stats", "total_commands_processed")
		if err != nil {
			return u, 0, 0, err
		}
		used, err := b.redisCPU(ctx)
		return u, calls, used, err
	}
	before, calls, used, err := measure()
	if err != nil {
		return 0, 0, 0, err
	}
	time.Sleep(time.Duration(b.idle) * time.Second)
	after, callsLater, usedLater, err := measure()
	if err != nil {
		return 0, 0, 0, err
	}
	seconds := after.at.Sub(before.at).Seconds()
	return (after.cpu - before.cpu).Seconds() / seconds, (usedLater - used) / seconds, (callsLater - calls) / seconds, nil
}

// redisCPU is the processor time of Redis since it began, in seconds.
func (b *bench) redisCPU(ctx context.Context) (float64, error) {
	user, err := b.infoNumber(ctx, "cpu", "used_cpu_user")
	if err != nil {
		return 0, err
	}
	system, err := b.infoNumber(ctx, "cpu", "used_cpu_sys")
	return user + system, err
}

// sellAll sells n units without a line, and returns how fast, and what Redis keeps for each.
func (b *bench) sellAll(ctx context.Context, n int64) (rate, bytes float64, err error) {
	if _, err := b.newWorld(ctx, "everysec", "mysql"); err != nil {
		return 0, 0, err
	}
	q, rdb, err := b.openQueue()
	if err != nil {
		return 0, 0, err
	}
	defer rdb.Close()
	sale, err := install(ctx, q, queue.Off, n)
	if err != nil {
		return 0, 0, err
	}
	before, err := b.infoNumber(ctx, "memory", "used_memory_dataset")
	if err != nil {
		return 0, 0, err
	}
	if rate, err = each(n, func(i int64) error { return won(ctx, q, sale, i) }); err != nil {
		return 0, 0, err
	}
	after, err := b.infoNumber(ctx, "memory", "used_memory_dataset")
	return rate, (after - before) / float64(n), err
}
