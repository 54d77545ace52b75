package worker

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"sluice/queue"
)

// Reach is how far the line of a sale had got when that was kept last, zero when it never was; and its lottery, once the
// entries are frozen; where that was cut off before it was drawn, it is drawn now.
func (s *Store) Reach(ctx context.Context, sale string) (queue.Reach, error) {
	var row struct {
		Epoch, Issued, Served int64
		Paused                bool
		Calling               int64
	}
	err := s.db.GetContext(ctx, &row, s.db.Rebind("SELECT epoch, issued, served, paused, calling FROM reach WHERE sale_id = ?"), sale)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return queue.Reach{}, fmt.Errorf("read how far the line of sale %s was: %w", sale, err)
	}
	reach := queue.Reach{Epoch: row.Epoch, Issued: row.Issued, Served: row.Served, Paused: row.Paused, Calling: row.Calling}
	draw, there, err := s.DrawOf(ctx, sale)
	if err != nil || !there || !draw.Frozen() {
		return reach, err
	}
	if !draw.Drawn() {
		// Whoever drew it was cut off. Its order follows from what is kept, and is needed before anybody can take a place back.
		draw.Seed = queue.DrawSeed(draw.Secret, draw.Root, draw.Value)
		if draw, err = s.SealDraw(ctx, draw); err != nil {
			return reach, err
		}
	}
	reach.Draw = &draw
	return reach, nil
}

// KeepReach keeps how far the line of a sale is. What is kept never goes back within an epoch, nor to an earlier one, so a
// process that stood still for a while does no harm.
func (s *Store) KeepReach(ctx context.Context, sale string, r queue.Reach) error {
	paused := 0
	if r.Paused {
		paused = 1
	}
	err := s.write(ctx, func(tx *sqlx.Tx) error {
		update := func() (int64, error) {
			return affected(tx.ExecContext(ctx, tx.Rebind("UPDATE reach SET epoch = ?, issued = ?, served = ?, paused = ?, calling = ? "+
				"WHERE sale_id = ? AND (epoch < ? OR (epoch = ? AND issued <= ? AND served <= ?))"),
				r.Epoch, r.Issued, r.Served, paused, r.Calling, sale, r.Epoch, r.Epoch, r.Issued, r.Served))
		}
		if kept, err := update(); err != nil || kept > 0 {
			return err
		}
		var there int
		if err := tx.GetContext(ctx, &there, tx.Rebind("SELECT COUNT(*) FROM reach WHERE sale_id = ?"), sale); err != nil {
			return err
		}
		if there > 0 {
			// What is kept is farther, unless it was kept only after the update looked.
			_, err := update()
			return err
		}
		_, err := tx.ExecContext(ctx, tx.Rebind("INSERT INTO reach (sale_id, epoch, issued, served, paused, calling) VALUES (?, ?, ?, ?, ?, ?)"),
			sale, r.Epoch, r.Issued, r.Served, paused, r.Calling)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep how far the line of sale %s is: %w", sale, err)
	}
	return nil
}
