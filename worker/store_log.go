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

// LoggedChange is an entry of the audit log as it is stored.
type LoggedChange struct {
	ID     int64 // grows with every entry
	At     int64 // ms since the epoch
	Who    string
	Action string
	Sale   string
	Before json.RawMessage // the settings of the sale; null = there were none
	After  json.RawMessage
}

// Changes returns entries of the audit log, the newest first, limit at most: of one sale, or of all when sale is "", and
// only those below the id before, or from the newest on when that is 0.
func (s *Store) Changes(ctx context.Context, sale string, before int64, limit int) ([]LoggedChange, error) {
	query, args := "SELECT id, at, who, action, sale_id, before_json, after_json FROM audit_log WHERE id > 0", []any{}
	if sale != "" {
		query, args = query+" AND sale_id = ?", append(args, sale)
	}
	if before > 0 {
		query, args = query+" AND id < ?", append(args, before)
	}
	var rows []struct {
		ID     int64  `db:"id"`
		At     int64  `db:"at"`
		Who    string `db:"who"`
		Action string `db:"action"`
		Sale   string `db:"sale_id"`
		Before string `db:"before_json"`
		After  string `db:"after_json"`
	}
	if err := s.db.SelectContext(ctx, &rows, s.db.Rebind(query+" ORDER BY id DESC LIMIT ?"), append(args, limit)...); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	changes := make([]LoggedChange, len(rows))
	for i, row := range rows {
		changes[i] = LoggedChange{
			ID: row.ID, At: row.At, Who: row.Who, Action: row.Action, Sale: row.Sale,
			Before: json.RawMessage(row.Before), After: json.RawMessage(row.After),
		}
	}
	return changes, nil
}

// LogChange appends to the audit log. Nothing ever changes or removes an entry; see guardLog.
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
