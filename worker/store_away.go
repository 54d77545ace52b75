package worker

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"sluice/queue"
)

// away makes a [queue.Away] of what came of reaching out to the database: where it was, and what to do.
func (s *Store) away(err error) error {
	if s.dialect.name == "sqlite" {
		return fmt.Errorf("reach the sqlite database: %w", err)
	}
	a := &queue.Away{
		What: "the " + s.dialect.name + " database", Where: s.address, Why: queue.NetworkCause(err),
		Do: "start it, or correct --database-url", Err: err,
	}
	var my *mysql.MySQLError
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &my):
		a.Why, a.Do = my.Message, "put that right, or correct --database-url"
	case errors.As(err, &pg):
		a.Why, a.Do = pg.Message, "put that right, or correct --database-url"
	case a.Why == "":
		a.Why = strings.Join(strings.Fields(err.Error()), " ") // that of PostgreSQL has lines
	}
	if (my != nil && my.Number == 1049) || (pg != nil && pg.Code == "3D000") {
		a.Why = fmt.Sprintf("it has no database %q", s.database)
		a.Do = "make it there with " + s.creation() + " or correct the name in --database-url"
	}
	return a
}

// creation is the statement that makes the database of the URL.
func (s *Store) creation() string {
	if s.dialect.name == "mysql" {
		return "CREATE DATABASE `" + strings.ReplaceAll(s.database, "`", "``") + "` CHARACTER SET utf8mb4;"
	}
	return `CREATE DATABASE "` + strings.ReplaceAll(s.database, `"`, `""`) + `" ENCODING 'UTF8' TEMPLATE template0;`
}
