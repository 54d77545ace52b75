package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"testing"

	"sluice/queue"
)

func logged(t *testing.T, s *Store) []LoggedChange {
	t.Helper()
	changes, err := s.Changes(t.Context(), "", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

// guardedLog is whether an inspection finds the audit log guarded.
func guardedLog(t *testing.T, s *Store) bool {
	t.Helper()
	facts, err := s.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return facts.LogGuarded
}

func TestStoreRefusesToChangeOrRemoveWhatIsInTheAuditLog(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		sale := sellOut("phone", 1, 5)
		log := func(who string) {
			t.Helper()
			if err := s.LogChange(t.Context(), Change{At: opening, Who: who, Action: "pause", Sale: sale.ID, Before: &queue.Sale{}, After: &sale}); err != nil {
				t.Fatal(err)
			}
		}
		log("ann")
		before := logged(t, s)
		statements := []string{
			"UPDATE audit_log SET who = 'bob'", "UPDATE audit_log SET at = at + 1 WHERE who = 'ann'", "DELETE FROM audit_log", "DELETE FROM audit_log WHERE who = 'ann'",
		}
		replaced := fmt.Sprintf
		switch s.dialect.name {
		case "postgres":
			statements = append(statements, "TRUNCATE audit_log",
				replaced("INSERT INTO audit_log (id, at, who, action, sale_id, before_json, after_json) OVERRIDING SYSTEM VALUE VALUES (%d, 1, 'bob', 'x', 'x', '', '') ON CONFLICT (id) DO UPDATE SET who = 'bob'", before[0].ID))
		default:
			statements = append(statements,
				replaced("REPLACE INTO audit_log (id, at, who, action, sale_id, before_json, after_json) VALUES (%d, 1, 'bob', 'x', 'x', '', '')", before[0].ID))
		}
		for _, statement := range statements {
			if _, err := s.writer.ExecContext(t.Context(), statement); err == nil {
				t.Errorf("%s: it was done", statement)
			}
		}
		wantSame(t, "the audit log", logged(t, s), before)
		log("cid")
		if changes := logged(t, s); len(changes) != 2 || changes[0].Who != "cid" {
			t.Errorf("got %+v", changes)
		}
	})
}

func TestStoreGuardsTheAuditLogAgainWhereAGuardIsMissing(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		if !guardedLog(t, s) {
			t.Error("it is not guarded at first")
		}
		harms := []string{"DROP TRIGGER audit_log_kept"}
		if s.dialect.name == "postgres" { // which can also switch one off, as its tools do for a restore
			harms = []string{
				"DROP TRIGGER audit_log_kept ON audit_log",
				"ALTER TABLE audit_log DISABLE TRIGGER audit_log_kept", "ALTER TABLE audit_log ENABLE REPLICA TRIGGER audit_log_kept",
			}
		}
		for _, harm := range harms {
			if _, err := s.writer.ExecContext(t.Context(), harm); err != nil {
				t.Fatal(err)
			}
			if guardedLog(t, s) {
				t.Errorf("%s: it is not noticed", harm)
			}
			for range 2 {
				if err := s.Migrate(t.Context()); err != nil {
					t.Fatalf("%s: %v", harm, err)
				}
			}
			if !guardedLog(t, s) {
				t.Errorf("%s: the guard is not put back", harm)
			}
		}
	})
}

// In MySQL with a binary log, as it comes, only administrators may make triggers.
func TestStoreMigratesForWhoeverMayMakeNoTriggers(t *testing.T) {
	t.Parallel()
	whole := serverDatabase(t, "SLUICE_TEST_MYSQL", "mysql")
	u, err := url.Parse(whole)
	if err != nil {
		t.Fatal(err)
	}
	database, user := u.Path[1:], fmt.Sprintf("sluice_%08x", rand.Uint32())
	admin := openTest(t, whole)
	exec := func(ctx context.Context, statement string) {
		t.Helper()
		if _, err := admin.db.ExecContext(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	exec(t.Context(), "CREATE USER "+user+"@'%' IDENTIFIED BY 'secret'")
	t.Cleanup(func() { exec(context.Background(), "DROP USER "+user+"@'%'") })
	exec(t.Context(), "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON "+database+".* TO "+user+"@'%'")
	u.User = url.UserPassword(user, "secret")
	s := openTest(t, u.String())
	for range 2 {
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if guardedLog(t, s) {
		t.Error("it is guarded by triggers that the user must not make")
	}
	sale := sellOut("phone", 1, 5)
	if err := s.LogChange(t.Context(), Change{At: opening, Who: "ann", Action: "apply", Sale: sale.ID, After: &sale}); err != nil {
		t.Fatal(err)
	}
	exec(t.Context(), "GRANT TRIGGER ON "+database+".* TO "+user+"@'%'")
	next := openTest(t, u.String()) // a connection has the rights of when it was made
	if err := next.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !guardedLog(t, next) {
		t.Error("the right is there, and the guards are not")
	}
}
