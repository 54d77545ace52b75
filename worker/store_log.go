package worker

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jmoiron/sqlx"

	"sluice/queue"
)

// Change is a change of a sale by an operator, as the audit log keeps it.
type Change struct {
	At     int64 // ms since the epoch
	Who    string
	Action string
	Sale   string
	Before *queue.Sale // nil = there was none
	After  *queue.Sale
}

// LogChange appends to the audit log. Nothing ever changes or removes an entry.
func (s *Store) LogChange(ctx context.Context, change Change) error {
	before, err := json.Marshal(change.Before)
	if err != nil {
		return fmt.Errorf("write the sale before a change: %w", err)
	}
	after, err := json.Marshal(change.After)
	if err != nil {
		return fmt.Errorf("write the sale after a change: %w", err)
	}
	return s.write(ctx, func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, tx.Rebind(
			"INSERT INTO audit_log (at, who, action, sale_id, before_json, after_json) VALUES (?, ?, ?, ?, ?, ?)"),
			change.At, change.Who, change.Action, change.Sale, string(before), string(after))
		if err != nil {
			return fmt.Errorf("log a change of sale %s: %w", change.Sale, err)
		}
		return nil
	})
}
