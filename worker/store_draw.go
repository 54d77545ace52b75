package worker

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"sluice/queue"
)

// MakeDraw keeps the secret of a lottery, unless the sale has one already, and returns the draw as it is kept.
func (s *Store) MakeDraw(ctx context.Context, sale string, secret [32]byte, beacon string) (queue.Draw, error) {
	err := s.write(ctx, func(tx *sqlx.Tx) error {
		var there int
		err := tx.GetContext(ctx, &there, tx.Rebind("SELECT COUNT(*) FROM draws WHERE sale_id = ?"), sale)
		if err != nil || there > 0 {
			return err
		}
		_, err = tx.ExecContext(ctx, tx.Rebind("INSERT INTO draws (sale_id, secret, beacon, tickets, live, dropouts, root, value, seed, updated_at) "+
			"VALUES (?, ?, ?, 0, 0, ?, '', '', '', ?)"), sale, hex.EncodeToString(secret[:]), beacon, []byte{}, now())
		return err
	})
	if err != nil {
		return queue.Draw{}, fmt.Errorf("keep the secret of sale %s: %w", sale, err)
	}
	draw, there, err := s.DrawOf(ctx, sale)
	if err == nil && !there {
		err = fmt.Errorf("the draw of sale %s is not there", sale)
	}
	return draw, err
}

// DrawOf returns the lottery of a sale as far as it got, and whether it has one.
func (s *Store) DrawOf(ctx context.Context, sale string) (queue.Draw, bool, error) {
	var row struct {
		Secret, Beacon, Root, Value, Seed string
		Tickets, Live                     int64
		Dropouts, Ranks                   []byte
	}
	err := s.db.GetContext(ctx, &row, s.db.Rebind("SELECT secret, beacon, tickets, live, dropouts, ranks, root, value, seed "+
		"FROM draws LEFT JOIN draw_ranks ON draw_ranks.sale_id = draws.sale_id WHERE draws.sale_id = ?"), sale)
	if errors.Is(err, sql.ErrNoRows) {
		return queue.Draw{}, false, nil
	}
	draw := queue.Draw{Sale: sale, Beacon: row.Beacon, Tickets: row.Tickets, Live: row.Live, Dropouts: row.Dropouts, Ranks: row.Ranks, Value: row.Value}
	for _, field := range []struct {
		into *[32]byte
		text string
	}{{&draw.Secret, row.Secret}, {&draw.Root, row.Root}, {&draw.Seed, row.Seed}} {
		if err == nil && field.text != "" {
			var data []byte
			if data, err = hex.DecodeString(field.text); err == nil && copy(field.into[:], data) != len(field.into) {
				err = errors.New("a hash has another length")
			}
		}
	}
	if err != nil {
		return queue.Draw{}, false, fmt.Errorf("read the draw of sale %s: %w", sale, err)
	}
	return draw, true, nil
}

// FreezeDraw keeps who takes part in a lottery and the root over them, unless that is kept already, and returns the draw as it
// is kept: of several processes that draw at once all go on with the same.
func (s *Store) FreezeDraw(ctx context.Context, draw queue.Draw) (queue.Draw, error) {
	dropouts := draw.Dropouts
	if dropouts == nil {
		dropouts = []byte{}
	}
	return s.advance(ctx, draw, func(tx *sqlx.Tx) error {
		first, err := affected(tx.ExecContext(ctx, tx.Rebind("UPDATE draws SET tickets = ?, live = ?, dropouts = ?, root = ?, updated_at = ? "+
			"WHERE sale_id = ? AND root = ''"), draw.Tickets, draw.Live, dropouts, hex.EncodeToString(draw.Root[:]), now(), draw.Sale))
		if err != nil || first == 0 || len(draw.Ranks) == 0 {
			return err
		}
		_, err = tx.ExecContext(ctx, tx.Rebind("INSERT INTO draw_ranks (sale_id, ranks) VALUES (?, ?)"), draw.Sale, draw.Ranks)
		return err
	})
}

// SealDraw keeps the value of the beacon and the seed of a lottery, unless they are kept already, and returns the draw as it is
// kept.
func (s *Store) SealDraw(ctx context.Context, draw queue.Draw) (queue.Draw, error) {
	return s.advance(ctx, draw, func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, tx.Rebind("UPDATE draws SET value = ?, seed = ?, updated_at = ? WHERE sale_id = ? AND seed = ''"),
			draw.Value, hex.EncodeToString(draw.Seed[:]), now(), draw.Sale)
		return err
	})
}

func (s *Store) advance(ctx context.Context, draw queue.Draw, step func(*sqlx.Tx) error) (queue.Draw, error) {
	err := s.write(ctx, step)
	if err != nil {
		return draw, fmt.Errorf("keep the draw of sale %s: %w", draw.Sale, err)
	}
	kept, there, err := s.DrawOf(ctx, draw.Sale)
	if err == nil && !there {
		err = fmt.Errorf("the draw of sale %s is not there", draw.Sale)
	}
	return kept, err
}
