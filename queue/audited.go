package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// auditLasts is how long the summary of an audit is kept. A sale that is closed and settled is audited every five minutes.
const auditLasts = 15 * time.Minute

// AuditSummary is what the regular audit found last, for every node to show.
type AuditSummary struct {
	At        int64            `json:"at"` // Redis time, ms since the epoch
	Balanced  bool             `json:"balanced"`
	Imbalance map[string]int64 `json:"imbalance"` // units that do not add up, by item
	Problems  []string         `json:"problems"`
}

// KeepAudit keeps the summary of an audit of a sale, in place of the one before. Errors: Unavailable.
func (q *Queue) KeepAudit(ctx context.Context, sale string, summary AuditSummary) error {
	data, err := json.Marshal(summary)
	if err == nil {
		err = q.rdb.Set(ctx, keysOf(sale).audit, data, auditLasts).Err()
	}
	if err != nil {
		return fmt.Errorf("keep the audit of sale %s: %w", sale, err)
	}
	return nil
}

// LastAudit is the summary that was kept last, nil when there is none or it is too old. Errors: Unavailable.
func (q *Queue) LastAudit(ctx context.Context, sale string) (*AuditSummary, error) {
	data, err := q.rdb.Get(ctx, keysOf(sale).audit).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	var summary AuditSummary
	if err == nil {
		err = json.Unmarshal(data, &summary)
	}
	if err != nil {
		return nil, fmt.Errorf("read the last audit of sale %s: %w", sale, err)
	}
	return &summary, nil
}
