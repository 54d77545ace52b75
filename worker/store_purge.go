package worker

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/jmoiron/sqlx"

	"sluice/queue"
)

// AskPurge keeps that the users of an archived sale are to be purged. Asking again changes nothing.
func (s *Store) AskPurge(ctx context.Context, sale string) error {
	return s.changeArchive(ctx, "ask for the purge of", "UPDATE archives SET purge_asked = 1 WHERE sale_id = ?", sale)
}

// PurgeUsers replaces the users of the next orders of an archived sale, at most page of them, by pseudonyms, and says
// whether more are left. What an order is of, and what happened to it, stays: so the books add up as before. With the last
// one go the access rules of the sale, which may name users.
//
// A pseudonym is made of the user with a random key that the sale has until its last order is done, so that a user has
// one and the same in all of it; then the key is gone, and nobody can tell who it was, or whether it is the one of another sale.
// A page and how far it comes are one transaction: whoever is cut off in between is followed by the next one. The order of
// ids is the way; what is written behind it, an order of a closed sale that nobody knew, keeps its user.
func (s *Store) PurgeUsers(ctx context.Context, sale string, page int) (more bool, err error) {
	err = s.write(ctx, func(tx *sqlx.Tx) error {
		more, err = s.purgePage(ctx, tx, sale, page)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("purge the users of sale %s: %w", sale, err)
	}
	return more, nil
}

func (s *Store) purgePage(ctx context.Context, tx *sqlx.Tx, sale string, page int) (more bool, err error) {
	// The row is locked by this: of several processes one is at work.
	begun, err := affected(tx.ExecContext(ctx, tx.Rebind(
		"UPDATE archives SET purge_asked = 1 WHERE sale_id = ? AND done_at > 0 AND purged_at = 0"), sale))
	if err != nil || begun == 0 {
		return false, err
	}
	var at struct {
		Key   string `db:"purge_key"`
		After string `db:"purge_after"`
	}
	if err := tx.GetContext(ctx, &at, tx.Rebind("SELECT purge_key, purge_after FROM archives WHERE sale_id = ?"), sale); err != nil {
		return false, err
	}
	if at.Key == "" {
		key := make([]byte, sha256.Size)
		_, _ = rand.Read(key) // never fails
		at.Key = hex.EncodeToString(key)
	}
	var rows []struct {
		ID   string `db:"id"`
		User string `db:"user_id"`
	}
	if err := tx.SelectContext(ctx, &rows, tx.Rebind("SELECT o.id, o.user_id FROM orders o "+s.dialect.bySale+
		" WHERE o.sale_id = ? AND o.id > ? ORDER BY o.id LIMIT ?"), sale, at.After, page); err != nil {
		return false, err
	}
	for _, row := range rows {
		if _, err := tx.ExecContext(ctx, tx.Rebind("UPDATE orders SET user_id = ?, updated_at = ? WHERE id = ?"),
			pseudonym(at.Key, row.User), now(), row.ID); err != nil {
			return false, err
		}
	}
	if len(rows) == page {
		_, err = tx.ExecContext(ctx, tx.Rebind("UPDATE archives SET purge_key = ?, purge_after = ? WHERE sale_id = ?"),
			at.Key, rows[len(rows)-1].ID, sale)
		return true, err
	}
	if err := purgeAccess(ctx, tx, sale); err != nil {
		return false, err
	}
	_, err = tx.ExecContext(ctx, tx.Rebind("UPDATE archives SET purge_key = '', purge_after = '', purged_at = ? WHERE sale_id = ?"), now(), sale)
	return false, err
}

// purgeAccess takes the access rules out of the settings of a sale.
func purgeAccess(ctx context.Context, tx *sqlx.Tx, id string) error {
	var settings string
	if err := tx.GetContext(ctx, &settings, tx.Rebind("SELECT settings FROM sales WHERE id = ?"), id); err != nil {
		return err
	}
	var sale queue.Sale
	if err := json.Unmarshal([]byte(settings), &sale); err != nil {
		return err
	}
	sale.Access = queue.Access{}
	text, err := json.Marshal(sale)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, tx.Rebind("UPDATE sales SET settings = ?, updated_at = ? WHERE id = ?"), string(text), now(), id)
	return err
}

// pseudonym is what stands for a user from now on.
func pseudonym(key, user string) string {
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = mac.Write([]byte(user)) // never fails
	return "purged-" + hex.EncodeToString(mac.Sum(nil)[:16])
}
