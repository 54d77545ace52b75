package worker

import (
	"context"
	"fmt"
	"time"
)

// DatabaseFacts are what a database says of itself, as far as it matters to orders.
type DatabaseFacts struct {
	Dialect   string
	Version   string
	RoundTrip time.Duration // of a short query, the shortest of several
	Offset    time.Duration // its clock less ours, exact to half a RoundTrip; 0 for one inside this process
	ReadOnly  bool          // a replica, or one that was told to be
	MaxConns  int64         // connections that it takes; 0 = it knows no limit

	// Careless are settings with which a commit may be lost though it was confirmed.
	Careless []Setting
	// Padded are columns of ids whose comparison is not one of bytes, and tables that know no transactions.
	Padded []string

	Known   int64 // the newest version of the tables that this program knows
	Applied int64 // the one that the database has; 0 = none

	LogGuarded bool // the database refuses to change or remove entries of the audit log
}

// Setting is one of a database, with the value that it has to have.
type Setting struct{ Name, Value, Want string }

// Inspect asks the database about itself and changes nothing.
func (s *Store) Inspect(ctx context.Context) (DatabaseFacts, error) {
	f := DatabaseFacts{Dialect: s.dialect.name}
	inspect := map[string]func(context.Context, *DatabaseFacts) error{
		"mysql": s.inspectMySQL, "postgres": s.inspectPostgres, "sqlite": s.inspectSQLite,
	}[s.dialect.name]
	if err := inspect(ctx, &f); err != nil {
		return f, fmt.Errorf("ask the %s database about itself: %w", s.dialect.name, err)
	}
	var err error
	if f.Known, f.Applied, err = s.versions(ctx); err == nil {
		f.LogGuarded, err = s.guarded(ctx)
	}
	return f, err
}

func (s *Store) inspectMySQL(ctx context.Context, f *DatabaseFacts) error {
	if err := s.db.QueryRowxContext(ctx, "SELECT VERSION(), @@global.read_only, @@max_connections").Scan(&f.Version, &f.ReadOnly, &f.MaxConns); err != nil {
		return err
	}
	var flush string
	if err := s.db.GetContext(ctx, &flush, "SELECT @@global.innodb_flush_log_at_trx_commit"); err != nil {
		return err
	}
	if flush != "1" {
		f.Careless = append(f.Careless, Setting{"innodb_flush_log_at_trx_commit", flush, "1"})
	}
	if err := s.db.SelectContext(ctx, &f.Padded, `
		SELECT CONCAT(table_name, '.', column_name) FROM information_schema.columns
		WHERE table_schema = DATABASE() AND column_name IN ('user_id', 'sale_id', 'item_id', 'order_id', 'request_id')
			AND table_name IN ('orders', 'items', 'stock_moves', 'payments') AND data_type <> 'varbinary'
		UNION ALL
		SELECT CONCAT(table_name, ' is ', engine) FROM information_schema.tables
		WHERE table_schema = DATABASE() AND engine <> 'InnoDB' AND table_name IN ('sales', 'items', 'orders', 'stock_moves', 'payments')`); err != nil {
		return err
	}
	return s.offset(ctx, f, "SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)")
}

func (s *Store) inspectPostgres(ctx context.Context, f *DatabaseFacts) error {
	const about = `SELECT current_setting('server_version'),
		pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on', current_setting('max_connections')::bigint`
	if err := s.db.QueryRowxContext(ctx, about).Scan(&f.Version, &f.ReadOnly, &f.MaxConns); err != nil {
		return err
	}
	for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		var value string
		if err := s.db.GetContext(ctx, &value, "SELECT current_setting($1)", name); err != nil {
			return err
		}
		if value == "off" {
			f.Careless = append(f.Careless, Setting{name, value, "on"})
		}
	}
	if err := s.db.SelectContext(ctx, &f.Padded, `
		SELECT table_name || '.' || column_name FROM information_schema.columns
		WHERE table_schema = current_schema() AND column_name IN ('user_id', 'sale_id', 'item_id', 'order_id', 'request_id')
			AND table_name IN ('orders', 'items', 'stock_moves', 'payments') AND collation_name IS DISTINCT FROM 'C'
		UNION ALL
		SELECT relname || ' is unlogged' FROM pg_class
		WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relpersistence = 'u'`); err != nil {
		return err
	}
	return s.offset(ctx, f, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
}

func (s *Store) inspectSQLite(ctx context.Context, f *DatabaseFacts) error {
	if err := s.db.GetContext(ctx, &f.Version, "SELECT sqlite_version()"); err != nil {
		return err
	}
	// Whoever may not write to the file may not begin to.
	tx, err := s.writer.BeginTxx(ctx, nil)
	if err != nil {
		f.ReadOnly = true
		return nil //nolint:nilerr // that is the answer
	}
	return tx.Rollback()
}

// offset compares the clocks: the answer whose way was the shortest tells most.
func (s *Store) offset(ctx context.Context, f *DatabaseFacts, query string) error {
	for range 5 {
		var there int64
		sent := time.Now()
		if err := s.db.GetContext(ctx, &there, query); err != nil {
			return err
		}
		took := time.Since(sent)
		if f.RoundTrip == 0 || took < f.RoundTrip {
			f.RoundTrip, f.Offset = took, time.UnixMilli(there).Sub(sent.Add(took/2))
		}
	}
	return nil
}
