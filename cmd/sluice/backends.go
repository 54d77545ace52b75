package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"sluice/queue"
	"sluice/trace"
	"sluice/worker"
)

// backendFlags say what a node stands on. What is not given is embedded.
type backendFlags struct {
	RedisURL     string `name:"redis-url" placeholder:"URL" help:"Redis, like redis://:password@host:6379/0. Without it Redis is embedded, and the line does not survive a restart."`
	RedisURLFile string `name:"redis-url-file" placeholder:"FILE" help:"File with the URL of Redis."`
	AMQPURLFile  string `name:"amqp-url-file" env:"SLUICE_AMQP_URL_FILE" placeholder:"FILE" help:"File with the URL of RabbitMQ."`
	AMQPURL      string `name:"amqp-url" env:"SLUICE_AMQP_URL" placeholder:"URL" help:"RabbitMQ, like amqp://user:password@host:5672/vhost; of a cluster the URL of each node, with commas between them. Without it orders are handed over inside the process."`
	AMQPPrefix   string `name:"amqp-prefix" env:"SLUICE_AMQP_PREFIX" hidden:"" placeholder:"TEXT" help:"Put before the names of exchanges and queues, the same on every node. For tests, which cannot make virtual hosts over AMQP; real installations take one each."`
	databaseFlags
	RedisPool     int `default:"64" help:"Connections to Redis at most."`
	DatabaseConns int `default:"16" help:"Connections to the database at most."`

	OutboxLimit int64 `default:"200000" help:"Orders of a sale that may wait for the broker before no more turns are given; 0 is no limit. An order takes about 0.5 KB of Redis."`

	LimitUser    queue.Rate `default:"20/s" help:"Joins and grabs of one user in one sale, and beside them what that user asks about orders, like 20/s; 0 is no limit."`
	LimitAddress queue.Rate `default:"0" help:"Joins and grabs from one address in one sale, and beside them orders and new guests; 0 is no limit. Whole towns may share an address."`
}

// embedded says whether everything lives in this process.
func (f backendFlags) embedded() bool { return f.RedisURL == "" }

// given says which parts are named at all, even by a file that cannot be read.
func (f backendFlags) given() (redis, broker, database bool) {
	return f.RedisURL+f.RedisURLFile != "", f.AMQPURL+f.AMQPURLFile != "", f.DatabaseURL+f.DatabaseURLFile != ""
}

// read returns the flags with the URLs that were given as files, and refuses combinations that would lose orders or
// cannot work.
func (f backendFlags) read() (backendFlags, error) {
	f, refused := f.resolve()
	return f, firstOfErrors(refused)
}

// resolve is read with all that is refused, not only the first of it. A URL that cannot be read is left out.
func (f backendFlags) resolve() (_ backendFlags, refused []error) {
	redis, broker, database := f.given()
	for _, url := range []struct {
		flag        string
		value, file *string
	}{
		{"redis-url", &f.RedisURL, &f.RedisURLFile},
		{"amqp-url", &f.AMQPURL, &f.AMQPURLFile},
		{"database-url", &f.DatabaseURL, &f.DatabaseURLFile},
	} {
		value, err := valueOrFile(url.flag, *url.value, *url.file)
		if err != nil {
			refused = append(refused, err)
		}
		*url.value, *url.file = value, ""
	}
	refuse := func(when bool, message string) {
		if when {
			refused = append(refused, usagef("%s", message))
		}
	}
	refuse(broker && !redis, "--amqp-url needs --redis-url: workers elsewhere could not reach a Redis inside this process")
	refuse(broker && !database, "--amqp-url needs --database-url: each node would keep the orders that it happened to be given in a file of its own")
	refuse(f.OutboxLimit < 0, "--outbox-limit must be 0 or more")
	refuse(f.RedisPool < 2 || f.DatabaseConns < 1, "--redis-pool must be at least 2 and --database-conns at least 1")
	return f, refused
}

// firstOfErrors is what a command ends with that finds several things wrong; nil when there are none.
func firstOfErrors(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}

// limits are those that a Queue enforces.
func (f backendFlags) limits() queue.Limits {
	return queue.Limits{User: f.LimitUser, Address: f.LimitAddress, Outbox: f.OutboxLimit}
}

// backends are what a node stands on, opened.
type backends struct {
	flags  backendFlags
	redis  redis.UniversalClient
	waits  redis.UniversalClient // for reads that wait
	inside *miniredis.Miniredis  // nil with a Redis of its own
	queue  *queue.Queue
	store  *worker.Store
	direct *worker.Direct // nil with RabbitMQ
	amqp   *worker.AMQP   // nil without
	log    *slog.Logger
}

// openBackends connects to what the flags name, migrates the database and loads the scripts. It blocks until each has
// answered once. On an error nothing stays open.
func openBackends(ctx context.Context, f backendFlags, node string, log *slog.Logger, reg prometheus.Registerer, tracer *trace.Tracer) (b *backends, err error) {
	b = &backends{flags: f, log: log}
	defer func() {
		if err != nil {
			b.close()
			b = nil
		}
	}()
	url := f.RedisURL
	if f.embedded() {
		b.inside = miniredis.NewMiniRedis()
		if err := b.inside.StartAddr("127.0.0.1:0"); err != nil {
			return b, fmt.Errorf("start the embedded redis: %w", err)
		}
		url = "redis://" + b.inside.Addr()
	}
	if b.redis, err = queue.Connect(url, f.RedisPool); err != nil {
		return b, err
	}
	if b.waits, err = queue.ConnectBlocking(url); err != nil {
		return b, err
	}
	b.queue = queue.New(b.redis, queue.Options{
		Blocking: b.waits, Logger: log, Registerer: reg, UserLimit: f.LimitUser, AddressLimit: f.LimitAddress,
		OutboxLimit: f.OutboxLimit, Tracer: tracer, Embedded: f.embedded(),
	})
	if err := b.queue.Load(ctx); err != nil {
		return b, queue.AwayRedis(url, err)
	}
	if err := b.openStore(ctx); err != nil {
		return b, err
	}
	if f.AMQPURL == "" {
		b.direct = worker.NewDirect()
		return b, nil
	}
	b.amqp, err = worker.NewAMQP(f.AMQPURL, worker.AMQPOptions{Logger: log, Node: node, Prefix: f.AMQPPrefix})
	return b, err
}

func (b *backends) openStore(ctx context.Context) (err error) {
	url, err := b.flags.url()
	if err != nil {
		return err
	}
	if b.store, err = worker.OpenStore(ctx, url, worker.StoreOptions{Conns: b.flags.DatabaseConns}); err != nil {
		return err
	}
	if err := b.store.Writable(ctx); err != nil {
		return err
	}
	return b.store.Migrate(ctx)
}

// databaseFlags say where the rows are.
type databaseFlags struct {
	DatabaseURL     string `name:"database-url" placeholder:"URL" help:"Database: mysql://, postgres:// or sqlite://. Without it SQLite in --data-dir."`
	DatabaseURLFile string `name:"database-url-file" placeholder:"FILE" help:"File with the URL of the database."`
	DataDir         string `default:"data" placeholder:"DIR" help:"Where an embedded installation keeps its database and its secret, if not in ${default}."`
}

// url is the URL of the database that the flags name; for the embedded one the folder is made.
func (f databaseFlags) url() (string, error) {
	url, err := valueOrFile("database-url", f.DatabaseURL, f.DatabaseURLFile)
	if url != "" || err != nil {
		return url, err
	}
	if err := os.MkdirAll(f.DataDir, 0o700); err != nil {
		return "", fmt.Errorf("make --data-dir: %w", err)
	}
	path, err := filepath.Abs(filepath.Join(f.DataDir, "sluice.db"))
	if err != nil {
		return "", fmt.Errorf("find --data-dir: %w", err)
	}
	return "sqlite://" + path, nil
}

// broker is what carries orders from the outbox to the database.
func (b *backends) broker() worker.Broker {
	if b.amqp != nil {
		return b.amqp
	}
	return b.direct
}

// ready says whether Redis answers: without it a node can do nothing for a new shopper, and another one may reach it. Without
// the database, which was there at the start, people join, wait and grab as ever, and no node would be better.
func (b *backends) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return b.queue.Ping(ctx)
}

// awayTimeout bounds how long all that a node stands on is asked whether it is there.
const awayTimeout = 2 * time.Second

// away are the sentences for operators about all that does not answer; none where everything does. It blocks for 2 s at most.
func (b *backends) away(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, awayTimeout)
	defer cancel()
	asked := []func() error{
		func() error {
			if err := b.queue.Ping(ctx); err != nil && !b.flags.embedded() {
				return queue.AwayRedis(b.flags.RedisURL, err)
			}
			return nil
		},
		func() error { return b.store.Ping(ctx) },
		func() error {
			if b.amqp == nil {
				return nil
			}
			return b.amqp.Ping(ctx)
		},
	}
	found := make([]string, len(asked))
	var all sync.WaitGroup
	for i, ask := range asked {
		all.Go(func() {
			var away *queue.Away
			if err := ask(); errors.As(err, &away) {
				found[i] = away.Error()
			}
		})
	}
	all.Wait()
	return slices.DeleteFunc(found, func(sentence string) bool { return sentence == "" })
}

// close lets go of everything; it may be called on what was opened only in part.
func (b *backends) close() {
	if b.amqp != nil {
		b.amqp.Close()
	}
	if b.store != nil {
		if err := b.store.Close(); err != nil {
			b.log.Error("the database was not closed cleanly", "error", err)
		}
	}
	for _, client := range []redis.UniversalClient{b.redis, b.waits} {
		if client != nil {
			_ = client.Close()
		}
	}
	if b.inside != nil {
		b.inside.Close()
	}
}
