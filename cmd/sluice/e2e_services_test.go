package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
)

// ground is what the processes of one test stand on: a Redis database, names in RabbitMQ and a database of its own.
type ground struct {
	t     *testing.T
	flags []string // for serve and worker
	rows  *sql.DB
}

// newGround makes one on MariaDB ("mysql") or PostgreSQL ("postgres"), and removes it after the test.
func newGround(t *testing.T, database string) *ground {
	t.Helper()
	g := &ground{t: t}
	redisURL := claimRedis(t)
	amqpURL, prefix := claimBroker(t)
	databaseURL, rows := createDatabase(t, database)
	g.rows = rows
	g.flags = []string{"--redis-url", redisURL, "--amqp-url", amqpURL, "--amqp-prefix", prefix, "--database-url", databaseURL, "--database-conns", "4", "--redis-pool", "8"}
	return g
}

// redisClaim is the key by which a test has a Redis database for itself.
const redisClaim = "sluice-e2e"

// redis is a client of its Redis, which the caller closes.
func (g *ground) redis() *redis.Client {
	g.t.Helper()
	opts, err := redis.ParseURL(g.flags[1])
	if err != nil {
		g.t.Fatal(err)
	}
	return redis.NewClient(opts)
}

// flush takes everything from Redis, as if it had started empty.
func (g *ground) flush() {
	g.t.Helper()
	rdb := g.redis()
	defer rdb.Close()
	if _, err := rdb.TxPipelined(g.t.Context(), func(p redis.Pipeliner) error {
		p.FlushDB(g.t.Context())
		p.Set(g.t.Context(), redisClaim, g.t.Name(), claimFor) // nobody else may take it meanwhile
		return nil
	}); err != nil {
		g.t.Fatalf("flush redis: %v", err)
	}
}

// claimFor is how long a claim of a Redis database lasts when its test dies.
const claimFor = 5 * time.Minute

// claimRedis finds a logical database that nobody uses. A process lists every sale of its database, so sharing one
// would mix the sales of different tests.
func claimRedis(t *testing.T) string {
	t.Helper()
	server := setting(t, "SLUICE_TEST_REDIS")
	for number := 1; number < 15; number++ {
		address := fmt.Sprintf("%s/%d", strings.TrimSuffix(server, "/"), number)
		opts, err := redis.ParseURL(address)
		if err != nil {
			t.Fatalf("SLUICE_TEST_REDIS: %v", err)
		}
		rdb := redis.NewClient(opts)
		free, err := rdb.SetNX(t.Context(), redisClaim, t.Name(), claimFor).Result()
		if err != nil {
			t.Fatalf("claim a redis database: %v", err)
		}
		if free {
			removeSales(t, rdb) // of a test that died
			if size := rdb.DBSize(t.Context()).Val(); size == 1 {
				t.Cleanup(func() {
					removeSales(t, rdb)
					rdb.Del(context.Background(), redisClaim)
					_ = rdb.Close()
				})
				return address
			}
			rdb.Del(t.Context(), redisClaim)
		}
		_ = rdb.Close()
	}
	t.Fatal("every redis database from 1 to 14 is in use")
	return ""
}

// removeSales removes all sales of these tests from a Redis database.
func removeSales(t *testing.T, rdb *redis.Client) {
	t.Helper()
	ctx := context.Background()
	var keys []string
	for _, pattern := range []string{"sluice:{e2e-*", "sluice:lease:*", "sluice:{_nodes}:*"} {
		keys = append(keys, rdb.Keys(ctx, pattern).Val()...)
	}
	for batch := range slices.Chunk(keys, 500) {
		rdb.Del(ctx, batch...)
	}
	for _, sale := range rdb.SMembers(ctx, "sluice:sales").Val() {
		if strings.HasPrefix(sale, "e2e-") {
			rdb.SRem(ctx, "sluice:sales", sale)
		}
	}
}

// claimBroker chooses names in RabbitMQ, and removes what got them after the test.
func claimBroker(t *testing.T) (server, prefix string) {
	t.Helper()
	server, prefix = setting(t, "SLUICE_TEST_AMQP"), freshID()+"-"
	t.Cleanup(func() {
		conn, err := amqp.Dial(server)
		if err != nil {
			t.Errorf("clean up in rabbitmq: %v", err)
			return
		}
		defer conn.Close()
		ch, err := conn.Channel()
		if err != nil {
			t.Errorf("clean up in rabbitmq: %v", err)
			return
		}
		for _, name := range []string{prefix + "sluice.orders", prefix + "sluice.dead"} {
			if _, err := ch.QueueDelete(name, false, false, false); err != nil {
				t.Errorf("delete the queue %s: %v", name, err)
			}
			if err := ch.ExchangeDelete(name, false, false); err != nil {
				t.Errorf("delete the exchange %s: %v", name, err)
			}
		}
	})
	return server, prefix
}

// createDatabase makes a database, to be dropped after the test, and opens it to look at its rows past the product.
func createDatabase(t *testing.T, kind string) (string, *sql.DB) {
	t.Helper()
	variable, driver, existing := "SLUICE_TEST_MYSQL", "mysql", "mysql"
	if kind == "postgres" {
		variable, driver, existing = "SLUICE_TEST_POSTGRES", "pgx", "postgres"
	}
	server := strings.TrimSuffix(setting(t, variable), "/")
	connect := func(database string) *sql.DB {
		source := server + "/" + database
		if kind == "mysql" {
			source = mysqlSource(t, server, database)
		}
		db, err := sql.Open(driver, source)
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	admin := connect(existing)
	name := strings.ReplaceAll(freshID(), "-", "_")
	if _, err := admin.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatalf("create a database: %v", err)
	}
	db := connect(name)
	t.Cleanup(func() {
		_ = db.Close()
		if _, err := admin.ExecContext(context.Background(), "DROP DATABASE "+name); err != nil {
			t.Errorf("drop the database: %v", err)
		}
		_ = admin.Close()
	})
	return server + "/" + name, db
}

// mysqlSource is a URL in the form of the driver.
func mysqlSource(t *testing.T, server, database string) string {
	t.Helper()
	parsed, err := url.Parse(server)
	if err != nil {
		t.Fatalf("SLUICE_TEST_MYSQL: %v", err)
	}
	return fmt.Sprintf("%s@tcp(%s)/%s", parsed.User, parsed.Host, database)
}

// buyers are the users with a live order in the sale, one entry an order, as the database has them.
func buyers(t *testing.T, db *sql.DB, sale string) []string {
	t.Helper()
	// The sale's id is one of ours, with no quote in it; databases differ in how they write parameters.
	rows, err := db.QueryContext(t.Context(), "SELECT user_id FROM orders WHERE live = 1 AND sale_id = '"+sale+"'")
	if err != nil {
		t.Fatalf("read the orders: %v", err)
	}
	defer rows.Close()
	var users []string
	for rows.Next() {
		var user []byte
		if err := rows.Scan(&user); err != nil {
			t.Fatalf("read an order: %v", err)
		}
		users = append(users, string(user))
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("read the orders: %v", err)
	}
	return users
}

// wantBuyers checks that so many orders were written, each of another user.
func (g *ground) wantBuyers(sale string, n int) {
	g.t.Helper()
	users := buyers(g.t, g.rows, sale)
	want(g.t, "number of orders in the database", len(users), n)
	slices.Sort(users)
	want(g.t, "number of buyers in the database", len(slices.Compact(users)), n)
}
