package queue

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Timeouts of the hot path: every script is short, so an answer that takes longer means trouble, and a shopper is told
// so while it is worth trying again.
const (
	dialTimeout = 2 * time.Second
	callTimeout = 500 * time.Millisecond
)

// blockingPool is how many reads may wait at once: one for each sale that this node relays.
const blockingPool = 1000

// ConnectBlocking makes the client for reads that wait: its connections are its own, made when they are needed.
func ConnectBlocking(url string) (redis.UniversalClient, error) {
	client, err := Connect(url, 0)
	if err != nil {
		return nil, err
	}
	opts := client.(*redis.Client).Options()
	_ = client.Close() // only its options were wanted
	opts.PoolSize = blockingPool
	return redis.NewClient(opts), nil
}

// Connect makes a client for a Redis URL (redis://, rediss://, or unix://). It does not dial. The client never repeats
// a command by itself: a script whose answer was lost may have run, so repeats are made here, with the same ids.
func Connect(url string, pool int) (redis.UniversalClient, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		// The error of the library may quote the URL, and with it a password.
		return nil, fmt.Errorf("--redis-url is not a Redis URL: write it like redis://:password@host:6379/0")
	}
	opts.MaxRetries = -1
	opts.DialTimeout = dialTimeout
	opts.ReadTimeout = callTimeout
	opts.WriteTimeout = callTimeout
	opts.PoolSize = pool
	opts.MinIdleConns = pool / 2
	opts.ContextTimeoutEnabled = true
	// A handshake of Redis Enterprise; elsewhere it costs every connection a refused command, and a line in the log.
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(opts), nil
}
