package worker

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"
)

func TestStoreURLErrorsSayWhatToWriteAndNotThePassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"",
		"s3cret",
		"oracle://root:s3cret@db/shop",
		"mysql://root:s3cret@db",
		"mysql://root:s3cret@db/",
		"mysql://root:s3cret@/shop",
		"mysql://root:s3cret@db/shop/s3cret",
		"mysql://root:s3cret@db/shop?s3cret=1",
		"mysql://root:s3cret@db/shop?tls=sometimes",
		"mysql://root:/s3cret@db/shop",
		"mysql://root:1/s3cret@db/shop",
		"mysql://root:1?s3cret@db/shop",
		"mysql://root:1#s3cret@db/shop",
		"mysql://root:%s3cret@db/shop",
		"mysql://root:[s3cret@db/shop",
		"mysql://root:s3cret@db:x/shop",
		"postgres://root:s3cret@db",
		"postgres://root:1/s3cret@db/shop",
		"postgres://root:1#s3cret@db/shop",
		"postgres://root:%s3cret@db/shop",
		"postgres://root@db/shop?password=s3cret",
		"postgres://root:s3cret@db/shop?sslmode=sometimes",
		"postgres://root:s3cret@db:99999/shop",
		"sqlite://",
		"sqlite://orders.db?mode=s3cret",
	} {
		s, err := OpenStore(t.Context(), url, StoreOptions{})
		if err == nil {
			_ = s.Close()
			t.Errorf("%s was opened", url)
			continue
		}
		if !strings.HasPrefix(err.Error(), "database URL: ") {
			t.Errorf("%s: the error does not say that the URL is wrong: %v", url, err)
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error tells a secret: %v", url, err)
		}
		if IsTransient(err) || IsPermanent(err) {
			t.Errorf("%s: transient %t, permanent %t: %v", url, IsTransient(err), IsPermanent(err), err)
		}
	}
}

func TestStoreAnUnreachableServerIsTransientAndItsPasswordUntold(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close() // nobody listens there any more
	for _, scheme := range []string{"mysql", "postgres"} {
		_, err := OpenStore(t.Context(), scheme+"://root:s3cret@"+address+"/shop", StoreOptions{})
		if !IsTransient(err) || IsPermanent(err) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: transient %t, permanent %t: %v", scheme, IsTransient(err), IsPermanent(err), err)
		}
	}
}

func TestStoreAPasswordMayHaveAnyCharacter(t *testing.T) {
	t.Parallel()
	address := serverDatabase(t, "SLUICE_TEST_MYSQL", "mysql")
	s := openTest(t, address)
	const password = `a/b?c#d:e@f%g 'h' "i" \ ü`
	user := fmt.Sprintf("u%016x", rand.Uint64())
	for _, host := range []string{"'%'", "'localhost'"} { // either may be the better match
		account := user + "@" + host
		if _, err := s.db.ExecContext(t.Context(), "CREATE USER "+account+" IDENTIFIED BY ?", password); err != nil {
			t.Fatal(err)
		}
		defer s.db.ExecContext(context.Background(), "DROP USER "+account)
		if _, err := s.db.ExecContext(t.Context(), "GRANT ALL ON *.* TO "+account); err != nil {
			t.Fatal(err)
		}
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	var who string
	if err := openTest(t, u.String()).db.GetContext(t.Context(), &who, "SELECT CURRENT_USER()"); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(who, user) {
		t.Errorf("logged in as %s, want %s", who, user)
	}
	u.User = url.UserPassword(user, "s3cret")
	_, err = OpenStore(t.Context(), u.String(), StoreOptions{})
	if err == nil || IsPermanent(err) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a wrong password: %v", err)
	}
}

func TestStoreSQLiteSyncsEveryCommitAndMayLieAnywhere(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "a folder, 100% \"odd\" & 限量")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	s := openTest(t, "sqlite://"+filepath.Join(folder, "orders.db"))
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "orders.db")); err != nil {
		t.Error(err)
	}
	for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal", "busy_timeout": "5000"} {
		var got string
		if err := s.writer.GetContext(t.Context(), &got, "PRAGMA "+pragma); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
	if _, err := s.db.ExecContext(t.Context(), "DELETE FROM orders"); err == nil {
		t.Error("the connections for reading can write")
	}
}

func TestStoreSQLiteFileIsSharedByProcesses(t *testing.T) {
	t.Parallel()
	url := "sqlite://" + filepath.Join(t.TempDir(), "orders.db")
	stores := make([]*Store, 4)
	for i := range stores {
		stores[i] = openTest(t, url)
		if err := stores[i].Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	save(t, stores[0], sellOut("phone", 1, 90))
	together(len(stores), func(i int) {
		for batch := range 5 {
			from := i*25 + batch*5
			accepted(t, stores[i], grabs("phone", from, from+5))
		}
	})
	wantSold(t, stores[0], "phone", 90)
}

func TestStoreSQLiteLeavesOneFileWhenClosed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "orders.db")
	s, err := OpenStore(t.Context(), "sqlite://"+path, StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	save(t, s, sellOut("phone", 1, 5))
	wantSold(t, s, "phone", 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, leftover := range []string{path + "-wal", path + "-shm"} {
		if _, err := os.Stat(leftover); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left behind: %v", leftover, err)
		}
	}
}

// Whatever the server's own defaults are, on its connections MySQL reports what does not fit.
func TestStoreMySQLIsStrict(t *testing.T) {
	t.Parallel()
	s := openTest(t, serverDatabase(t, "SLUICE_TEST_MYSQL", "mysql"))
	for range 3 {
		var mode string
		if err := s.db.GetContext(t.Context(), &mode, "SELECT @@sql_mode"); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(mode, "STRICT_ALL_TABLES") {
			t.Errorf("the connection has the mode %s", mode)
		}
	}
}

// A batch that meets another one reads again, in the same transaction too.
func TestStoreAWritingTransactionSeesWhatOthersCommit(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		if s.Dialect() == "sqlite" {
			return // it has one writer
		}
		save(t, s, sellOut("phone", 1, 5))
		var before, after int64
		if err := s.write(t.Context(), func(tx *sqlx.Tx) error {
			if err := tx.GetContext(t.Context(), &before, "SELECT total FROM items"); err != nil {
				return err
			}
			save(t, s, sellOut("phone", 1, 7))
			return tx.GetContext(t.Context(), &after, "SELECT total FROM items")
		}); err != nil {
			t.Fatal(err)
		}
		if before != 5 || after != 7 {
			t.Errorf("read %d, then %d", before, after)
		}
	})
}

func TestStoreADeadlockIsTransient(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		if s.Dialect() == "sqlite" {
			return // it has one writer, and no deadlocks
		}
		save(t, s, sellOut("phone", 1, 5, 5))
		items := []string{"black", "white"}
		var errs [2]error
		var both sync.WaitGroup // both have locked their first row
		both.Add(2)
		together(2, func(i int) {
			errs[i] = transact(t.Context(), s.writer, nil, func(tx *sqlx.Tx) error {
				query := tx.Rebind("UPDATE items SET version = version + 1 WHERE item_id = ?")
				_, err := tx.ExecContext(t.Context(), query, items[i])
				both.Done()
				if err != nil {
					return err
				}
				both.Wait()
				_, err = tx.ExecContext(t.Context(), query, items[1-i])
				return err
			})
		})
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("of two transactions in a deadlock, one should have failed: %v", errs)
		}
		err := errors.Join(errs[:]...)
		if !isContention(err) || !IsTransient(err) || IsPermanent(err) {
			t.Errorf("transient %t, permanent %t: %v", IsTransient(err), IsPermanent(err), err)
		}
	})
}

func TestStoreRunsATransactionAgainAfterADeadlock(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		if s.Dialect() == "sqlite" {
			return // it has one writer, and no deadlocks
		}
		save(t, s, sellOut("phone", 1, 5, 5))
		items := []string{"black", "white"}
		var both sync.WaitGroup
		both.Add(2)
		together(2, func(i int) {
			runs := 0
			if err := s.write(t.Context(), func(tx *sqlx.Tx) error {
				query := tx.Rebind("UPDATE items SET version = version + 1 WHERE item_id = ?")
				if _, err := tx.ExecContext(t.Context(), query, items[i]); err != nil {
					return err
				}
				if runs++; runs == 1 {
					both.Done()
					both.Wait()
				}
				_, err := tx.ExecContext(t.Context(), query, items[1-i])
				return err
			}); err != nil {
				t.Error(err)
			}
		})
		var versions []int64
		if err := s.db.SelectContext(t.Context(), &versions, "SELECT version FROM items"); err != nil {
			t.Fatal(err)
		}
		wantSame(t, "how often the items were changed", versions, []int64{2, 2})
	})
}

func TestStoreABusySQLiteFileIsTransient(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "orders.db")
	s := openTest(t, "sqlite://"+path)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	impatient, err := sqlite.NewConnector("file:" + path + "?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	other := sqlx.NewDb(sql.OpenDB(impatient), "sqlite3")
	defer other.Close()
	err = transact(t.Context(), s.writer, nil, func(*sqlx.Tx) error {
		return transact(t.Context(), other, nil, func(*sqlx.Tx) error { return nil })
	})
	if !isContention(err) || !IsTransient(err) || IsPermanent(err) {
		t.Errorf("transient %t, permanent %t: %v", IsTransient(err), IsPermanent(err), err)
	}
}

func TestStoreALostConnectionIsTransient(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		kill, possible := map[string][2]string{
			"mysql":    {"SELECT CONNECTION_ID()", "KILL ?"},
			"postgres": {"SELECT pg_backend_pid()", "SELECT pg_terminate_backend($1)"},
		}[s.Dialect()]
		if !possible {
			return
		}
		save(t, s, sellOut("phone", 1, 5))
		err := transact(t.Context(), s.writer, nil, func(tx *sqlx.Tx) error {
			var id int64
			if err := tx.GetContext(t.Context(), &id, kill[0]); err != nil {
				t.Fatal(err)
			}
			if _, err := s.db.ExecContext(t.Context(), kill[1], id); err != nil {
				t.Fatal(err)
			}
			_, err := tx.ExecContext(t.Context(), "UPDATE items SET sold = 1")
			return err
		})
		if !IsTransient(err) || IsPermanent(err) {
			t.Errorf("transient %t, permanent %t: %v", IsTransient(err), IsPermanent(err), err)
		}
		wantSold(t, s, "phone", 0)
	})
}

// Whoever drops what is permanent and retries what is transient must do neither here.
func TestStoreAFaultOfTheInstallationIsNeitherTransientNorPermanent(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		s := openTest(t, url) // without tables
		_, err := s.WriteOrders(t.Context(), grabs("phone", 0, 1))
		if err == nil || IsTransient(err) || IsPermanent(err) {
			t.Errorf("transient %t, permanent %t: %v", IsTransient(err), IsPermanent(err), err)
		}
	})
}

func TestStoreACancelledCallIsNeitherTransientNorPermanent(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 5))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.WriteOrders(ctx, grabs("phone", 0, 1))
		if !errors.Is(err, context.Canceled) || IsTransient(err) || IsPermanent(err) {
			t.Errorf("transient %t, permanent %t: %v", IsTransient(err), IsPermanent(err), err)
		}
	})
}
