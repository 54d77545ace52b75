package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"sluice/queue"
)

// Writable is nil when the database takes writes, a [queue.Away] when it says that it does not: a replica, or one that was told
// to be read-only, for everybody or for this user alone.
func (s *Store) Writable(ctx context.Context) error {
	why, err := s.readOnly(ctx)
	if err != nil {
		return fmt.Errorf("ask the %s database whether it takes writes: %w", s.dialect.name, err)
	}
	if why == "" {
		return nil
	}
	return &queue.Away{
		What: "the " + s.dialect.name + " database", Where: s.address, Why: "it takes no writes: " + why,
		Do: "give --database-url the server that takes them, or end this there",
	}
}

// readOnly is why the database takes no writes, "" when it does.
func (s *Store) readOnly(ctx context.Context) (why string, err error) {
	var found []string
	switch s.dialect.name {
	case "mysql":
		// Not every server has all of them, and a session may have been told by itself.
		err = s.db.SelectContext(ctx, &found, `
			SELECT LOWER(CONCAT(variable_name, ' is ', variable_value)) FROM `+s.variables(ctx)+`
			WHERE variable_name IN ('read_only', 'super_read_only', 'innodb_read_only', 'transaction_read_only', 'tx_read_only')
				AND variable_value NOT IN ('OFF', '0') ORDER BY variable_name`)
	case "postgres":
		err = s.db.SelectContext(ctx, &found, `
			SELECT 'it is a standby' WHERE pg_is_in_recovery()
			UNION ALL SELECT 'default_transaction_read_only is on' WHERE current_setting('default_transaction_read_only') = 'on'`)
	}
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0], nil
}

// variables is the table in which this kind of MySQL has the variables of a session.
func (s *Store) variables(ctx context.Context) string {
	const mariaDB = "information_schema.session_variables"
	var there int
	if s.db.GetContext(ctx, &there, "SELECT 1 FROM "+mariaDB+" LIMIT 1") == nil {
		return mariaDB
	}
	return "performance_schema.session_variables"
}

// leaveBehind closes the connections to a PostgreSQL that has become a replica: those made anew may lead to the server that took
// over for it. (The driver of MySQL does so by itself.)
func (s *Store) leaveBehind(err error) {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "25006" {
		s.writer.SetMaxIdleConns(0)
		s.writer.SetMaxIdleConns(s.conns)
	}
}
