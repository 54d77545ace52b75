package worker

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// migrateWait is how long a process waits for the migrations of another one.
const migrateWait = 5 * time.Minute

// mysqlLock is a named lock of the server, with the database in its name. It ends with its session, so a process that
// dies leaves nothing behind.
type mysqlLock struct{}

func (mysqlLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	var got sql.NullInt64
	query := "SELECT GET_LOCK(CONCAT('sluice-', MD5(DATABASE())), ?)"
	if err := conn.QueryRowContext(ctx, query, int64(migrateWait/time.Second)).Scan(&got); err != nil {
		return fmt.Errorf("lock the migrations: %w", err)
	}
	if got.Int64 != 1 {
		return fmt.Errorf("lock the migrations: another process has held them for %s", migrateWait)
	}
	return nil
}

func (mysqlLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "DO RELEASE_LOCK(CONCAT('sluice-', MD5(DATABASE())))")
	return err
}

// postgresLock is an advisory lock of the database. It, too, ends with its session.
type postgresLock struct{}

// postgresLockKey is a number that no other program locks in the same database: "sluice" in ASCII.
const postgresLockKey = 0x736c75696365

func (postgresLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	// The connection's own lock_timeout is meant for rows.
	if _, err := conn.ExecContext(ctx, "SELECT set_config('lock_timeout', $1, false)",
		fmt.Sprint(migrateWait.Milliseconds())); err != nil {
		return fmt.Errorf("lock the migrations: %w", err)
	}
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", int64(postgresLockKey)); err != nil {
		return fmt.Errorf("lock the migrations: %w", err)
	}
	return nil
}

func (postgresLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", int64(postgresLockKey)); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, "RESET lock_timeout")
	return err
}

// sqliteLock is an open transaction on a file beside the database: one on the database itself would keep out the
// migrations, too. The operating system ends it with the process. The file stays, empty: removing it would take it from
// under someone who waits for it.
type sqliteLock struct {
	open func() (*sqlx.DB, error)
	file *sqlx.DB
	conn *sqlx.Conn // of file; has the transaction
}

func (l *sqliteLock) SessionLock(ctx context.Context, _ *sql.Conn) error {
	var err error
	if l.file, err = l.open(); err != nil {
		return err
	}
	if l.conn, err = l.file.Connx(ctx); err != nil {
		_ = l.file.Close()
		return fmt.Errorf("lock the migrations: %w", err)
	}
	for begun := time.Now(); ; {
		_, err := l.conn.ExecContext(ctx, "BEGIN IMMEDIATE") // waits for as long as busy_timeout says
		if err == nil {
			return nil
		}
		if !isContention(err) || time.Since(begun) > migrateWait {
			_ = l.close()
			return fmt.Errorf("lock the migrations: %w", err)
		}
	}
}

func (l *sqliteLock) SessionUnlock(context.Context, *sql.Conn) error {
	return l.close()
}

// close closes the file, and with it the transaction. A connection is closed when it comes back to a closed pool.
func (l *sqliteLock) close() error {
	return errors.Join(l.file.Close(), l.conn.Close())
}
