package queue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// heldLasts is how long it counts that a writer has an order in hand: a writer that has not said so again has died, and the
// broker has the order.
const heldLasts = 5 * time.Second

// Hold tells the audit that a writer has orders of a sale in hand, at a moment by Redis time (ms). They are neither in the
// outbox nor to be counted in the broker, and not written yet. Errors: Unavailable.
func (q *Queue) Hold(ctx context.Context, sale string, at int64, orders []string) error {
	key, until := keysOf(sale).held, float64(at+heldLasts.Milliseconds())
	members := make([]redis.Z, len(orders))
	for i, order := range orders {
		members[i] = redis.Z{Score: until, Member: order}
	}
	_, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ZRemRangeByScore(ctx, key, "-inf", strconv.FormatInt(at, 10))
		p.ZAdd(ctx, key, members...)
		p.PExpire(ctx, key, heldLasts)
		return nil
	})
	if err != nil {
		return fmt.Errorf("tell of orders of sale %s in hand: %w", sale, err)
	}
	return nil
}

// Held are the ids of the orders of a sale that writers have in hand for longer than a moment. Errors: Unavailable.
func (q *Queue) Held(ctx context.Context, sale string) (map[string]bool, error) {
	at, err := q.Time(ctx)
	if err != nil {
		return nil, err
	}
	orders, err := q.rdb.ZRangeByScore(ctx, keysOf(sale).held, &redis.ZRangeBy{Min: "(" + strconv.FormatInt(at, 10), Max: "+inf"}).Result()
	if err != nil {
		return nil, fmt.Errorf("read the orders of sale %s in hand: %w", sale, err)
	}
	held := make(map[string]bool, len(orders))
	for _, order := range orders {
		held[order] = true
	}
	return held, nil
}
