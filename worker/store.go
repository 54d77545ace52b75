package worker

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"sluice/fault"
)

// Store is the database: sales, their items, and every order ever written. It speaks to MySQL, MariaDB, PostgreSQL
// and SQLite with the same SQL; what differs between them is in dialect.go. It is safe for use by many goroutines and
// many processes at once.
type Store struct {
	dialect dialect
	db      *sqlx.DB // for reading
	writer  *sqlx.DB // for transactions that write; the same pool as db except with SQLite, which has one writer

	conns             int    // of each pool, at most
	address, database string // where it is, for people; "" with SQLite
}

// StoreOptions are the settings of a Store. The zero value is usable.
type StoreOptions struct {
	Conns int // connections at most; 0 = 16
}

// OpenStore opens the database at a URL: mysql://user:password@host:port/name, postgres://… or sqlite://path. It waits
// for one answer of the server, and changes nothing there: see [Store.Migrate]. A server that is away, or lacks the database, is a
// [queue.Away]. No error of it contains the password.
func OpenStore(ctx context.Context, url string, opts StoreOptions) (*Store, error) {
	if opts.Conns <= 0 {
		opts.Conns = 16
	}
	s, err := open(url)
	if err != nil {
		return nil, err
	}
	s.conns = opts.Conns
	for _, pool := range s.pools() {
		pool.SetMaxOpenConns(opts.Conns)
		pool.SetMaxIdleConns(opts.Conns)
		pool.SetConnMaxLifetime(10 * time.Minute) // so that a moved or drained server is left behind
	}
	if s.writer != s.db {
		s.writer.SetMaxOpenConns(1)
	}
	err = s.Ping(ctx)
	// SQLite does not wait for its lock while another process turns a new file's write-ahead log on.
	for attempt := 1; isContention(err) && attempt <= openAttempts; attempt++ {
		if err = backoff(ctx, attempt); err == nil {
			err = s.Ping(ctx)
		}
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// openAttempts bounds how often a database that is locked is asked again when it is opened: for some 5 s on average.
const openAttempts = 50

// Ping waits for an answer of the database.
func (s *Store) Ping(ctx context.Context) error {
	for _, pool := range s.pools() {
		if err := pool.PingContext(ctx); err != nil {
			return s.away(err)
		}
	}
	return nil
}

// Close closes all connections, after waiting for running queries.
func (s *Store) Close() error {
	var errs []error
	for _, pool := range slices.Backward(s.pools()) { // the writer last: it puts a file in order
		if err := pool.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close the %s database: %w", s.dialect.name, err))
		}
	}
	return errors.Join(errs...)
}

// Dialect is the kind of database: "mysql" (MariaDB too), "postgres" or "sqlite".
func (s *Store) Dialect() string { return s.dialect.name }

// pools lists the connection pools, the one that creates the file first.
func (s *Store) pools() []*sqlx.DB {
	if s.writer == s.db {
		return []*sqlx.DB{s.db}
	}
	return []*sqlx.DB{s.writer, s.db}
}

// writeAttempts bounds how often a transaction that met another one is begun again. The waits before them add up to
// about a second on average; whoever called has more patience and its own backoff.
const writeAttempts = 12

// write runs fn in a transaction and commits it, at READ COMMITTED. A transaction that the database gave up because
// it met another one is run again, so fn must not keep anything from an earlier run.
func (s *Store) write(ctx context.Context, fn func(tx *sqlx.Tx) error) error {
	var err error
	for attempt := range writeAttempts {
		if attempt > 0 {
			if err := backoff(ctx, attempt); err != nil {
				return err
			}
		}
		err = transact(ctx, s.writer, &sql.TxOptions{Isolation: sql.LevelReadCommitted}, fn)
		if !isContention(err) {
			s.leaveBehind(err)
			return err
		}
	}
	return err
}

// transact runs fn in one transaction, which ends with it.
func transact(ctx context.Context, db *sqlx.DB, opts *sql.TxOptions, fn func(tx *sqlx.Tx) error) error {
	tx, err := db.BeginTxx(ctx, opts)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback() // does nothing after a commit
	if err := fn(tx); err != nil {
		return err
	}
	fault.Point("store.committing")
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	fault.Point("store.committed")
	return nil
}

// backoff waits a random time up to 2 ms × 2^attempt, at most 250 ms, or until ctx ends.
func backoff(ctx context.Context, attempt int) error {
	limit := min(2*time.Millisecond<<attempt, 250*time.Millisecond)
	timer := time.NewTimer(rand.N(limit))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// now is the wall clock in milliseconds, for the columns that say when a row was touched. Everything that decides
// something goes by Redis time instead.
func now() int64 { return time.Now().UnixMilli() }
