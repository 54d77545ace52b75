package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"sluice/words"
)

// migrateWait is how long a process waits for the migrations of another one.
const migrateWait = 5 * time.Minute

// migrationLock keeps other processes out while one looks at the tables and changes them. It has a connection of its
// own and is held for as long as that is open, so a process that dies leaves nothing locked.
type migrationLock struct {
	open func() (*sqlx.DB, error)
	take func(ctx context.Context, conn *sqlx.Conn) error
}

// lock waits for the lock and returns what gives it back.
func (l migrationLock) lock(ctx context.Context) (unlock func() error, err error) {
	db, err := l.open()
	if err != nil {
		return nil, err
	}
	conn, err := db.Connx(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	unlock = func() error {
		return errors.Join(db.Close(), conn.Close()) // a connection that comes back to a closed pool is closed
	}
	if err := l.take(ctx, conn); err != nil {
		return nil, errors.Join(err, unlock())
	}
	return unlock, nil
}

// takeMySQL takes a named lock of the server, with the database in its name.
func takeMySQL(ctx context.Context, conn *sqlx.Conn) error {
	var got *int64
	if err := conn.GetContext(ctx, &got, "SELECT GET_LOCK(CONCAT('sluice-', MD5(DATABASE())), ?)",
		int64(migrateWait/time.Second)); err != nil {
		return err
	}
	if got == nil || *got != 1 {
		return fmt.Errorf("another process has held them for %s", words.Duration(migrateWait))
	}
	return nil
}

// postgresLockKey is a number that no other program locks in the same database: "sluice" in ASCII.
const postgresLockKey = 0x736c75696365

// takePostgres takes an advisory lock of the database. The connection's own lock_timeout is meant for rows.
func takePostgres(ctx context.Context, conn *sqlx.Conn) error {
	if _, err := conn.ExecContext(ctx, fmt.Sprintf("SET lock_timeout = %d", migrateWait.Milliseconds())); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", int64(postgresLockKey))
	return err
}

// takeSQLite begins a transaction on a file beside the database: one on the database itself would keep out the
// migrations, too. The file stays, empty: removing it would take it from under someone who waits for it.
func takeSQLite(ctx context.Context, conn *sqlx.Conn) error {
	for begun := time.Now(); ; {
		_, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE") // waits for as long as the connection's busy_timeout
		if !isContention(err) || time.Since(begun) > migrateWait {
			return err
		}
	}
}
