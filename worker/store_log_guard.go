package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// guard is a trigger by which the database itself refuses to change or remove entries of the audit log.
type guard struct {
	name   string
	create []string // statements
}

// logGuards are those of a kind of database. What they cannot refuse is the removal of the whole table, to which MySQL counts
// TRUNCATE; whoever may do that may remove the guards too.
func logGuards(dialect string) []guard {
	const why = "'entries of the audit log are neither changed nor removed'"
	switch dialect {
	case "postgres":
		return []guard{{"audit_log_kept", []string{
			"CREATE OR REPLACE FUNCTION audit_log_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION " + why + "; END $$",
			"DROP TRIGGER IF EXISTS audit_log_kept ON audit_log", // one that was switched off is there, and guards nothing
			"CREATE TRIGGER audit_log_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION audit_log_refuse()",
		}}}
	case "mysql":
		const refuse = " ON audit_log FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = " + why
		return []guard{
			{"audit_log_unchanged", []string{"CREATE TRIGGER audit_log_unchanged BEFORE UPDATE" + refuse}},
			{"audit_log_kept", []string{"CREATE TRIGGER audit_log_kept BEFORE DELETE" + refuse}},
		}
	}
	const refuse = " BEGIN SELECT RAISE(ABORT, " + why + "); END"
	return []guard{
		{"audit_log_unchanged", []string{"CREATE TRIGGER audit_log_unchanged BEFORE UPDATE ON audit_log" + refuse}},
		{"audit_log_kept", []string{"CREATE TRIGGER audit_log_kept BEFORE DELETE ON audit_log" + refuse}},
		// INSERT OR REPLACE removes a row without a word to the other two.
		{"audit_log_appended", []string{
			"CREATE TRIGGER audit_log_appended BEFORE INSERT ON audit_log WHEN EXISTS (SELECT 1 FROM audit_log WHERE id = NEW.id)" + refuse,
		}},
	}
}

// guardLog puts those guards into place that are not there or were switched off. They are no migration, because not every user
// of a database may make triggers (in MySQL with a binary log, as it comes, only administrators may), and without them no sale
// must fail to be sold: then the audit log is what no code of ours changes, `sluice doctor` says so, and the next start tries
// again.
func (s *Store) guardLog(ctx context.Context) error {
	there, err := s.guards(ctx)
	if err != nil {
		return err
	}
	for _, guard := range logGuards(s.dialect.name) {
		if slices.Contains(there, guard.name) {
			continue
		}
		for _, statement := range guard.create {
			_, err := s.writer.ExecContext(ctx, statement)
			if isForbidden(err) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("guard the audit log: %w", err)
			}
		}
	}
	return nil
}

// guards are the names of the guards that are there and at work, as far as this user of the database is shown them.
func (s *Store) guards(ctx context.Context) ([]string, error) {
	var names []string
	err := s.db.SelectContext(ctx, &names, map[string]string{
		"mysql":    "SELECT trigger_name FROM information_schema.triggers WHERE event_object_schema = DATABASE() AND event_object_table = 'audit_log'",
		"postgres": "SELECT tgname FROM pg_trigger WHERE tgrelid = to_regclass('audit_log') AND tgenabled IN ('O', 'A') AND NOT tgisinternal",
		"sqlite":   "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit_log'",
	}[s.dialect.name])
	if err != nil {
		return nil, fmt.Errorf("look for the guards of the audit log: %w", err)
	}
	return names, nil
}

// guarded says whether all guards are there.
func (s *Store) guarded(ctx context.Context) (bool, error) {
	there, err := s.guards(ctx)
	return err == nil && !slices.ContainsFunc(logGuards(s.dialect.name), func(g guard) bool { return !slices.Contains(there, g.name) }), err
}

// isForbidden says whether the user of the database may not do that.
func isForbidden(err error) bool {
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		return slices.Contains([]uint16{
			1044, // no right in the database
			1142, // no such right for the table
			1227, // only for administrators
			1419, // only for administrators where there is a binary log
		}, my.Number)
	}
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "42501"
}
