package queue

import (
	"context"
	"fmt"
	"time"
)

// Lease says whether that holder is the one of all processes to do a thing of that name now, and until when no other will
// be, unless it asks again. It only keeps them from doing the same work at the same time: in rare moments two may hold it,
// so what is done under it must bear that. Errors: Unavailable.
func (q *Queue) Lease(ctx context.Context, name, holder string, lasts time.Duration) (bool, error) {
	key := leaseKey + name
	taken, err := q.rdb.SetNX(ctx, key, holder, lasts).Result()
	if err != nil {
		return false, fmt.Errorf("take the lease %s: %w", name, err)
	}
	if taken {
		return true, nil
	}
	who, err := q.rdb.Get(ctx, key).Result()
	if err != nil || who != holder {
		return false, nil //nolint:nilerr // it ran out just now: somebody takes it with the next call
	}
	if err := q.rdb.PExpire(ctx, key, lasts).Err(); err != nil {
		return false, fmt.Errorf("keep the lease %s: %w", name, err)
	}
	return true, nil
}
