package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"

	_ "github.com/go-sql-driver/mysql" // the database driver
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"

	"sluice/deploy/control"
)

// services are what the suite stands on, and what it does to them.
type services struct {
	redisAt, amqpAt, mysqlAt string // host:port
	redis                    *redis.Client
	db                       *sql.DB
	control                  control.Control
}

func findServices() (*services, error) {
	s := &services{}
	for variable, at := range map[string]*string{"SLUICE_TEST_REDIS": &s.redisAt, "SLUICE_TEST_AMQP": &s.amqpAt, "SLUICE_TEST_MYSQL": &s.mysqlAt} {
		u, err := url.Parse(os.Getenv(variable))
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("%s is not set; run the suite with: make test-faults", variable)
		}
		*at = u.Host
	}
	var err error
	if s.control, err = control.Find(); err != nil {
		return nil, err
	}
	s.redis = redis.NewClient(&redis.Options{Addr: s.redisAt})
	s.db, err = sql.Open("mysql", "root@tcp("+s.mysqlAt+")/?multiStatements=true")
	return s, err
}

func (s *services) close() {
	_ = s.redis.Close()
	_ = s.db.Close()
}

// restart kills a service and starts it again.
func (s *services) restart(name string) error {
	if _, err := s.control.Tell("kill " + name); err != nil {
		return err
	}
	_, err := s.control.Tell("start " + name)
	return err
}

// copyRedis keeps what Redis has on disk now, like a replica that falls behind from here on.
func (s *services) copyRedis(to string) error {
	dir, err := s.control.Tell("dir redis")
	if err != nil {
		return err
	}
	return copyFolder(filepath.Join(dir, "appendonlydir"), to)
}

// becomeCopy lets the copy take the place of Redis, as when a stale replica is promoted.
func (s *services) becomeCopy(from string) error {
	dir, err := s.control.Tell("dir redis")
	if err != nil {
		return err
	}
	if _, err := s.control.Tell("kill redis"); err != nil {
		return err
	}
	files := filepath.Join(dir, "appendonlydir")
	if err := os.RemoveAll(files); err != nil {
		return err
	}
	if err := copyFolder(from, files); err != nil {
		return err
	}
	_, err = s.control.Tell("start redis")
	return err
}

// copyFolder keeps owners and modes: the services have an account of their own.
func copyFolder(from, to string) error {
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, out)
	}
	return nil
}

// prepare empties Redis and makes a database, in which sluice has the rights of a tenant.
func (s *services) prepare(ctx context.Context, database, fsync string) error {
	if err := s.redis.FlushAll(ctx).Err(); err != nil {
		return err
	}
	if err := s.tune(ctx, fsync); err != nil {
		return err
	}
	_, err := s.db.ExecContext(ctx, "SET GLOBAL read_only = 0; SET GLOBAL max_connections = 1000; DROP DATABASE IF EXISTS "+database+"; CREATE DATABASE "+database+
		"; CREATE USER IF NOT EXISTS 'sluice'@'%'; GRANT ALL ON "+database+".* TO 'sluice'@'%'")
	return err
}

// forget removes the queues of a schedule: a broker that has many takes long to start.
func (s *services) forget(prefix string) {
	conn, err := amqp.Dial("amqp://guest:guest@" + s.amqpAt + "/")
	if err != nil {
		return
	}
	defer conn.Close()
	for _, name := range []string{prefix + "sluice.orders", prefix + "sluice.dead"} {
		if ch, err := conn.Channel(); err == nil { // one each: a queue that is not there closes it
			_, _ = ch.QueueDelete(name, false, false, false)
			_ = ch.ExchangeDelete(name, false, false)
		}
	}
}

// tune sets how Redis writes to disk; after a restart it is to be set again.
func (s *services) tune(ctx context.Context, fsync string) error {
	for _, setting := range [][2]string{{"appendfsync", fsync}, {"auto-aof-rewrite-percentage", "0"}} {
		if err := s.redis.ConfigSet(ctx, setting[0], setting[1]).Err(); err != nil {
			return err
		}
	}
	return nil
}
