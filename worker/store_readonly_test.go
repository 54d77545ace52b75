package worker

import (
	"errors"
	"os"
	"strings"
	"testing"

	"sluice/queue"
)

func TestStoreOfPostgresLeavesAReplicaBehind(t *testing.T) {
	t.Parallel()
	url := serverDatabase(t, "SLUICE_TEST_POSTGRES", "postgres")
	name := url[strings.LastIndexByte(url, '/')+1:]
	other, err := OpenStore(t.Context(), os.Getenv("SLUICE_TEST_POSTGRES")+"/postgres", StoreOptions{Conns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	exec := func(statement string) {
		t.Helper()
		if _, err := other.db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	s := openTest(t, url)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Writable(t.Context()); err != nil {
		t.Fatalf("a database that takes writes: %v", err)
	}
	save(t, s, sellOut("phone", 1, 5))

	// From here on every new session is like one of a replica.
	exec("ALTER DATABASE " + name + " SET default_transaction_read_only = on")
	exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + name + "'")
	eventually(t, "a session that takes no writes says so", func() bool {
		_, err := s.WriteOrders(t.Context(), grabs("phone", 0, 1))
		if err == nil || !IsTransient(err) || IsPermanent(err) {
			t.Fatalf("writing gives %v, want what is tried again", err)
		}
		return strings.Contains(err.Error(), "25006")
	})
	replica := openTest(t, url)
	var away *queue.Away
	if err := replica.Writable(t.Context()); !errors.As(err, &away) || !strings.Contains(err.Error(), "takes no writes") || away.Where == "" {
		t.Errorf("a database that takes no writes: %v", err)
	}

	exec("ALTER DATABASE " + name + " RESET default_transaction_read_only")
	if _, err := s.WriteOrders(t.Context(), grabs("phone", 0, 1)); err != nil {
		t.Errorf("it holds on to sessions of a replica: %v", err)
	}
}

func TestStoreOfMySQLLeavesAReplicaBehind(t *testing.T) {
	t.Parallel()
	s, err := OpenStore(t.Context(), serverDatabase(t, "SLUICE_TEST_MYSQL", "mysql"), StoreOptions{Conns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Writable(t.Context()); err != nil {
		t.Fatalf("a database that takes writes: %v", err)
	}
	save(t, s, sellOut("phone", 1, 5))
	if _, err := s.db.ExecContext(t.Context(), "SET SESSION TRANSACTION READ ONLY"); err != nil {
		t.Fatal(err)
	}
	if err := s.Writable(t.Context()); err == nil || !strings.Contains(err.Error(), "takes no writes") {
		t.Errorf("a session that takes no writes: %v", err)
	}
	if _, err := s.WriteOrders(t.Context(), grabs("phone", 0, 1)); !IsTransient(err) || IsPermanent(err) {
		t.Errorf("writing gives %v, want what is tried again", err)
	}
	if _, err := s.WriteOrders(t.Context(), grabs("phone", 0, 1)); err != nil {
		t.Errorf("it holds on to a session of a replica: %v", err)
	}
}
