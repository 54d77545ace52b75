package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// flood is what wrk found.
type flood struct {
	rate    float64 // requests a second
	p99     float64 // ms
	answers map[string]int64
}

var (
	wrkRate   = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	wrkP99    = regexp.MustCompile(`99%\s+([0-9.]+)(us|ms|s)`)
	wrkAnswer = regexp.MustCompile(`(?m)^\s+(code -?\d+|HTTP \d+ \S*|no answer)\s+(\d+)`)
)

// wrk floods a server with grabs, each of another user.
func (b *bench) wrk(ctx context.Context, base, sale string) (flood, error) {
	out, err := b.run(ctx, "wrk", "-t2", "-c100", fmt.Sprintf("-d%ds", b.wrkSeconds), "--latency", "-s", filepath.Join(b.root, "deploy", "wrk", "seckill.lua"),
		base, "--", sale, secret, "100000000")
	if err != nil {
		return flood{}, err
	}
	f := flood{answers: map[string]int64{}}
	rate, p99 := wrkRate.FindStringSubmatch(out), wrkP99.FindStringSubmatch(out)
	if rate == nil || p99 == nil {
		return f, fmt.Errorf("wrk said %q", out)
	}
	if f.rate, err = strconv.ParseFloat(rate[1], 64); err != nil {
		return f, err
	}
	if f.p99, err = strconv.ParseFloat(p99[1], 64); err != nil {
		return f, err
	}
	f.p99 *= map[string]float64{"us": 0.001, "ms": 1, "s": 1000}[p99[2]]
	for _, m := range wrkAnswer.FindAllStringSubmatch(out, -1) {
		n, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil {
			return f, err
		}
		f.answers[m[1]] += n
	}
	return f, nil
}

const (
	plainWho = "Gin + two EVALs + channel + row by row"
	nodeWho  = "Sluice, a whole node"
	floorWho = "Echo, the HMAC and an answer, nothing else"
)

// flood floods a contender, and notes what that cost it.
func (b *bench) flood(ctx context.Context, r *result, c *contender, who, what, sale string) (flood, error) {
	before, err := b.spent(ctx, c)
	if err != nil {
		return flood{}, err
	}
	f, err := b.wrk(ctx, c.base, sale)
	if err != nil {
		return f, err
	}
	after, err := b.spent(ctx, c)
	if err != nil {
		return f, err
	}
	var requests int64
	for _, n := range f.answers {
		requests += n
	}
	r.add(what+"requests/s", who, f.rate)
	r.add(what+"p99, ms", who, f.p99)
	r.add(what+"processor of the server, µs a request", who, float64((after.cpu-before.cpu).Microseconds())/float64(requests))
	r.add(what+"allocations a request", who, (after.allocations-before.allocations)/float64(requests))
	return f, nil
}

// spent is what a contender has used since it began.
type spent struct {
	cpu         time.Duration
	allocations float64
}

func (b *bench) spent(ctx context.Context, c *contender) (s spent, err error) {
	used, err := c.usage()
	if err != nil {
		return s, err
	}
	metrics, err := scrape(ctx, c.metrics)
	return spent{cpu: used.cpu, allocations: metrics["go_memstats_mallocs_total"]}, err
}

// measureHTTP sends the flood of the plain design's own articles to Sluice and to that design.
func (b *bench) measureHTTP(ctx context.Context) (result, error) {
	r := newResult()
	few := fmt.Sprintf("%s units: ", number(float64(b.units)))
	for round := range b.rounds {
		for _, who := range []string{nodeWho, plainWho} {
			b.say("round %d: %s", round+1, who)
			serve := b.floodPlain
			if who == nodeWho {
				serve = b.floodNode
			}
			if err := serve(ctx, r, who, few, b.units); err != nil {
				return *r, fmt.Errorf("%s: %w", who, err)
			}
			if err := serve(ctx, r, who, "every grab succeeds: ", 100_000_000); err != nil {
				return *r, fmt.Errorf("%s: %w", who, err)
			}
		}
		b.say("round %d: %s", round+1, floorWho)
		if err := b.floodFloor(ctx, r, few); err != nil {
			return *r, fmt.Errorf("%s: %w", floorWho, err)
		}
	}
	rate, p99 := r.median(few+"requests/s", nodeWho), r.median(few+"p99, ms", nodeWho)
	r.promise(rate >= 50_000 && p99 <= 10, "HTTP grabs ≥ 50 k/s at p99 ≤ 10 ms: %.1f k/s at %.1f ms", rate/1000, p99)
	ratio := rate / r.median(few+"requests/s", plainWho)
	r.promise(ratio >= 2.5, "≥ 2.5 × the plain design: %.2f ×", ratio)
	all := r.median("every grab succeeds: requests/s", nodeWho)
	r.promise(all >= 15_000, "while every grab succeeds and is written: ≥ 15 k/s: %.1f k/s", all/1000)
	after, lag := r.median(few+"last row after the last grab, ms", nodeWho), r.median(few+"grab → row, ms, p99 (upper bound)", nodeWho)
	r.promise(after <= 1000, "a %s burst is written ≤ 1 s after the last grab: %.0f ms", number(float64(b.units)), after)
	r.promise(lag <= 1000, "grab → row p99 ≤ 1 s: at most %.0f ms", lag)
	return *r, nil
}

func (b *bench) floodNode(ctx context.Context, r *result, who, what string, units int64) error {
	w, err := b.newWorld(ctx, "everysec", "mysql")
	if err != nil {
		return err
	}
	node, err := b.startNode(ctx, w, "--auth=hmac", "--limit-user=20/s", "--limit-node=1000000/s", "--outbox-limit=0")
	if err != nil {
		return err
	}
	defer node.stop()
	const sale = "flood"
	if err := b.apply(ctx, node, sale, units, "{ order: off }"); err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // relays look for new sales once a second, and a real sale is announced before it opens
	before, err := scrape(ctx, node.metrics)
	if err != nil {
		return err
	}
	var written chan time.Time // when the last row was there
	if units == b.units {
		written = make(chan time.Time, 1)
		go func() {
			_ = until(ctx, "all rows", 5*time.Minute, func() (bool, error) {
				n, err := b.rows(ctx, w)
				return n >= units, err
			})
			written <- time.Now()
		}()
	}
	f, err := b.flood(ctx, r, node, who, what, sale)
	if err != nil {
		return err
	}
	for answer := range f.answers {
		if answer != "code 0" && answer != "code -2" {
			return fmt.Errorf("some were told something else than success or sold out: %v", f.answers)
		}
	}
	audit, err := b.audit(ctx, node, sale)
	if err != nil {
		return err
	}
	if units != b.units {
		return nil
	}
	if f.answers["code 0"] != units || audit.sold() != units {
		return fmt.Errorf("%d units, %d told of success, %d sold", units, f.answers["code 0"], audit.sold())
	}
	at := <-written
	last, err := b.lastGrab(ctx, w)
	if err != nil {
		return err
	}
	r.add(what+"last row after the last grab, ms", who, at.Sub(last).Seconds()*1000)
	after, err := scrape(ctx, node.metrics)
	if err != nil {
		return err
	}
	lag, _ := quantile(before, after, "sluice_order_lag_seconds", 0.99)
	r.add(what+"grab → row, ms, p99 (upper bound)", who, lag*1000)
	return nil
}

// audited is what the bench wants to know of an audit.
type audited struct {
	Balanced bool  `json:"balanced"`
	InFlight int64 `json:"in_flight"`
	Outbox   int64 `json:"outbox"`
	Items    []struct {
		Sold int64 `json:"sold"`
	} `json:"items"`
}

func (a audited) sold() (n int64) {
	for _, item := range a.Items {
		n += item.Sold
	}
	return n
}

// audit waits until all orders of a sale are written and its books add up, and fails when they do not within five minutes.
func (b *bench) audit(ctx context.Context, node *contender, sale string) (a audited, err error) {
	err = until(ctx, "the audit of "+sale, 5*time.Minute, func() (bool, error) {
		out, err := b.run(ctx, b.sluice, "audit", sale, "--json", "--url="+node.base, "--admin-token="+adminToken)
		if err != nil && !strings.HasPrefix(strings.TrimSpace(out), "{") {
			return false, err
		}
		if err := json.Unmarshal([]byte(out), &a); err != nil {
			return false, err
		}
		return a.Balanced && a.InFlight == 0 && a.Outbox == 0, nil
	})
	return a, err
}

func (b *bench) floodPlain(ctx context.Context, r *result, who, what string, units int64) error {
	if _, err := b.newWorld(ctx, "everysec", "mysql"); err != nil {
		return err
	}
	database := driverMySQL(b.mysqlURL, fmt.Sprintf("bench_%d_%d", pid, b.worlds))
	c, err := b.startContender(ctx, "plain", "--redis="+b.redisURL, "--secret="+secret, fmt.Sprintf("--stock=%d", units), "--database="+database)
	if err != nil {
		return err
	}
	defer c.kill()
	f, err := b.flood(ctx, r, c, who, what, "s")
	if err != nil {
		return err
	}
	if units == b.units && f.answers["code 0"] != units {
		return fmt.Errorf("%d units, and these answers: %v", units, f.answers)
	}
	return nil
}

// floodFloor floods what no server can be faster than that is made of the same parts.
func (b *bench) floodFloor(ctx context.Context, r *result, what string) error {
	c, err := b.startContender(ctx, "floor", "--secret="+secret)
	if err != nil {
		return err
	}
	defer c.kill()
	_, err = b.flood(ctx, r, c, floorWho, what, "s")
	return err
}
