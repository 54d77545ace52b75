package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"sluice/fault"
	"sluice/queue"
	"sluice/trace"
)

const (
	// writeTimeout bounds one attempt to write a batch.
	writeTimeout = 30 * time.Second
	// writerGrace is how long a writer that is told to stop works on the batch in hand.
	writerGrace = 10 * time.Second
	// maxReason is how much of an error a dead letter carries, in bytes.
	maxReason = 1000
)

// orderStore is the part of the [Store] that a Writer needs.
type orderStore interface {
	WriteOrders(ctx context.Context, orders []queue.Order) ([]Written, error)
	MoveDone(ctx context.Context, orderIDs []string) error
}

// adopter is the part of the [queue.Queue] that a Writer needs: it learns what the database has decided.
type adopter interface {
	Adopt(ctx context.Context, sale string, orders []queue.Order) ([]queue.Adoption, error)
	Release(ctx context.Context, sale string, orders []queue.Order) (released []bool, err error)
}

// source is the part of a Broker that a Writer needs.
type source interface {
	Consume(ctx context.Context, prefetch int) (Feed, error)
	Bury(ctx context.Context, letter DeadLetter) error
}

// Writer stores orders that a broker delivers, in batches. A batch is acknowledged after its rows are committed, Redis
// has been told of each, and what can never be written is put aside. Until then it is tried again, so a batch is handled
// at least once, and every step of it may be repeated.
type Writer struct {
	source   source
	store    orderStore
	queue    adopter
	notifier *Notifier     // may be nil
	batch    int           // orders in one transaction, at most
	linger   time.Duration // how long a busy writer waits for more
	log      *slog.Logger
	metrics  *metrics
	tracer   *trace.Tracer // nil = nothing is followed
}

// Run writes until ctx ends, and then finishes the batch in hand within 10 s. It rides out every failure of the broker,
// the database and Redis.
func (w *Writer) Run(ctx context.Context) {
	deaf := trouble{log: w.log, what: "receive orders"}
	for ctx.Err() == nil {
		feed, err := w.source.Consume(ctx, 2*w.batch)
		if err == nil {
			deaf.over()
			err = w.session(ctx, feed)
		}
		if ctx.Err() != nil || !sleep(ctx, deaf.met(err)) {
			return
		}
	}
}

// session handles batches of one feed until the feed or ctx ends.
func (w *Writer) session(ctx context.Context, feed Feed) error {
	// A transaction is not cut off because the writer is to stop, nor because the session is lost: what it commits
	// need not be written again.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(writerGrace, cancel) })()

	busy := false
	for ctx.Err() == nil {
		batch := w.gather(ctx, feed, busy)
		if len(batch) == 0 {
			break
		}
		if err := w.handle(work, feed, batch); err != nil {
			feed.Close(batch)
			return err
		}
		// Looked at before the acknowledgement: what comes in answer to it came alone, and need not wait for others.
		busy = len(feed.Deliveries()) > 0
		if err := feed.Ack(batch); err != nil {
			feed.Close(batch)
			return err
		}
		fault.Point("writer.acknowledged")
	}
	feed.Close(nil)
	return errSession
}

// gather takes the next batch from a feed: what is there, at once. A busy writer, one that orders have come in for
// during the last batch, waits up to the linger for the batch to fill: fewer and larger transactions. It returns
// nothing when the feed or ctx has ended.
func (w *Writer) gather(ctx context.Context, feed Feed, busy bool) []Delivery {
	var batch []Delivery
	var linger <-chan time.Time
	for len(batch) < w.batch {
		select {
		case delivery, open := <-feed.Deliveries():
			if !open {
				return batch
			}
			batch = append(batch, delivery)
			continue
		default: // nothing is there; another writer may have been faster
		}
		if len(batch) > 0 && !busy {
			return batch
		}
		if busy && linger == nil {
			linger = time.After(w.linger)
		}
		select {
		case delivery, open := <-feed.Deliveries():
			if !open {
				return batch
			}
			batch = append(batch, delivery)
		case <-linger:
			busy, linger = false, nil // what is in hand is enough, if there is any
		case <-ctx.Done():
			return batch
		}
	}
	return batch
}

// handle does all that a batch needs before it is acknowledged. After an error the batch must be given back.
func (w *Writer) handle(ctx context.Context, feed Feed, batch []Delivery) error {
	fault.Point("writer.gathered")
	readable := make([]Delivery, 0, len(batch))
	var dead []DeadLetter
	for _, delivery := range batch {
		if delivery.Err == nil {
			readable = append(readable, delivery)
		} else {
			dead = append(dead, DeadLetter{Delivery: delivery, Reason: delivery.Err.Error(), At: now()})
		}
	}
	followed := w.follow(readable)
	ctx = followed.in(ctx)
	written, unwritable, err := w.write(ctx, feed, readable)
	if err != nil {
		followed.end(notWritten, nil)
		return err
	}
	fault.Point("writer.written")
	w.count(written)
	followed.written(written)
	if err := w.announce(ctx, feed, written); err != nil {
		followed.end(notAnnounced, nil)
		return err
	}
	followed.end("", unwritable)
	fault.Point("writer.announced")
	return w.bury(ctx, feed, append(dead, unwritable...))
}

// Why spans of a batch end before their orders are done with, which are delivered again then.
const (
	notWritten   = "not written"
	notAnnounced = "not announced"
)

// write stores orders. When one of them can never be stored, it halves the batch until that one is found, so that the
// others are written all the same.
func (w *Writer) write(ctx context.Context, feed Feed, batch []Delivery) ([]Written, []DeadLetter, error) {
	if len(batch) == 0 {
		return nil, nil, nil
	}
	orders := make([]queue.Order, len(batch))
	for i, delivery := range batch {
		orders[i] = delivery.Order
	}
	var written []Written
	err := w.insist(ctx, feed, "write orders", IsPermanent, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		start := time.Now()
		span := w.tracer.Continue(trace.From(ctx), trace.Rows)
		span.Count(trace.Together, len(orders))
		var err error
		if written, err = w.store.WriteOrders(ctx, orders); err == nil {
			w.metrics.writeTime.Observe(time.Since(start).Seconds())
			span.End("")
		} else {
			span.End(notWritten)
		}
		return err
	})
	switch {
	case err == nil:
		return written, nil, nil
	case !IsPermanent(err):
		return nil, nil, err
	case len(batch) == 1:
		return nil, []DeadLetter{{Delivery: batch[0], Reason: err.Error(), At: now()}}, nil
	}
	half := len(batch) / 2
	written, dead, err := w.write(ctx, feed, batch[:half])
	if err != nil {
		return nil, nil, err
	}
	more, moreDead, err := w.write(ctx, feed, batch[half:])
	return append(written, more...), append(dead, moreDead...), err
}

// count tells those who wait here, and the metrics, what was written.
func (w *Writer) count(written []Written) {
	for _, one := range written {
		if w.notifier != nil {
			w.notifier.tell(one.Order.ID, notice{order: one.Order})
		}
		result := "confirmed"
		switch {
		case one.Known:
			result = "known"
		case one.Reason != "":
			result = "rejected"
			w.log.Warn("the database refused an order that Redis had let through",
				"sale", one.Order.Sale, "order", one.Order.ID, "request", one.Order.RequestID, "reason", one.Reason)
		}
		if !one.Known {
			w.metrics.orderLag.Observe(sinceGrab(one.Order.CreatedAt))
		}
		w.metrics.written.WithLabelValues(result).Inc()
	}
}

// announce tells Redis what the database has decided. A live order must have its mark there; the units of any other
// one must be given back. Either is done again for an order that was known: who knows how far the last try came.
func (w *Writer) announce(ctx context.Context, feed Feed, written []Written) (err error) {
	span := w.tracer.Continue(trace.From(ctx), trace.Announce)
	defer func() {
		code := ""
		if err != nil {
			code = notAnnounced
		}
		span.End(code)
	}()
	live, over := map[string][]queue.Order{}, map[string][]queue.Order{} // by sale
	for _, one := range written {
		if one.Order.Status.Live() {
			live[one.Order.Sale] = append(live[one.Order.Sale], one.Order)
		} else {
			over[one.Order.Sale] = append(over[one.Order.Sale], one.Order)
		}
	}
	for sale, orders := range live {
		if err := w.adopt(ctx, feed, sale, orders); err != nil {
			return err
		}
	}
	for sale, orders := range over {
		if err := w.release(ctx, feed, sale, orders); err != nil {
			return err
		}
	}
	return nil
}

// adopt makes sure that live orders of a sale have their marks in Redis, and announces them to their shoppers.
func (w *Writer) adopt(ctx context.Context, feed Feed, sale string, orders []queue.Order) error {
	var adoptions []queue.Adoption
	err := w.insist(ctx, feed, "announce orders", isAnswer, func(ctx context.Context) error {
		var err error
		adoptions, err = w.queue.Adopt(ctx, sale, orders)
		return err
	})
	if isAnswer(err) {
		// Redis does not have the sale. Whoever puts it there reads the orders of the database afterwards, and with
		// them these, which are committed.
		w.log.Warn("orders were written of a sale that Redis does not have", "sale", sale, "orders", len(orders))
		return nil
	}
	for i, adoption := range adoptions {
		switch adoption {
		case queue.NoStock, queue.Released, queue.OtherMark:
			// The database is right. The audit shows it until the marks are, too.
			w.log.Warn("an order was written that has no mark in Redis", "sale", sale, "order", orders[i].ID, "request", orders[i].RequestID)
		}
	}
	return err
}

// release gives the units of a sale's orders that are not live back in Redis.
func (w *Writer) release(ctx context.Context, feed Feed, sale string, orders []queue.Order) error {
	err := w.insist(ctx, feed, "release rejected orders", isAnswer, func(ctx context.Context) error {
		_, err := w.queue.Release(ctx, sale, orders)
		return err
	})
	if isAnswer(err) {
		return nil // Redis does not have the sale: the moves stay pending in the database until it does
	}
	if err != nil {
		return err
	}
	fault.Point("writer.released")
	ids := make([]string, len(orders))
	for i, order := range orders {
		ids[i] = order.ID
	}
	return w.insist(ctx, feed, "mark stock moves as done", never, func(ctx context.Context) error {
		return w.store.MoveDone(ctx, ids)
	})
}

// bury puts aside what can never be written.
func (w *Writer) bury(ctx context.Context, feed Feed, letters []DeadLetter) error {
	for _, letter := range letters {
		letter.Reason = strings.ToValidUTF8(letter.Reason[:min(len(letter.Reason), maxReason)], "")
		err := w.insist(ctx, feed, "put a dead letter aside", never, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, writeTimeout)
			defer cancel()
			return w.source.Bury(ctx, letter)
		})
		if err != nil {
			return err
		}
		w.metrics.written.WithLabelValues("dead").Inc()
		w.log.Error("an order can never be written, see sluice dead",
			"sale", letter.Order.Sale, "order", letter.ID, "request", letter.Order.RequestID, "reason", letter.Reason)
		if w.notifier != nil {
			w.notifier.tell(letter.ID, notice{err: fmt.Errorf("order %s cannot be written: %s", letter.ID, letter.Reason)})
		}
	}
	return nil
}

// insist runs fn until it succeeds, its error is final, or the session or ctx has ended.
func (w *Writer) insist(ctx context.Context, feed Feed, what string, final func(error) bool, fn func(context.Context) error,
) error {
	failing := trouble{log: w.log, what: what}
	for {
		err := fn(ctx)
		if err == nil {
			failing.over()
			return nil
		}
		if final(err) {
			return err
		}
		select {
		case <-time.After(failing.met(err)):
		case <-feed.Lost():
			return fmt.Errorf("%s: %w", what, errSession)
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}

// isAnswer says whether an error is what Redis says about the sale, and not that Redis cannot be asked.
func isAnswer(err error) bool {
	var answer *queue.Error
	return errors.As(err, &answer)
}

func never(error) bool { return false }
