package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"sluice/doctor"
)

func TestCommandsSayWhereTheyLookedForWhatIsAway(t *testing.T) {
	t.Parallel()
	closed := closedAddress(t)
	redisURL := setting(t, "SLUICE_TEST_REDIS")
	for name, test := range map[string]struct {
		args []string
		do   string
	}{
		"serve without redis":        {[]string{"serve", "--secret", "s", "--redis-url", "redis://:hidden-word@" + closed}, "start it, or correct --redis-url"},
		"serve without mysql":        {[]string{"serve", "--secret", "s", "--redis-url", redisURL, "--database-url", "mysql://u:hidden-word@" + closed + "/d"}, "start it, or correct --database-url"},
		"migrate without mysql":      {[]string{"migrate", "--database-url", "mysql://u:hidden-word@" + closed + "/d"}, "start it, or correct --database-url"},
		"migrate without postgres":   {[]string{"migrate", "--database-url", "postgres://u:hidden-word@" + closed + "/d"}, "start it, or correct --database-url"},
		"a sale without its server":  {[]string{"sale", "list", "--url", "http://u:hidden-word@" + closed}, "is `sluice serve` running there?"},
		"a draw without its server":  {[]string{"verify", "x", "--url", "http://u:hidden-word@" + closed}, "is `sluice serve` running there?"},
		"a crowd without its server": {[]string{"crowd", "--guests", "--sale", "x", "--url", "http://u:hidden-word@" + closed}, "is `sluice serve` running there?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, said := sluice(t, "", test.args...)
			want(t, "exit code", code, exitFailed)
			if !strings.Contains(said, closed) || !strings.Contains(said, "connection refused") || !strings.Contains(said, test.do) || strings.Contains(said, "hidden-word") {
				t.Errorf("said %q", said)
			}
		})
	}
	g := newGround(t, "mysql")
	flags := append([]string{"dead", "list"}, g.flags[:8]...)
	flags[2+3] = "amqp://guest:hidden-word@" + closed
	code, _, said := sluice(t, "", flags...)
	want(t, "exit code without RabbitMQ", code, exitFailed)
	if !strings.Contains(said, "RabbitMQ at "+closed) || !strings.Contains(said, "correct --amqp-url") || strings.Contains(said, "hidden-word") {
		t.Errorf("without RabbitMQ it said %q", said)
	}
}

func TestADatabaseThatDoesNotExistIsAnsweredWithTheStatementThatMakesIt(t *testing.T) {
	t.Parallel()
	for variable, statement := range map[string]string{
		"SLUICE_TEST_MYSQL":    "CREATE DATABASE `nobody-made-this` CHARACTER SET utf8mb4;",
		"SLUICE_TEST_POSTGRES": `CREATE DATABASE "nobody-made-this" ENCODING 'UTF8' TEMPLATE template0;`,
	} {
		server := setting(t, variable)
		at, err := url.Parse(server)
		if err != nil {
			t.Fatal(err)
		}
		code, _, said := sluice(t, "", "migrate", "--database-url", server+"/nobody-made-this")
		want(t, "exit code", code, exitFailed)
		if !strings.Contains(said, statement) || !strings.Contains(said, at.Host) || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: said %q, want %q in it", variable, said, statement)
		}
		_, list := examine(t, "--redis-url", setting(t, "SLUICE_TEST_REDIS"), "--database-url", server+"/nobody-made-this", "--secret", strings.Repeat("s", 32))
		if !names(list, "database", "reachable", "it has no database", "danger") || !strings.Contains(doOf(list, "database"), statement) {
			t.Errorf("%s: the doctor says\n%s", variable, write(list))
		}
	}
}

// doOf is what the doctor wants done about a part that it cannot reach.
func doOf(list []doctor.Finding, part string) string {
	for _, f := range list {
		if f.Part == part && f.About == "reachable" {
			return f.Do
		}
	}
	return ""
}

func TestADatabaseThatTakesNoWritesIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	address, db := createDatabase(t, "postgres")
	name := address[strings.LastIndexByte(address, '/')+1:]
	if _, err := db.ExecContext(t.Context(), "ALTER DATABASE "+name+" SET default_transaction_read_only = on"); err != nil {
		t.Fatal(err)
	}
	for _, line := range [][]string{
		{"migrate", "--database-url", address},
		{"serve", "--secret", "s", "--redis-url", setting(t, "SLUICE_TEST_REDIS"), "--database-url", address},
	} {
		code, _, said := sluice(t, "", line...)
		want(t, "exit code of "+line[0], code, exitFailed)
		if strings.Count(said, "\n") != 1 || !strings.Contains(said, "takes no writes") || !strings.Contains(said, "give --database-url the server that takes them") {
			t.Errorf("%s said %q", line[0], said)
		}
	}
}

func TestAnOrderWaitsWhileItsDatabaseTakesNoWrites(t *testing.T) {
	t.Parallel()
	g := newGround(t, "postgres")
	s := open(t, append([]string{"--no-worker"}, g.flags...)...)
	w := begin(t, append([]string{"worker", "--ops-listen", "127.0.0.1:0"}, g.flags...)...)
	sale := freshID()
	s.apply(saleFile(t, sale, 5, fmt.Sprintf(heldSale, "1h")))
	s.buy(sale, "ann")

	// It becomes a replica: what is connected is cut off, and whoever comes finds that nothing can be written.
	admin, err := g.rows.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	var before time.Time
	demote := func(on bool) {
		t.Helper()
		if err := admin.QueryRowContext(t.Context(), "SELECT clock_timestamp()").Scan(&before); err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			"SET default_transaction_read_only = off", // of this session
			fmt.Sprintf("DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET default_transaction_read_only = %t', current_database()); END $$", on),
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
		} {
			if _, err := admin.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	demote(true)
	result, order := s.grab(sale, "bob")
	want(t, "what bob's grab comes to", result, "success")
	w.says(`(cannot write orders)`)
	eventually(t, "writing is tried on a new connection, and given up", func() bool {
		tried := false
		err := admin.QueryRowContext(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()"+
			" AND pid <> pg_backend_pid() AND backend_start > $1 AND query ILIKE 'rollback%')", before).Scan(&tried)
		if err != nil {
			t.Fatal(err)
		}
		return tried
	})
	eventually(t, "bob's order is as it was", func() bool { return s.status("bob", order) == "reserved" })
	demote(false)
	eventually(t, "bob's order is confirmed", func() bool { return s.status("bob", order) == "confirmed" })
	g.wantBuyers(sale, 2)
}
