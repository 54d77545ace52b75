package worker

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"sluice/queue"
)

// errOvertaken says that another transaction changed what this one had read before it could write: read again.
var errOvertaken = errors.New("overtaken by another transaction")

// IsTransient says whether the same call may succeed later although nothing about its arguments changes: the database
// is away, busy, full or restarting, or two transactions met. It goes by the codes of the drivers.
//
// An error that is neither transient nor permanent, like a missing table, is a fault of the installation: nothing may be
// thrown away because of it.
func IsTransient(err error) bool {
	return isContention(err) || isOutage(err)
}

// IsPermanent says whether a row itself is at fault, so that it will never be accepted: a value that does not fit its
// column, or a sale or an item that does not exist. Of a batch this says that at least one row is such a row.
func IsPermanent(err error) bool {
	switch queue.CodeOf(err) {
	case queue.NoSuchSale, queue.NoSuchItem:
		return true
	}
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		switch my.Number {
		case 1048, // column cannot be null
			1264, // out of range
			1265, // truncated
			1292, // wrong value
			1300, // not valid in the character set
			1364, // no value and no default
			1366, // wrong value for the column
			1406, // too long
			1690, // arithmetic out of range
			3819, // check, MySQL
			4025: // check, MariaDB
			return true
		}
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		class := pg.Code[:2]
		return class == "22" || class == "23" && pg.Code != "23505" // data; integrity, but for a unique key
	}
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		switch lite.Code() {
		case sqlite3.SQLITE_CONSTRAINT_CHECK, sqlite3.SQLITE_CONSTRAINT_NOTNULL, sqlite3.SQLITE_CONSTRAINT_DATATYPE,
			sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH:
			return true
		}
	}
	return false
}

// isContention says whether a transaction was given up because it met another one; run from its beginning, it sees
// what the other one did.
func isContention(err error) bool {
	if errors.Is(err, errOvertaken) || isUniqueViolation(err) {
		return true
	}
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		switch my.Number {
		case 1020, // record has changed since it was read (MariaDB)
			1205, // lock wait timeout
			1213: // deadlock
			return true
		}
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code[:2] == "40" || pg.Code == "55P03" // rolled back: deadlock, serialization; lock not available
	}
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		code := lite.Code() & 0xff // the extended code says why
		return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
	}
	return false
}

// isUniqueViolation says whether a row collided with another one's key.
func isUniqueViolation(err error) bool {
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		return my.Number == 1062
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "23505"
	}
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		return lite.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || lite.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	return false
}

// isOutage says whether the database could not be reached, or could not do its work just now.
func isOutage(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	for _, lost := range []error{
		driver.ErrBadConn, mysql.ErrInvalidConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.DeadlineExceeded,
	} {
		if errors.Is(err, lost) {
			return true
		}
	}
	var network net.Error
	var connect *pgconn.ConnectError
	if errors.As(err, &network) || errors.As(err, &connect) || pgconn.SafeToRetry(err) {
		return true
	}
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		switch my.Number {
		case 1021, 1037, 1038, 1041, 1114, // disk, memory or table full
			1040, 1129, 1203, // too many connections, or host blocked after too many errors
			1053, 1077, 1079, 1180, // shutting down, or commit failed
			1158, 1159, 1160, 1161, // network
			1290, 1792, 1836, // read-only, as a server is for a while at a failover
			1317, 1969, 3024, // interrupted, or took too long
			1927: // connection killed
			return true
		}
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code[:2] {
		case "08", "53", "57", "58": // connection, resources, operator's intervention, system
			return true
		}
		return pg.Code == "25006" // read-only, as a server is for a while at a failover
	}
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		switch lite.Code() & 0xff {
		case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM,
			sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT:
			return true
		}
	}
	return false
}
