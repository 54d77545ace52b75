package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	secret     = "a secret of the bench of 32 bytes"
	adminToken = "an admin token of the bench"
)

// contender is a running server that peers connect to.
type contender struct {
	*process
	base      string // URL of its API
	socket    string // URL of its WebSocket
	metrics   string // URL of its metrics
	speak     string // what peers say first
	frames    int    // frames that a peer gets before it counts as there
	broadcast func(ctx context.Context, message string, times int) error
}

// startContender starts one of our own servers to compare with.
func (b *bench) startContender(ctx context.Context, kind string, args ...string) (*contender, error) {
	p, err := b.start(ctx, kind, b.self, append([]string{"contend", kind}, args...)...)
	if err != nil {
		return nil, err
	}
	line, err := p.line()
	if err != nil {
		return nil, err
	}
	address, ok := strings.CutPrefix(line, "ready ")
	if !ok {
		return nil, fmt.Errorf("%s said %q", kind, line)
	}
	c := &contender{process: p, base: "http://" + address, socket: "ws://" + address + "/ws", metrics: "http://" + address + "/metrics", speak: "plain"}
	c.broadcast = func(ctx context.Context, message string, times int) error {
		_, err := get(ctx, fmt.Sprintf("%s/broadcast?times=%d&message=%s", c.base, times, url.QueryEscape(message)))
		return err
	}
	return c, nil
}

// world is a Redis, a broker and a database with nothing of an earlier figure in them.
type world struct {
	redis, amqp, database string
	flags                 []string
	client                *redis.Client
}

// newWorld empties Redis and makes a database and a prefix of queues. fsync is Redis's appendfsync.
func (b *bench) newWorld(ctx context.Context, fsync, dialect string) (*world, error) {
	b.worlds++
	name := fmt.Sprintf("bench_%d_%d", pid, b.worlds)
	w := &world{redis: b.redisURL, amqp: b.amqpURL, client: b.redis}
	if err := b.redis.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	for _, setting := range [][2]string{{"appendfsync", fsync}, {"maxclients", "10000"}} {
		if err := b.redis.ConfigSet(ctx, setting[0], setting[1]).Err(); err != nil {
			return nil, err
		}
	}
	var err error
	if w.database, err = b.createDatabase(ctx, dialect, name); err != nil {
		return nil, err
	}
	w.flags = []string{"--redis-url=" + w.redis, "--amqp-url=" + w.amqp, "--database-url=" + w.database}
	return w, nil
}

// startNode starts `sluice serve`.
func (b *bench) startNode(ctx context.Context, w *world, more ...string) (*contender, error) {
	return b.startNodeBy(ctx, b.start, w, more...)
}

// startOneOfMany starts `sluice serve` as one of more nodes than there are cores.
func (b *bench) startOneOfMany(ctx context.Context, w *world, more ...string) (*contender, error) {
	return b.startNodeBy(ctx, b.startBehind, w, more...)
}

func (b *bench) startNodeBy(ctx context.Context, start starter, w *world, more ...string) (*contender, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	ops, err := freePort()
	if err != nil {
		return nil, err
	}
	args := append([]string{"serve", "--secret=" + secret, "--admin-token=" + adminToken, fmt.Sprintf("--listen=127.0.0.1:%d", port),
		fmt.Sprintf("--ops-listen=127.0.0.1:%d", ops), "--drain=1s"}, w.flags...)
	p, err := start(ctx, "serve", b.sluice, append(args, more...)...)
	if err != nil {
		return nil, err
	}
	c := &contender{
		process: p, base: fmt.Sprintf("http://127.0.0.1:%d", port), metrics: fmt.Sprintf("http://127.0.0.1:%d/metrics", ops),
		speak: "sluice", frames: 2, // welcome and state
	}
	return c, until(ctx, "sluice serve, see "+p.log, startPatience, func() (bool, error) {
		_, err := get(ctx, fmt.Sprintf("http://127.0.0.1:%d/readyz", ops))
		return err == nil, err
	})
}

// still is a line in which one is called and keeps the turn, and nothing else happens.
const still = "{ order: fifo, rate: 1, active: 1, ratio: 1, turn: 1h }"

// put makes a sale of one item by its file. line is the YAML of its line.
func (b *bench) put(ctx context.Context, node *contender, id string, stock int64, opens time.Time, line, hold string) error {
	file := filepath.Join(b.dir, id+".yaml")
	text := fmt.Sprintf(`id: %s
title: { en: A sale of the bench }
items:
  - { id: main, title: { en: Main }, stock: %d, price: 100 }
currency: EUR
opens_at: %q
closes_at: %q
limit: 1
line: %s
hold: %s
`, id, stock, opens.UTC().Format(time.RFC3339), opens.Add(6*time.Hour).UTC().Format(time.RFC3339), line, hold)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	_, err := b.run(ctx, b.sluice, "sale", "apply", "--url="+node.base, "--admin-token="+adminToken, file)
	return err
}

// apply makes a sale that is open, and waits until its node knows it.
func (b *bench) apply(ctx context.Context, node *contender, id string, stock int64, line string) error {
	if err := b.put(ctx, node, id, stock, time.Now().Add(-time.Second), line, "1h"); err != nil {
		return err
	}
	node.socket = strings.Replace(node.base, "http", "ws", 1) + "/ws/v1/sales/" + id
	return until(ctx, "the sale "+id, startPatience, func() (bool, error) {
		body, err := get(ctx, node.base+"/api/v1/sales/"+id)
		return err == nil && strings.Contains(body, `"open"`), err
	})
}

// admin calls the admin API.
func admin(ctx context.Context, node *contender, method, path, body string) (string, error) {
	return call(ctx, method, node.base+"/api/v1/admin/"+path, body, "Authorization", "Bearer "+adminToken, "Content-Type", "application/json")
}

// startPeers starts a process that connects to a contender. Each gets local addresses of its own.
func (b *bench) startPeers(ctx context.Context, c *contender) (*process, error) {
	b.sources++
	args := []string{"peers", "--url=" + c.socket, "--speak=" + c.speak, "--secret=" + secret, fmt.Sprintf("--prefix=p%d", b.sources)}
	for i := range 4 {
		n := (b.sources*4+i)%250 + 2
		args = append(args, fmt.Sprintf("--source=127.0.%d.%d", 1+b.sources*4/250%200, n))
	}
	return b.start(ctx, "peers", b.self, args...)
}
