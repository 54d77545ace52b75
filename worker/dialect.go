package worker

import (
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
)

// dialect is what the Store needs to know about its kind of database.
type dialect struct {
	name      string // also the folder of its migrations
	goose     goose.Dialect
	bySale    string // makes a query use the index orders_by_sale; "" where it does by itself
	maxParams int    // parameters of one statement, at most
	// skipLocked ends a SELECT that locks its rows and leaves out those that others have locked; "" where a transaction
	// that writes is alone anyway.
	skipLocked string
	migrating  migrationLock
}

// open makes a Store from a database URL, without reaching out to the database.
func open(rawURL string) (*Store, error) {
	scheme, rest, found := strings.Cut(rawURL, "://")
	if !found {
		return nil, errors.New("database URL: write it as mysql://user:password@host/name, postgres://… or sqlite://path")
	}
	switch scheme {
	case "mysql":
		return openMySQL(rawURL)
	case "postgres", "postgresql":
		return openPostgres(rawURL)
	case "sqlite":
		return openSQLite(rest)
	}
	return nil, fmt.Errorf("database URL: there is no %q; use mysql, postgres or sqlite", scheme)
}

func openMySQL(rawURL string) (*Store, error) {
	u, err := parseServerURL(rawURL)
	if err != nil {
		return nil, err
	}
	cfg := mysql.NewConfig()
	cfg.Net = "tcp"
	cfg.Addr = u.Host
	if u.Port() == "" {
		cfg.Addr += ":3306"
	}
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.DBName = strings.TrimPrefix(u.Path, "/")
	for key, values := range u.Query() {
		if key != "tls" {
			return nil, errors.New("database URL: MySQL knows the option tls only (true, skip-verify or preferred)")
		}
		cfg.TLSConfig = values[len(values)-1]
	}
	cfg.Timeout = 5 * time.Second
	cfg.Logger = &mysql.NopLogger{} // its errors are returned as well
	cfg.ClientFoundRows = true      // an UPDATE counts the rows it matched, as the other databases do
	cfg.RejectReadOnly = true       // a primary that became a replica is left behind, for whichever has its address now
	cfg.InterpolateParams = true    // one round trip a statement; safe because the connection is utf8mb4
	cfg.Params = map[string]string{
		"sql_mode":                 "'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
		"innodb_lock_wait_timeout": "5",
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	pool := func() *sqlx.DB { return sqlx.NewDb(sql.OpenDB(connector), "mysql") }
	db := pool()
	return &Store{db: db, writer: db, address: cfg.Addr, database: cfg.DBName, dialect: dialect{
		name:       "mysql",
		goose:      goose.DialectMySQL,
		bySale:     "FORCE INDEX (orders_by_sale)",
		skipLocked: " FOR UPDATE SKIP LOCKED",
		maxParams:  65535,
		migrating:  migrationLock{open: func() (*sqlx.DB, error) { return pool(), nil }, take: takeMySQL},
	}}, nil
}

func openPostgres(rawURL string) (*Store, error) {
	u, err := parseServerURL(rawURL)
	if err != nil {
		return nil, err
	}
	if u.Query().Has("password") {
		return nil, errors.New("database URL: write the password before the host, as user:password@host")
	}
	password, _ := u.User.Password()
	u.User = url.User(u.User.Username()) // the parser below quotes the URL in its errors
	cfg, err := pgx.ParseConfig(u.String())
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	if password != "" {
		cfg.Password = password
	}
	// A multi-row INSERT has as many texts as there are batch sizes, so nothing is gained by preparing it.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.RuntimeParams["lock_timeout"] = "5s"
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 5 * time.Second
	}
	pool := func() *sqlx.DB { return sqlx.NewDb(stdlib.OpenDB(*cfg), "pgx") }
	db := pool()
	address := net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))
	return &Store{db: db, writer: db, address: address, database: cfg.Database, dialect: dialect{
		name:       "postgres",
		goose:      goose.DialectPostgres,
		skipLocked: " FOR UPDATE SKIP LOCKED",
		maxParams:  65535,
		migrating:  migrationLock{open: func() (*sqlx.DB, error) { return pool(), nil }, take: takePostgres},
	}}, nil
}

// openSQLite opens a file. Writing goes through one connection, so that writers of this process queue up in the pool
// instead of polling the file's lock; readers are not held up by it (WAL). An order is money, so every commit is
// synced to disk.
func openSQLite(path string) (*Store, error) {
	if path == "" || strings.ContainsAny(path, "?#") {
		return nil, errors.New("database URL: write SQLite as sqlite://path/to/file, without options")
	}
	pool := func(path string, options url.Values) (*sqlx.DB, error) {
		options.Set("_busy_timeout", "5000") // comes before the pragmas, which may have to wait
		options.Add("_pragma", "synchronous(FULL)")
		connector, err := sqlite.NewConnector("file:" + (&url.URL{Path: path}).EscapedPath() + "?" + options.Encode())
		if err != nil {
			return nil, fmt.Errorf("database URL: %w", err)
		}
		return sqlx.NewDb(sql.OpenDB(connector), "sqlite3"), nil
	}
	writer, err := pool(path, url.Values{"_pragma": {"journal_mode(WAL)"}, "_txlock": {"immediate"}})
	if err != nil {
		return nil, err
	}
	db, err := pool(path, url.Values{"_pragma": {"query_only(1)"}})
	if err != nil {
		return nil, err
	}
	return &Store{db: db, writer: writer, dialect: dialect{
		name:      "sqlite",
		goose:     goose.DialectSQLite3,
		maxParams: 32766,
		migrating: migrationLock{
			open: func() (*sqlx.DB, error) { return pool(path+"-migrate", url.Values{}) },
			take: takeSQLite,
		},
	}}, nil
}

// parseServerURL parses the URL of a database server. Its errors quote nothing of the URL: where a password has not
// been escaped, any part of what was understood may be a part of it.
func parseServerURL(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Fragment != "" || u.Hostname() == "" || strings.ContainsAny(u.Path, "@:") {
		return nil, errors.New("database URL: write it as scheme://user:password@host:port/name; " +
			"special characters in the password are percent-encoded")
	}
	if name := strings.TrimPrefix(u.Path, "/"); name == "" || strings.Contains(name, "/") {
		return nil, errors.New("database URL: the name of the database is missing: scheme://user:password@host:port/name")
	}
	return u, nil
}
