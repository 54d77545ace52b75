package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"sluice/queue"
	"sluice/worker"
)

// sustained is how long rows are counted, in seconds.
const sustained = 30

// measureOrders fills the outbox of a sale, starts a worker, and counts rows.
func (b *bench) measureOrders(ctx context.Context) (result, error) {
	r := newResult()
	what := fmt.Sprintf("orders/s from outbox to row, over %d s", sustained)
	const inserts = "rows/s inserted one by one, 20 connections"
	names := map[string]string{"mysql": "MariaDB", "postgres": "PostgreSQL"}
	for round := range b.rounds {
		for _, dialect := range []string{"mysql", "postgres"} {
			b.say("round %d: %s", round+1, names[dialect])
			rate, err := b.backlogRate(ctx, dialect)
			if err != nil {
				return *r, fmt.Errorf("%s: %w", dialect, err)
			}
			r.add(what, "Sluice, RabbitMQ, "+names[dialect], rate)
			if rate, err = b.rowByRow(ctx, dialect); err != nil {
				return *r, err
			}
			r.add(inserts, names[dialect], rate)
		}
		b.say("round %d: RabbitMQ alone", round+1)
		rate, err := b.brokerAlone(ctx)
		if err != nil {
			return *r, fmt.Errorf("RabbitMQ alone: %w", err)
		}
		r.add(what, "RabbitMQ alone, no outbox and no database", rate)
	}
	rate := r.median(what, "Sluice, RabbitMQ, MariaDB")
	r.promise(rate >= 20_000, "persistence ≥ 20 k orders/s from outbox to MariaDB rows, sustained 30 s: %.1f k/s", rate/1000)
	return *r, nil
}

// backlogRate is how many orders a second one worker writes from a full outbox.
func (b *bench) backlogRate(ctx context.Context, dialect string) (float64, error) {
	w, err := b.newWorld(ctx, "everysec", dialect)
	if err != nil {
		return 0, err
	}
	node, err := b.startNode(ctx, w, "--no-worker")
	if err != nil {
		return 0, err
	}
	const sale = "backlog"
	if err := b.apply(ctx, node, sale, 2*int64(b.backlog), "{ order: off }"); err != nil {
		return 0, err
	}
	q, rdb, err := b.openQueue()
	if err != nil {
		return 0, err
	}
	defer rdb.Close()
	if _, err := each(int64(b.backlog), func(i int64) error { return won(ctx, q, sale, i) }); err != nil {
		return 0, err
	}
	ops, err := freePort()
	if err != nil {
		return 0, err
	}
	worker, err := b.start(ctx, "worker", b.sluice, append([]string{"worker", fmt.Sprintf("--ops-listen=127.0.0.1:%d", ops)}, w.flags...)...)
	if err != nil {
		return 0, err
	}
	defer worker.stop()
	defer node.stop()
	count := func() (int64, error) {
		m, err := scrape(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", ops))
		return int64(m[`sluice_orders_written_total{result="confirmed"}`]), err
	}
	if err := until(ctx, "the first rows, see "+worker.log, startPatience, func() (bool, error) {
		n, err := count()
		return n > 0, err
	}); err != nil {
		return 0, err
	}
	begun, first := time.Now(), int64(0)
	if first, err = count(); err != nil {
		return 0, err
	}
	last := first
	for time.Since(begun) < sustained*time.Second && last < int64(b.backlog) {
		time.Sleep(20 * time.Millisecond)
		if last, err = count(); err != nil {
			return 0, err
		}
	}
	took := time.Since(begun).Seconds()
	rows, err := b.rows(ctx, w)
	if err != nil {
		return 0, err
	}
	if rows < last {
		return 0, fmt.Errorf("%d orders are said to be written, and there are %d rows", last, rows)
	}
	return float64(last-first) / took, nil
}

// rowByRow is how many rows a second go in when each is a statement and a transaction of its own.
func (b *bench) rowByRow(ctx context.Context, dialect string) (float64, error) {
	db, table := b.mysql, fmt.Sprintf("bench_%d_%d.one_by_one", pid, b.worlds)
	statement := "INSERT INTO %s (sale, user_id, request_id) VALUES (?, ?, ?)"
	if dialect == "postgres" {
		var err error
		if db, err = sql.Open("pgx", fmt.Sprintf("%s/bench_%d_%d", b.postgresURL, pid, b.worlds)); err != nil {
			return 0, err
		}
		defer db.Close()
		table, statement = "one_by_one", "INSERT INTO %s (sale, user_id, request_id) VALUES ($1, $2, $3)"
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE "+table+" (sale VARCHAR(64) NOT NULL, user_id VARCHAR(128) NOT NULL, request_id VARCHAR(64) NOT NULL, PRIMARY KEY (sale, user_id))"); err != nil {
		return 0, err
	}
	db.SetMaxOpenConns(plainWriters)
	db.SetMaxIdleConns(plainWriters)
	return each(int64(b.inserts), func(i int64) error {
		_, err := db.ExecContext(ctx, fmt.Sprintf(statement, table), "s", user(i), "first")
		return err
	})
}

// brokerAlone is how many orders a second this process publishes and has confirmed, and takes out and acknowledges, when
// nothing else is done with them: what the broker costs, and the least that any writer can.
func (b *bench) brokerAlone(ctx context.Context) (float64, error) {
	const window, batch = 1000, 500 // as `sluice worker` has them by default
	broker, err := worker.NewAMQP(b.amqpURL, worker.AMQPOptions{Logger: slog.New(slog.DiscardHandler), Node: "bench", Prefix: fmt.Sprintf("bench_%d_%d.", pid, b.worlds)})
	if err != nil {
		return 0, err
	}
	defer broker.Close()
	feed, err := broker.Consume(ctx, 2*batch)
	if err != nil {
		return 0, err
	}
	defer feed.Close(nil)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, window)
	begun := time.Now()
	go func() {
		for i := range b.messages {
			slots <- struct{}{}
			order := queue.Order{ID: uuid.Must(uuid.NewV7()).String(), Sale: "alone", Item: "main", User: user(int64(i)), Qty: 1, RequestID: "first",
				CreatedAt: begun.UnixMilli(), PayBy: begun.UnixMilli()}
			err := broker.Publish(ctx, order, func(err error) {
				if err != nil {
					cancel(err)
				}
				<-slots
			})
			if err != nil {
				cancel(err)
				return
			}
		}
	}()
	for got := 0; got < b.messages; {
		var taken []worker.Delivery
		for len(taken) < min(batch, b.messages-got) {
			select {
			case d, open := <-feed.Deliveries():
				if !open {
					return 0, errors.New("the session ended")
				}
				taken = append(taken, d)
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		}
		got += len(taken)
		if err := feed.Ack(taken); err != nil {
			return 0, err
		}
	}
	return float64(b.messages) / time.Since(begun).Seconds(), nil
}
