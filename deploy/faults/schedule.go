package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// good is the verdict of a schedule in which all that must hold holds.
	good = "sound"
	// crowdSize is how many shoppers come, each of whom grabs at least once.
	crowdSize = 5000
	// atOnce is how many of them ask at the same time.
	atOnce = 300
	// trouble is how long things go wrong.
	trouble = 4 * time.Second
	// patience is how long the last shopper may wait for an answer after that.
	patience = 20 * time.Second
	// settling is how long it may take until everything adds up, from the end of the last fault or hold on.
	settling = 10 * time.Second
)

// schedule is one run of a whole installation with its faults, all of which follow from the seed.
type schedule struct {
	seed     int64
	rng      *rand.Rand
	services *services
	binary   string
	dir      string

	name      string // of the sale, the database and the queues
	units     int
	hold      time.Duration
	line      bool
	fsync     string
	forgetful bool // Redis may lose what it had answered
	purges    bool // its users are purged in the end, which takes a while
	archived  bool

	redis, amqp, mysql *proxy
	fleet              *fleet
	shoppers           *shoppers
	plan               []event
}

// event is something that happens at its time.
type event struct {
	at   time.Duration
	name string
	do   func(context.Context) error
}

func newSchedule(seed int64, s *services, binary, dir string) *schedule {
	rng := rand.New(rand.NewPCG(uint64(seed), 20261201))
	c := &schedule{
		seed: seed, rng: rng, services: s, binary: binary, dir: dir, name: fmt.Sprintf("fault_%d", seed),
		units: 500 + rng.IntN(700), hold: time.Duration(1000+rng.IntN(1000)) * time.Millisecond, line: seed%4 == 0, purges: seed%8 == 1,
		fsync: []string{"always", "everysec"}[rng.IntN(2)],
	}
	c.plan = c.draw()
	return c
}

// draw chooses what happens.
func (c *schedule) draw() []event {
	var plan []event
	add := func(name string, do func(context.Context) error) {
		plan = append(plan, event{time.Duration(c.rng.Int64N(int64(trouble))), name, do})
	}
	proxies := map[string]**proxy{"redis": &c.redis, "rabbitmq": &c.amqp, "mariadb": &c.mysql}
	services := []string{"redis", "rabbitmq", "mariadb"}
	for range 2 + c.rng.IntN(3) {
		name := services[c.rng.IntN(3)]
		p := proxies[name]
		switch c.rng.IntN(3) {
		case 0:
			add("cut "+name, func(context.Context) error { (*p).cut(); return nil })
		case 1:
			slow := time.Duration(5+c.rng.IntN(60)) * time.Millisecond
			add("slow "+name, func(ctx context.Context) error {
				(*p).set(func(p *proxy) { p.delay = slow })
				wait(ctx, 400*time.Millisecond)
				(*p).set(func(p *proxy) { p.delay = 0 })
				return nil
			})
		case 2:
			add("lose answers of "+name, func(ctx context.Context) error {
				(*p).set(func(p *proxy) { p.mute = true })
				wait(ctx, 200*time.Millisecond)
				(*p).cut() // a connection whose answers were lost is of no use any more
				(*p).set(func(p *proxy) { p.mute = false })
				return nil
			})
		}
	}
	for range c.rng.IntN(3) {
		which, long := c.rng.IntN(4), time.Duration(300+c.rng.IntN(1500))*time.Millisecond
		add("freeze a process", func(ctx context.Context) error {
			c.fleet.signal(which, syscall.SIGSTOP)
			wait(ctx, long)
			c.fleet.signal(which, syscall.SIGCONT)
			return nil
		})
	}
	switch c.rng.IntN(6) {
	case 0, 1:
		c.forgetful = c.fsync != "always"
		add("kill redis ("+c.fsync+")", func(ctx context.Context) error { return c.restartRedis(ctx) })
	case 2:
		c.forgetful = true
		add("flush redis", func(ctx context.Context) error { return c.services.redis.FlushAll(ctx).Err() })
	case 3:
		c.forgetful = true
		back := time.Duration(200+c.rng.IntN(800)) * time.Millisecond
		add("promote a stale replica of redis", func(ctx context.Context) error {
			replica := filepath.Join(c.dir, "replica")
			if err := c.services.copyRedis(replica); err != nil {
				return err
			}
			wait(ctx, back)
			if err := c.services.becomeCopy(replica); err != nil {
				return err
			}
			return c.services.tune(ctx, c.fsync)
		})
	}
	switch c.rng.IntN(12) {
	case 0, 1:
		add("kill rabbitmq", func(ctx context.Context) error {
			// RabbitMQ 3.10 that is killed right after a quorum queue was declared may come back with a queue that has no
			// leader and never gets one: nothing is lost, the orders wait in their outbox, but an operator has to help.
			wait(ctx, 1500*time.Millisecond)
			return c.services.restart("rabbitmq")
		})
	case 2:
		add("kill mariadb", func(context.Context) error { return c.services.restart("mariadb") })
	case 3, 4:
		add("make mariadb read-only", func(ctx context.Context) error {
			return c.setFor(ctx, "SET GLOBAL read_only = 1", 600*time.Millisecond, "SET GLOBAL read_only = 0")
		})
	case 5, 6:
		add("give mariadb few connections", func(ctx context.Context) error {
			return c.setFor(ctx, "SET GLOBAL max_connections = 12", 800*time.Millisecond, "SET GLOBAL max_connections = 1000")
		})
	case 7, 8:
		add("lock the items", c.lockItems)
	case 9:
		add("freeze rabbitmq", func(ctx context.Context) error {
			wait(ctx, 1500*time.Millisecond) // as above
			if _, err := c.services.control.Tell("freeze rabbitmq"); err != nil {
				return err
			}
			wait(ctx, time.Second)
			_, err := c.services.control.Tell("thaw rabbitmq")
			return err
		})
	case 10:
		add("freeze redis", func(ctx context.Context) error {
			if _, err := c.services.control.Tell("freeze redis"); err != nil {
				return err
			}
			wait(ctx, 900*time.Millisecond)
			_, err := c.services.control.Tell("thaw redis")
			return err
		})
	}
	return plan
}

func (c *schedule) restartRedis(ctx context.Context) error {
	if err := c.services.restart("redis"); err != nil {
		return err
	}
	return c.services.tune(ctx, c.fsync)
}

func (c *schedule) setFor(ctx context.Context, set string, long time.Duration, back string) error {
	if _, err := c.services.db.ExecContext(ctx, set); err != nil {
		return err
	}
	wait(ctx, long)
	_, err := c.services.db.ExecContext(context.WithoutCancel(ctx), back)
	return err
}

// lockItems holds the rows that every writer needs, in the order that makes deadlocks with them likely.
func (c *schedule) lockItems(ctx context.Context) error {
	for range 5 {
		tx, err := c.services.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE "+c.name+".items SET version = version + 1")
		wait(ctx, 60*time.Millisecond)
		if err == nil { // an order row after the item: the writers take them the other way round
			_, _ = tx.ExecContext(ctx, "UPDATE "+c.name+".orders SET updated_at = updated_at + 1 ORDER BY id DESC LIMIT 50")
		}
		if err := tx.Rollback(); err != nil {
			return err
		}
	}
	return nil
}

// run is the schedule from its empty beginning to its verdict. An error is what does not hold, or could not be done.
func (c *schedule) run(ctx context.Context) (r result, err error) {
	r = result{seed: c.seed, verdict: good, deaths: map[string]int{}}
	if err := c.open(ctx); err != nil {
		return r, err
	}
	defer c.close()
	var troubles sync.WaitGroup
	failed := make(chan error, len(c.plan))
	for _, e := range c.plan {
		r.events = append(r.events, e.name)
		troubles.Go(func() {
			wait(ctx, e.at)
			if err := e.do(ctx); err != nil {
				failed <- fmt.Errorf("%s: %w", e.name, err)
			}
		})
	}
	c.crowd(ctx, &troubles)
	select {
	case err := <-failed:
		return r, fmt.Errorf("the suite itself failed: %w", err)
	default:
	}
	took, err := c.settle(ctx)
	if err == nil && c.forgetful && c.unwritten(ctx) > 0 {
		// What is nowhere may still be on its way, and is not called forgotten before that age.
		wait(ctx, forgetAge)
		_, err = c.settle(ctx)
	}
	r.settled = took.Round(10 * time.Millisecond).String()
	r.grabs, r.deaths = c.shoppers.grabs, c.fleet.deaths()
	if err != nil {
		return r, err
	}
	// Rows and stock are not read at one moment: a request that hung in a process may be answered, and its order expire,
	// in between. What is really wrong stays wrong.
	for range 3 {
		if r.orders, r.paid, err = c.verify(ctx); err == nil {
			break
		}
		if _, unsettled := c.settle(ctx); unsettled != nil {
			break
		}
	}
	if err != nil {
		return r, err
	}
	err = c.archive(ctx)
	r.deaths = c.fleet.deaths()
	return r, err
}

func (c *schedule) open(ctx context.Context) (err error) {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	if err := c.services.prepare(ctx, c.name, c.fsync); err != nil {
		return fmt.Errorf("prepare the services: %w", err)
	}
	for target, p := range map[string]**proxy{c.services.redisAt: &c.redis, c.services.amqpAt: &c.amqp, c.services.mysqlAt: &c.mysql} {
		if *p, err = newProxy(target); err != nil {
			return err
		}
	}
	c.fleet = &fleet{
		binary: c.binary, dir: c.dir, log: filepath.Join(c.dir, "deaths"), rng: rand.New(rand.NewPCG(uint64(c.seed), 7)),
		env: []string{
			"SLUICE_REDIS_URL=redis://" + c.redis.address(), "SLUICE_AMQP_URL=amqp://guest:guest@" + c.amqp.address() + "/",
			"SLUICE_AMQP_PREFIX=" + c.name + "-", "SLUICE_DATABASE_URL=mysql://sluice@" + c.mysql.address() + "/" + c.name,
			"SLUICE_SECRET=" + secret, "SLUICE_ADMIN_TOKEN=" + secret, "SLUICE_OPS_LISTEN=", "SLUICE_LIMIT_USER=0", "SLUICE_REDIS_POOL=16",
			"SLUICE_DRAIN=0s",
		},
	}
	c.shoppers = &shoppers{
		sale: strings.ReplaceAll(c.name, "_", "-"), line: c.line, told: map[string]string{}, paid: map[string]bool{}, cancelled: map[string]bool{},
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}},
	}
	for range 2 {
		m, err := c.fleet.start("serve", "--no-worker")
		if err != nil {
			return err
		}
		c.shoppers.nodes = append(c.shoppers.nodes, "http://"+m.listen)
	}
	for range 2 {
		if _, err := c.fleet.start("worker"); err != nil {
			return err
		}
	}
	return c.apply(ctx)
}

// apply opens the sale.
func (c *schedule) apply(ctx context.Context) error {
	line := `{ order: "off" }`
	if c.line {
		line = "{ order: fifo, rate: 0, active: 0, ratio: 0, turn: 5s }"
	}
	file := fmt.Sprintf("id: %s\nitems: [ { stock: %d } ]\nopens_at: \"+0s\"\ncloses_at: \"+1h\"\nhold: %s\nline: %s\n", c.shoppers.sale, c.units, c.hold, line)
	return c.operate(ctx, http.MethodPut, "", file)
}

// operate changes the sale, with whichever node does it first: each may die over it.
func (c *schedule) operate(ctx context.Context, method, action, body string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	said := "nothing"
	for ctx.Err() == nil {
		for _, node := range c.shoppers.nodes {
			req, err := http.NewRequestWithContext(ctx, method, node+"/api/v1/admin/sales/"+c.shoppers.sale+action, strings.NewReader(body))
			if err != nil {
				return err
			}
			req.Header.Set("Authorization", "Bearer "+secret)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				continue
			}
			answer, _ := io.ReadAll(resp.Body) // a node that dies in the middle is asked again
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			said = string(answer)
		}
		wait(ctx, 50*time.Millisecond)
	}
	return fmt.Errorf("the operator's %s%s was not done within %s: %s", method, action, patience, said)
}

// crowd lets the shoppers in, and returns when each has had an answer and all troubles are over.
func (c *schedule) crowd(ctx context.Context, troubles *sync.WaitGroup) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	users := make(chan int)
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			for i := range users {
				c.shoppers.visit(ctx, rand.New(rand.NewPCG(uint64(c.seed), uint64(i))), fmt.Sprintf("user-%d", i), c.forgetful)
			}
		})
	}
	group.Go(func() {
		defer close(users)
		for i := range crowdSize {
			select {
			case users <- i:
			case <-ctx.Done():
				return
			}
		}
	})
	troubles.Wait() // a service that was killed takes its time to start
	c.fleet.soothe()
	defer time.AfterFunc(patience, cancel).Stop()
	group.Wait()
	if ctx.Err() != nil {
		c.shoppers.problem("not every shopper had an answer within %s after the last fault", patience)
	}
}

func (c *schedule) close() {
	if c.fleet != nil {
		c.fleet.end()
	}
	for _, p := range []*proxy{c.redis, c.amqp, c.mysql} {
		if p != nil {
			p.close()
		}
	}
	_, _ = c.services.db.Exec("DROP DATABASE IF EXISTS " + c.name)
	c.services.forget(c.name + "-")
}
