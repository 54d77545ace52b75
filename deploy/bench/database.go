package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the database driver
	"github.com/redis/go-redis/v9"
)

// pid tells the databases of this run from those of another.
var pid = os.Getpid()

// connect opens what the bench itself reads from.
func (b *bench) connect() error {
	options, err := redis.ParseURL(b.redisURL)
	if err != nil {
		return err
	}
	b.redis = redis.NewClient(options)
	if b.mysql, err = sql.Open("mysql", driverMySQL(b.mysqlURL, "")); err != nil {
		return err
	}
	b.pg, err = sql.Open("pgx", b.postgresURL)
	return err
}

// driverMySQL is a mysql:// URL as the driver wants it.
func driverMySQL(text, database string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	return fmt.Sprintf("%s@tcp(%s)/%s", u.User.String(), u.Host, database)
}

// createDatabase makes an empty database and returns its URL for sluice.
func (b *bench) createDatabase(ctx context.Context, dialect, name string) (string, error) {
	db, base := b.mysql, b.mysqlURL
	if dialect == "postgres" {
		db, base = b.pg, b.postgresURL
	}
	if _, err := db.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	return base + "/" + name, nil
}

// dropDatabases removes the databases of this run; failing that they go with the services.
func (b *bench) dropDatabases() {
	for n := 1; n <= b.worlds; n++ {
		name := fmt.Sprintf("bench_%d_%d", pid, n)
		_, _ = b.mysql.Exec("DROP DATABASE IF EXISTS " + name)
		_, _ = b.pg.Exec("DROP DATABASE IF EXISTS " + name)
	}
}

// rows counts the orders in the database of a world.
func (b *bench) rows(ctx context.Context, w *world) (n int64, err error) {
	u, err := url.Parse(w.database)
	if err != nil {
		return 0, err
	}
	if u.Scheme == "postgres" {
		db, err := sql.Open("pgx", w.database)
		if err != nil {
			return 0, err
		}
		defer db.Close()
		return n, db.QueryRowContext(ctx, "SELECT COUNT(*) FROM orders").Scan(&n)
	}
	return n, b.mysql.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+u.Path[1:]+".orders").Scan(&n)
}

// lastGrab is when the newest order was made, by the clock of Redis.
func (b *bench) lastGrab(ctx context.Context, w *world) (time.Time, error) {
	u, err := url.Parse(w.database)
	if err != nil {
		return time.Time{}, err
	}
	var ms int64
	err = b.mysql.QueryRowContext(ctx, "SELECT MAX(created_at) FROM "+u.Path[1:]+".orders").Scan(&ms)
	return time.UnixMilli(ms), err
}
