package main

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/go-sql-driver/mysql"
)

func mariaURL(address string) string { return "mysql://root@" + address }

// startMariaDB makes a data folder and starts a MariaDB on it. Commits are given to the system and not forced to the disk:
// the data goes away with the run, and a test that kills processes does not kill the machine.
func startMariaDB(ctx context.Context, s *site) (string, error) {
	port, err := s.port()
	if err != nil {
		return "", err
	}
	data := filepath.Join(s.dir, "data")
	if err := s.run(ctx, "mariadb-install-db", "--no-defaults", "--datadir="+data,
		"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve",
		"--innodb-flush-log-at-trx-commit=0"); err != nil {
		return "", err
	}
	cmd, err := s.command("mariadbd", "--no-defaults", "--datadir="+data, "--tmpdir="+s.dir,
		"--bind-address=127.0.0.1", "--port="+strconv.Itoa(port.number), "--socket="+filepath.Join(s.dir, "socket"),
		"--pid-file="+filepath.Join(s.dir, "pid"), "--skip-name-resolve", "--max-connections=1000",
		"--innodb-flush-log-at-trx-commit=2")
	if err != nil {
		return "", err
	}
	p, err := s.start(cmd, syscall.SIGKILL)
	if err != nil {
		return "", err
	}
	at := mariaURL(port.address())
	return at, s.await(ctx, p, func(ctx context.Context) error { return mariaAnswers(ctx, at) })
}

func mariaAnswers(ctx context.Context, at string) error {
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr = u.User.Username(), "tcp", u.Host
	// The driver would write every refused attempt to standard error.
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	return answersQuery(ctx, sql.OpenDB(connector))
}

// answersQuery asks a database for a row and closes it.
func answersQuery(ctx context.Context, db *sql.DB) error {
	defer db.Close()
	var one int
	return db.QueryRowContext(ctx, "SELECT 1").Scan(&one)
}
