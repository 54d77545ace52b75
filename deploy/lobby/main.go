// Command lobby fills the lobby of a sale in Redis, without sockets, so that a draw of a million entries can be tried on one
// machine:
//
//	go run ./deploy/lobby --redis-url redis://127.0.0.1:6379 --sale phone-x --entries 1000000
package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"sluice/queue"
)

func main() {
	redisURL := flag.String("redis-url", "redis://127.0.0.1:6379", "the Redis of the sale")
	sale := flag.String("sale", "", "id of the sale")
	entries := flag.Int64("entries", 1_000_000, "how many people join")
	leave := flag.Int64("leave", 100, "one of so many leaves again; 0 = nobody")
	flag.Parse()
	if err := fill(context.Background(), *redisURL, *sale, *entries, *leave); err != nil {
		fmt.Fprintln(os.Stderr, "lobby:", err)
		os.Exit(1)
	}
}

// again does something up to five times, while answers are lost: joining or leaving twice is as good as once.
func again(do func() error) (err error) {
	for range 5 {
		if err = do(); err == nil {
			return nil
		}
	}
	return err
}

func fill(ctx context.Context, redisURL, sale string, entries, leave int64) error {
	rdb, err := queue.Connect(redisURL, 8)
	if err != nil {
		return err
	}
	defer rdb.Close()
	q := queue.New(rdb, queue.Options{})
	const workers = 512 // they share calls to Redis, 64 to a call
	var next, done atomic.Int64
	var failed atomic.Pointer[error]
	var group sync.WaitGroup
	begun := time.Now()
	for range workers {
		group.Go(func() {
			for i := next.Add(1); i <= entries && failed.Load() == nil; i = next.Add(1) {
				user := fmt.Sprintf("entrant-%d", i)
				leaf := sha256.Sum256([]byte(user))
				var seat queue.Seat
				err := again(func() (err error) {
					seat, err = q.Join(ctx, queue.JoinRequest{Sale: sale, User: user, Leaf: leaf[:]})
					return err
				})
				if err == nil && leave > 0 && i%leave == 0 {
					err = again(func() error { return q.Leave(ctx, sale, user, seat.Ticket) })
				}
				if err != nil {
					failed.Store(&err)
					return
				}
				if n := done.Add(1); n%50_000 == 0 {
					fmt.Printf("%d of %d entries, %.0f a second\n", n, entries, float64(n)/time.Since(begun).Seconds())
				}
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	fmt.Printf("%d entries in %s\n", entries, time.Since(begun).Round(time.Millisecond))
	return nil
}
