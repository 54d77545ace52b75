package worker

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"sluice/queue"
)

// Unsettled is what of a sale is not over yet, as the database has it.
type Unsettled struct {
	Unpaid int64 // orders that wait for their payment
	Until  int64 // when the last of them is over, ms since the epoch
	Moves  int64 // movements of stock that Redis may not have heard of
}

// Unsettled counts what of a sale is not over yet.
func (s *Store) Unsettled(ctx context.Context, sale string) (Unsettled, error) {
	u, err := unsettled(ctx, s.db, sale)
	if err != nil {
		return u, fmt.Errorf("look what of sale %s is not over: %w", sale, err)
	}
	return u, nil
}

func unsettled(ctx context.Context, db sqlx.ExtContext, sale string) (u Unsettled, err error) {
	rebind := func(query string) string { return sqlx.Rebind(sqlx.BindType(db.DriverName()), query) }
	if err = db.QueryRowxContext(ctx, rebind("SELECT COUNT(*), COALESCE(MAX(expires_at), 0) FROM orders "+
		"WHERE sale_id = ? AND status = 'confirmed' AND expires_at > 0"), sale).Scan(&u.Unpaid, &u.Until); err != nil {
		return u, err
	}
	err = db.QueryRowxContext(ctx, rebind("SELECT COUNT(*) FROM stock_moves WHERE sale_id = ? AND done = 0"), sale).Scan(&u.Moves)
	return u, err
}

// BeginArchive keeps that a sale is archived: from then on nothing brings it back to Redis, nobody can change it, and
// orders of it that turn up are rejected. Doing it again before Redis is rid of it keeps the newer judgement. Errors:
// Conflict when something of the sale is not over after all, NoSuchSale.
func (s *Store) BeginArchive(ctx context.Context, archive queue.Archive) error {
	err := s.write(ctx, func(tx *sqlx.Tx) error {
		// Whoever saves the sale locks its row too, and then looks whether it is archived.
		locked, err := affected(tx.ExecContext(ctx, tx.Rebind("UPDATE sales SET updated_at = ? WHERE id = ?"), now(), archive.Sale))
		if err != nil {
			return err
		}
		if locked == 0 {
			return noSuchSale(archive.Sale)
		}
		if u, err := unsettled(ctx, tx, archive.Sale); err != nil {
			return err
		} else if u.Unpaid+u.Moves > 0 {
			return &queue.Error{Code: queue.Conflict, Message: fmt.Sprintf(
				"orders of the sale %q changed while it was being archived; archive it again", archive.Sale)}
		}
		renewed, err := affected(tx.ExecContext(ctx, tx.Rebind(
			"UPDATE archives SET version = ?, report = ? WHERE sale_id = ? AND done_at = 0"),
			archive.Version, string(archive.Audit), archive.Sale))
		if err != nil || renewed > 0 {
			return err
		}
		if there, err := isArchived(ctx, tx, archive.Sale); err != nil || there {
			return err // another process was faster, and is done
		}
		_, err = tx.ExecContext(ctx, tx.Rebind("INSERT INTO archives (sale_id, begun_at, version, report) VALUES (?, ?, ?, ?)"),
			archive.Sale, archive.At, archive.Version, string(archive.Audit))
		return err
	})
	if err != nil {
		return fmt.Errorf("archive sale %s: %w", archive.Sale, err)
	}
	return nil
}

// UndoArchive takes back that a sale is archived, of which Redis still has all. A newer judgement of it stays.
func (s *Store) UndoArchive(ctx context.Context, archive queue.Archive) error {
	return s.changeArchive(ctx, "go on with", "DELETE FROM archives WHERE sale_id = ? AND done_at = 0 AND version = ?", archive.Sale, archive.Version)
}

// EndArchive keeps that Redis is rid of a sale. at is Redis time.
func (s *Store) EndArchive(ctx context.Context, sale string, at int64) error {
	return s.changeArchive(ctx, "end archiving", "UPDATE archives SET done_at = ? WHERE sale_id = ? AND done_at = 0", at, sale)
}

func (s *Store) changeArchive(ctx context.Context, what, query string, args ...any) error {
	err := s.write(ctx, func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, tx.Rebind(query), args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s a sale: %w", what, err)
	}
	return nil
}

// Archived says whether a sale is archived, or about to be.
func (s *Store) Archived(ctx context.Context, sale string) (bool, error) {
	archived, err := isArchived(ctx, s.db, sale)
	if err != nil {
		return false, fmt.Errorf("look whether sale %s is archived: %w", sale, err)
	}
	return archived, nil
}

func isArchived(ctx context.Context, db sqlx.ExtContext, sale string) (bool, error) {
	var n int
	err := sqlx.GetContext(ctx, db, &n, sqlx.Rebind(sqlx.BindType(db.DriverName()), "SELECT COUNT(*) FROM archives WHERE sale_id = ?"), sale)
	return n > 0, err
}

const archiveColumns = "SELECT sale_id, begun_at, done_at, version, report, purge_asked, purged_at FROM archives"

// archiveRow is an archive as the table has it.
type archiveRow struct {
	Sale    string `db:"sale_id"`
	At      int64  `db:"begun_at"`
	Done    int64  `db:"done_at"`
	Version int64  `db:"version"`
	Report  string `db:"report"`
	Purge   bool   `db:"purge_asked"`
	Purged  int64  `db:"purged_at"`
}

func (r archiveRow) archive() queue.Archive {
	return queue.Archive{Sale: r.Sale, At: r.At, Done: r.Done, Version: r.Version, Audit: []byte(r.Report), Purge: r.Purge, Purged: r.Purged}
}

// Archive is what is kept of an archived sale; nil of one that is not.
func (s *Store) Archive(ctx context.Context, sale string) (*queue.Archive, error) {
	var row archiveRow
	err := s.db.GetContext(ctx, &row, s.db.Rebind(archiveColumns+" WHERE sale_id = ?"), sale)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the archive of sale %s: %w", sale, err)
	}
	archive := row.archive()
	return &archive, nil
}

// Archives returns what is kept of all archived sales, by id.
func (s *Store) Archives(ctx context.Context) ([]queue.Archive, error) {
	var rows []archiveRow
	if err := s.db.SelectContext(ctx, &rows, archiveColumns+" ORDER BY sale_id"); err != nil {
		return nil, fmt.Errorf("read the archives: %w", err)
	}
	archives := make([]queue.Archive, len(rows))
	for i, row := range rows {
		archives[i] = row.archive()
	}
	return archives, nil
}
