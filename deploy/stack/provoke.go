package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	"go.yaml.in/yaml/v4"

	"sluice/deploy/control"
)

// What is provoked are a sale in which people buy all the time, one whose books are bent, one whose holds are short, and one
// that many wait for.
const provokedSales = `
- { id: calm, title: { en: Calm }, items: [{ id: main, title: { en: One }, stock: 100000, price: 100 }], currency: CNY, opens_at: "+2s",
    closes_at: "+1h", line: { order: fifo, rate: 30, active: 2000, ratio: 0, turn: 60s }, hold: 0s }
- { id: crooked, title: { en: Crooked }, items: [{ id: main, title: { en: One }, stock: 100, price: 100 }], currency: CNY, opens_at: "+2s",
    closes_at: "+1h", line: { order: fifo }, hold: 0s }
- { id: unpaid, title: { en: Unpaid }, items: [{ id: main, title: { en: One }, stock: 100, price: 100 }], currency: CNY, opens_at: "+2s",
    closes_at: "+1h", line: { order: fifo }, hold: 20s }
- { id: full, title: { en: Full }, items: [{ id: main, title: { en: One }, stock: 100, price: 100 }], currency: CNY, opens_at: "+40m", lobby: 0s,
    closes_at: "+1h", line: { order: fifo } }
`

// provocation is what makes an alert fire, and how it is made good.
type provocation struct {
	alert string
	cause string
	begin func(context.Context) error // may start what goes on until its context ends
	mend  func() error
}

// provoke makes every alert of deploy/prometheus/alerts.yml fire by what it is about, one kind of trouble after the other, and
// audits the sale that was sold all the while.
func (s *stack) provoke(ctx context.Context) error {
	services, err := control.Find()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	keyless, small, err := s.addOdd(ctx)
	if err != nil {
		return err
	}
	var sales []any
	if err := yaml.Unmarshal([]byte(provokedSales), &sales); err != nil {
		return err
	}
	for _, sale := range sales {
		text, err := yaml.Marshal(sale)
		if err != nil {
			return err
		}
		file := filepath.Join(s.dir, "provoked.yaml")
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
		if _, err := s.sluice(ctx, "sale", "apply", file); err != nil {
			return err
		}
	}
	running.Go(func() { s.send(ctx, s.front, "calm", 15_000, 15*time.Minute) })
	if err := s.wait(ctx, "people buy", func() bool { return s.gauge(ctx, `sum(rate(sluice_orders_written_total[1m]))`) > 1 }); err != nil {
		return err
	}
	groups := s.provocations(keyless, small, services, &running)
	if err := s.wants(ctx, groups); err != nil {
		return err
	}
	for _, group := range groups {
		if err := s.fire(ctx, group); err != nil {
			return err
		}
	}
	if err := s.wait(ctx, "the orders are written", func() bool { return s.gauge(ctx, `max(sluice_outbox_length{sale="calm"})`) == 0 }); err != nil {
		return err
	}
	out, err := s.sluice(ctx, "audit", "calm")
	fmt.Printf("%s", out)
	return err
}

// addOdd starts a node that cannot read the keys of its identity provider and one that may open few files, and has both scraped.
func (s *stack) addOdd(ctx context.Context) (keyless, small *program, err error) {
	if err := os.WriteFile(s.oddConfig(), []byte("log-level: info\n"), 0o644); err != nil {
		return nil, nil, err
	}
	if err := s.add(&s.nodes, "serve", "--no-worker", "--drain", "1s", "--jwks-url", "http://127.0.0.1:1/jwks.json", "--jwt-issuer", "nobody",
		"--jwt-audience", "nobody", "--config", s.oddConfig()); err != nil {
		return nil, nil, err
	}
	if err := s.add(&s.nodes, "serve", "--no-worker", "--drain", "1s"); err != nil {
		return nil, nil, err
	}
	keyless, small = s.nodes[len(s.nodes)-2], s.nodes[len(s.nodes)-1]
	small.args = append([]string{"-c", `ulimit -n 4096; exec "$0" "$@"`, small.path}, small.args...)
	small.path = "/bin/sh"
	for _, p := range []*program{keyless, small} {
		if err := p.run(); err != nil {
			return nil, nil, err
		}
		s.started = append(s.started, p)
		if err := await(ctx, p.name, "http://"+s.ops[p]+"/healthz", p); err != nil {
			return nil, nil, err
		}
	}
	return keyless, small, s.writeTargets()
}

// provocations are what is done together, in the order in which it is done.
func (s *stack) provocations(keyless, small *program, services control.Control, running *sync.WaitGroup) [][]provocation {
	nothing := func() error { return nil }
	told := func(command string) func() error {
		return func() error {
			_, err := services.Tell(command)
			return err
		}
	}
	freeze := func(name string) func(context.Context) error {
		return func(context.Context) error { return told("freeze " + name)() }
	}
	thaw := func(name string) func() error { return told("thaw " + name) }
	// pulse stops something for a while, again and again.
	pulse := func(stopped, going time.Duration, stop, cont func() error) func(context.Context) error {
		return func(ctx context.Context) error {
			running.Go(func() {
				for rest(ctx, going) {
					_ = stop() // fails at most when all has ended
					rest(ctx, stopped)
					_ = cont()
				}
			})
			return nil
		}
	}
	workers := func(signal syscall.Signal) func() error {
		return func() error {
			var errs []error
			for _, w := range s.workers {
				errs = append(errs, w.cmd.Process.Signal(signal))
			}
			return errors.Join(errs...)
		}
	}
	return [][]provocation{
		{
			{"SluiceKeysOld", "a node whose identity provider is nowhere", func(context.Context) error { return nil }, nothing},
			{"SluiceSettingsRefused", "a node that is given settings which are none", s.misconfigure(keyless), nothing},
			{"SluiceFilesShort", "3,400 shoppers at a node that may open 4,096 files", s.fill(small, running), nothing},
			{"SluiceDeadLetters", "a message that is no order", s.publishGarbage, nothing},
			{"SluiceAuditImbalance", "seven units too many in Redis", s.bend, nothing},
			{"SluiceHoldsOverdue", "rows of unpaid orders that somebody else keeps locked", s.lock(running), nothing},
			{"SluiceShoppersCutOff", "a hundred shoppers a second whose connections break", s.breakConnections(running), nothing},
		},
		{{"SluiceDown", "a node that has died", func(context.Context) error { return keyless.cmd.Process.Kill() }, nothing}},
		{{"SluiceOrdersLate", "a broker that stands still", freeze("rabbitmq"), thaw("rabbitmq")}},
		{{"SluiceOrdersSlow", "workers that stand still for 15 s again and again",
			pulse(15*time.Second, time.Second, workers(syscall.SIGSTOP), workers(syscall.SIGCONT)), nothing}},
		{{"SluiceNodeSilent", "a Redis that stands still", freeze("redis"), thaw("redis")}},
		{
			{"SluiceGrabsSlow", "a Redis that stands still for 0.8 s again and again",
				pulse(800*time.Millisecond, 200*time.Millisecond, told("freeze redis"), thaw("redis")), nothing},
		},
		{
			// The other node gives turns meanwhile to those who are here.
			{"SluiceTurnsLate", "a node that stands still for 2 s again and again", pulse(2*time.Second, 300*time.Millisecond,
				func() error { return s.nodes[1].cmd.Process.Signal(syscall.SIGSTOP) },
				func() error { return s.nodes[1].cmd.Process.Signal(syscall.SIGCONT) }), nothing},
		},
		{{"SluiceRecovered", "a Redis that has lost everything", s.flush, nothing}},
	}
}

// wants looks whether every alert is provoked, and that none fires before.
func (s *stack) wants(ctx context.Context, groups [][]provocation) error {
	text, err := os.ReadFile("deploy/prometheus/alerts.yml")
	if err != nil {
		return err
	}
	var rules struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		return err
	}
	var provoked []string
	for _, group := range groups {
		for _, p := range group {
			provoked = append(provoked, p.alert)
			// The node has never read its keys: that one may be on its way already.
			if n := s.gauge(ctx, `count(ALERTS{alertname="`+p.alert+`"})`); n > 0 && p.alert != "SluiceKeysOld" {
				return fmt.Errorf("%s fires, and nothing has happened yet", p.alert)
			}
		}
	}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if !slices.Contains(provoked, rule.Alert) {
				return fmt.Errorf("nothing provokes %s", rule.Alert)
			}
		}
	}
	return nil
}

// fire provokes a group and waits until all of its alerts fire.
func (s *stack) fire(ctx context.Context, group []provocation) error {
	trouble, mended := context.WithCancel(ctx)
	defer mended()
	began := time.Now()
	for _, p := range group {
		if err := p.begin(trouble); err != nil {
			return fmt.Errorf("provoke %s: %w", p.alert, err)
		}
	}
	var errs []error
	for _, p := range group {
		err := s.wait(ctx, p.alert+" fires", func() bool {
			return s.gauge(ctx, `count(ALERTS{alertstate="firing",alertname="`+p.alert+`"})`) > 0
		})
		if err == nil {
			fmt.Printf("%-21s fires after at most %3.0f s: %s\n", p.alert, time.Since(began).Seconds(), p.cause)
		}
		errs = append(errs, err)
	}
	mended()
	for _, p := range group {
		errs = append(errs, p.mend())
	}
	return errors.Join(errs...)
}

// rest waits; it is false once the context has ended.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// send has a crowd come to a sale over a time. It ends with the context at the latest; what it went through is its log's.
func (s *stack) send(ctx context.Context, to, sale string, users int, over time.Duration) {
	_, err := s.sluice(ctx, "crowd", "--url", "http://"+to, "--sale", sale, "--users", fmt.Sprint(users), "--ramp", over.String(), "--timeout", "1h", "--json")
	if err != nil && ctx.Err() == nil {
		fmt.Printf("the crowd of %s has ended: %v\n", sale, err)
	}
}

// fill sends a node more shoppers than four fifths of its files.
func (s *stack) fill(small *program, running *sync.WaitGroup) func(context.Context) error {
	return func(ctx context.Context) error {
		running.Go(func() { s.send(ctx, listenOf(small), "full", 3400, 20*time.Second) })
		return nil
	}
}

// oddConfig is the file of settings of a node.
func (s *stack) oddConfig() string { return filepath.Join(s.dir, "odd.yaml") }

// misconfigure gives the node of oddConfig settings that it refuses.
func (s *stack) misconfigure(node *program) func(context.Context) error {
	return func(context.Context) error {
		if err := os.WriteFile(s.oddConfig(), []byte("limit-user: many\n"), 0o644); err != nil {
			return err
		}
		return node.cmd.Process.Signal(syscall.SIGHUP)
	}
}

// publishGarbage gives the writers a message that they cannot understand.
func (s *stack) publishGarbage(ctx context.Context) error {
	conn, err := amqp.Dial(s.amqpURL)
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	return ch.PublishWithContext(ctx, "", s.prefix()+"sluice.orders", true, false, amqp.Publishing{Body: []byte("no order")})
}

// bend has Redis sell units that nobody has.
func (s *stack) bend(ctx context.Context) error {
	return s.redis(func(rdb *redis.Client) error { return rdb.HIncrBy(ctx, "sluice:{crooked}:stock", "main", 7).Err() })
}

// flush loses everything in Redis.
func (s *stack) flush(ctx context.Context) error {
	return s.redis(func(rdb *redis.Client) error { return rdb.FlushAll(ctx).Err() })
}

func (s *stack) redis(do func(*redis.Client) error) error {
	options, err := redis.ParseURL(s.redisURL)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(options)
	defer rdb.Close()
	return do(rdb)
}

// lock has ten shoppers order, and keeps their rows locked.
func (s *stack) lock(running *sync.WaitGroup) func(context.Context) error {
	return func(ctx context.Context) error {
		if _, err := s.sluice(ctx, "crowd", "--sale", "unpaid", "--users", "10", "--ramp", "0s"); err != nil {
			return err
		}
		rows, err := s.rows.QueryContext(ctx, "SELECT id FROM "+s.database+".orders WHERE sale_id = 'unpaid' AND status = 'confirmed'")
		if err != nil {
			return err
		}
		defer rows.Close()
		var ids []any
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				return err
			}
			ids = append(ids, id)
		}
		if err := rows.Err(); err != nil || len(ids) == 0 {
			return errors.Join(fmt.Errorf("%d orders are to be locked", len(ids)), err)
		}
		tx, err := s.rows.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		// By their keys, or everybody who writes an order would wait.
		lock := "SELECT id FROM " + s.database + ".orders WHERE id IN (?" + strings.Repeat(", ?", len(ids)-1) + ") FOR UPDATE"
		locked, err := tx.QueryContext(ctx, lock, ids...)
		if err == nil {
			for locked.Next() {
			}
			err = errors.Join(locked.Err(), locked.Close())
		}
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
		running.Go(func() { <-ctx.Done() }) // which ends the transaction
		return nil
	}
}

// breakConnections opens a hundred a second and drops them without a word.
func (s *stack) breakConnections(running *sync.WaitGroup) func(context.Context) error {
	return func(ctx context.Context) error {
		address := "ws://" + listenOf(s.nodes[0]) + "/ws/v1/sales/calm"
		dialer := websocket.Dialer{Subprotocols: []string{"sluice.v1"}, HandshakeTimeout: 10 * time.Second}
		for range 10 {
			running.Go(func() {
				for rest(ctx, 80*time.Millisecond) {
					conn, resp, err := dialer.DialContext(ctx, address, nil)
					if err != nil {
						continue // it is over, or full for a moment
					}
					_ = resp.Body.Close()
					_ = conn.NetConn().Close()
				}
			})
		}
		return nil
	}
}
