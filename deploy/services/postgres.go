package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"strconv"
	"syscall"

	_ "github.com/jackc/pgx/v5/stdlib" // the database/sql driver named pgx
)

func postgresURL(address string) string { return "postgres://postgres@" + address }

// startPostgres makes a data folder and starts a PostgreSQL on it. Nothing is forced to the disk, for the reason given
// at startMariaDB.
func startPostgres(ctx context.Context, s *site) (string, error) {
	port, err := s.port()
	if err != nil {
		return "", err
	}
	data := filepath.Join(s.dir, "data")
	if err := s.run(ctx, "initdb", "--pgdata="+data, "--auth=trust", "--username=postgres", "--encoding=UTF8",
		"--no-locale", "--no-sync"); err != nil {
		return "", err
	}
	cmd, err := s.command("postgres", "-D", data, "-p", strconv.Itoa(port.number),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=500",
		"-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")
	if err != nil {
		return "", err
	}
	// SIGQUIT ends it at once too, but lets it give back the shared memory that a killed one leaves in the system.
	p, err := s.start(cmd, syscall.SIGQUIT)
	if err != nil {
		return "", err
	}
	at := postgresURL(port.address())
	return at, s.await(ctx, p, func(ctx context.Context) error { return postgresAnswers(ctx, at) })
}

func postgresAnswers(ctx context.Context, at string) error {
	db, err := sql.Open("pgx", at+"/postgres?sslmode=disable")
	if err != nil {
		return err
	}
	return answersQuery(ctx, db)
}
