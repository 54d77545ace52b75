package worker

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

func TestStoreMigratesTwice(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 5))
		write(t, s, grab("phone", 1))
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantSold(t, s, "phone", 1)
	})
}

func TestStoreMigratesFromManyProcessesAtOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		together(4, func(int) {
			s, err := OpenStore(t.Context(), url, StoreOptions{Conns: 2})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if err := s.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
		})
		s := openTest(t, url)
		var versions []int64
		if err := s.db.SelectContext(t.Context(), &versions, "SELECT version_id FROM goose_db_version ORDER BY id"); err != nil {
			t.Fatal(err)
		}
		wantSame(t, "the applied versions", versions, []int64{0, 1, 2, 3, 4, 5})
		save(t, s, sellOut("phone", 1, 5))
		write(t, s, grab("phone", 1))
		wantSold(t, s, "phone", 1)
	})
}

func TestStoreMigrationsHaveOneProcessAtATime(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // not for ever, where a lock is not given back
		defer cancel()
		var inside atomic.Int64
		together(4, func(int) {
			s, err := OpenStore(ctx, url, StoreOptions{Conns: 2})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			for range 3 {
				unlock, err := s.dialect.migrating.lock(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d processes have the lock", n)
				}
				if err := s.Ping(ctx); err != nil {
					t.Error(err)
				}
				inside.Add(-1)
				if err := unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	})
}

// MySQL commits table by table, so a process that dies while it migrates leaves some of the tables behind.
func TestStoreMigratesWhatAnotherOneLeftHalfDone(t *testing.T) {
	t.Parallel()
	url := serverDatabase(t, "SLUICE_TEST_MYSQL", "mysql")
	s := openTest(t, url)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"DROP TABLE audit_log", "DROP TABLE payments", "DELETE FROM goose_db_version WHERE version_id > 0",
	} {
		if _, err := s.db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var payments int
	if err := s.db.GetContext(t.Context(), &payments, "SELECT COUNT(*) FROM payments"); err != nil {
		t.Error(err)
	}
}
