package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Sales lists the ids of the sales that Redis has, in order. Errors: Unavailable.
func (q *Queue) Sales(ctx context.Context) ([]string, error) {
	ids, err := q.rdb.SMembers(ctx, salesKey).Result()
	if err != nil {
		return nil, fmt.Errorf("list the sales: %w", err)
	}
	slices.Sort(ids)
	return ids, nil
}

// Sale returns the settings of a sale as they stand in Redis. Errors: NoSuchSale, Unavailable.
func (q *Queue) Sale(ctx context.Context, id string) (Sale, error) {
	values, err := q.rdb.HMGet(ctx, keysOf(id).meta, "spec", "opens", "closes", "lobby").Result()
	if err != nil {
		return Sale{}, fmt.Errorf("read the settings of sale %s: %w", id, err)
	}
	r := &reply{script: "settings of sale " + id}
	if values[0] == nil {
		if archived, err := q.isArchived(ctx, id); err != nil || archived {
			return Sale{}, cmp.Or(err, ErrOver(id))
		}
		return Sale{}, &Error{Code: NoSuchSale, Message: fmt.Sprintf("there is no sale %q", id)}
	}
	var sale Sale
	if err := json.Unmarshal([]byte(r.text(values[0])), &sale); err != nil {
		return Sale{}, fmt.Errorf("read the settings of sale %s: %w", id, err)
	}
	// What open and close moved stands beside the settings.
	sale.OpensAt = time.UnixMilli(r.int(values[1])).UTC()
	sale.ClosesAt = time.UnixMilli(r.int(values[2])).UTC()
	return sale, r.err
}

// Installed says whether Redis has the sale, and whether it is ready: false after a loss, a restart or a failover,
// until Restore has run. Errors: Unavailable.
func (q *Queue) Installed(ctx context.Context, id string) (here, ready bool, err error) {
	seat, err := q.Look(ctx, id, "")
	if isNotHere(err) || IsOver(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	return true, seat.State != Recovering, nil
}

// Install brings a sale to Redis that it does not have; one that is there is left as it is. Where the line had got
// somewhere, a new epoch begins. The sale recovers until Restore has run. Errors: Unavailable.
func (q *Queue) Install(ctx context.Context, sale Sale, reach Reach) error {
	if reach.Issued > 0 {
		reach.Epoch++
		reach.Issued += reachSlack
	}
	if err := q.apply(ctx, sale, "install", reach); err != nil || reach.Draw == nil {
		return err
	}
	draw, open, err := q.Freeze(ctx, *reach.Draw)
	if err != nil || !open || !draw.Drawn() {
		return err
	}
	return q.Draw(ctx, draw, draw.Table(sale.Line.Order))
}

// Reach is how far the line of a sale had got when that was written down last: after a loss of Redis, numbers are given
// from beyond it, and those who hold one of the epoch take it back. The zero value is of a sale that nobody has joined.
type Reach struct {
	Epoch  int64
	Issued int64 // the highest ticket
	Served int64 // the cursor
	Paused bool  // by an operator

	Calling int64 // the lowest number that has a turn; beyond the cursor when none has

	Draw *Draw // the lottery of the sale, once its entries are frozen, and then drawn as well; nil = none
}

// reachSlack is how many numbers may have been given since the reach was written down, at most: it is written every
// second, and no line is joined by more than that in one. Numbers that nobody holds are passed over and cost nothing.
const reachSlack = 50_000

// Reach is how far the line of a sale is. Errors: Unavailable, also when the sale is not there.
func (q *Queue) Reach(ctx context.Context, id string) (Reach, error) {
	values, err := q.rdb.HMGet(ctx, keysOf(id).meta, "epoch", "issued", "served", "paused").Result()
	if err != nil {
		return Reach{}, fmt.Errorf("read how far the line of sale %s is: %w", id, err)
	}
	if values[0] == nil {
		return Reach{}, q.absent(ctx, id)
	}
	r := &reply{script: "reach of sale " + id}
	reach := Reach{Epoch: r.int(values[0]), Issued: r.int(values[1]), Served: r.int(values[2]), Paused: r.int(values[3]) == 1}
	reach.Calling = reach.Served + 1
	// The first by deadline are the first by number, but for those who were called together.
	turns, err := q.rdb.ZRange(ctx, keysOf(id).turns, 0, 999).Result()
	if err != nil {
		return Reach{}, fmt.Errorf("read the turns of sale %s: %w", id, err)
	}
	for _, number := range turns {
		reach.Calling = min(reach.Calling, r.int(number))
	}
	return reach, r.err
}

// Apply changes the settings of a sale, or installs it. It is idempotent. Of a sale that can be joined already, only
// title, closes_at, prices, the line's figures, hold, access rules and stock can change; stock not below what was sold, and
// access rules for those who join from then on. Errors: Conflict with the reason, Unavailable.
func (q *Queue) Apply(ctx context.Context, sale Sale) error {
	return q.apply(ctx, sale, "change", Reach{})
}

func (q *Queue) apply(ctx context.Context, sale Sale, mode string, reach Reach) error {
	if _, kept := sale.Access.Codes.kept(); kept {
		return fmt.Errorf("apply sale %s: its codes are not known", sale.ID)
	}
	spec, err := json.Marshal(sale)
	if err != nil {
		return fmt.Errorf("write the settings of sale %s: %w", sale.ID, err)
	}
	k := keysOf(sale.ID)
	lobby := int64(0)
	if sale.Lobby > 0 {
		lobby = sale.OpensAt.UnixMilli() - sale.Lobby.Milliseconds()
	}
	args := []any{
		mode, spec, sale.OpensAt.UnixMilli(), sale.ClosesAt.UnixMilli(), lobby, string(sale.Line.Order), sale.Limit,
		sale.Line.Rate, sale.Line.Active, strconv.FormatFloat(sale.Line.Ratio, 'f', -1, 64),
		sale.Line.Turn.Milliseconds(), sale.Hold.Milliseconds(), max(1, reach.Epoch), reach.Issued, reach.Served, flag(reach.Paused), reach.Calling,
		sale.Line.Grace.Milliseconds(), flag(len(sale.Access.Allow)+len(sale.Access.Deny) > 0), flag(sale.Access.ChallengeURL != ""),
		sale.Access.SeatsPerAddress, flag(sale.Line.Order == FIFO && sale.Sorted()), len(sale.Access.Codes),
	}
	for _, code := range sale.Access.Codes {
		args = append(args, code.Code, fmt.Sprintf("%d|%d", code.Uses, code.Priority))
	}
	for _, item := range sale.Items {
		args = append(args, item.ID, item.Stock)
	}
	v, err := q.run(ctx, "apply", []string{k.meta, k.stock, k.seats, k.turns, k.winners, k.past, k.gone, k.news, k.lost, k.dropout,
		k.codes, k.conn, k.away, k.recall, k.nodes, k.leaves, k.draw, k.leavers, k.used, k.coded, k.address, k.ranks, k.archived}, args)
	if err != nil {
		return err
	}
	r := &reply{script: "apply"}
	row := r.list(v, 1)
	switch code := r.int(row[0]); code {
	case 0, 1:
	case -1:
		return errFixed(r.text(r.list(v, 2)[1]), sale.ID)
	case -2:
		row = r.list(v, 3)
		return errSold(r.text(row[1]), r.int(row[2]))
	case -3:
		return ErrArchived(sale.ID)
	default:
		r.fail("a known code was expected", code)
	}
	if r.err != nil || mode == "check" {
		return r.err
	}
	// Last, so that a sale is listed only when it is there. If this is lost, applying or restoring again adds it.
	if err := q.rdb.SAdd(ctx, salesKey, sale.ID).Err(); err != nil {
		return fmt.Errorf("list sale %s: %w", sale.ID, err)
	}
	return nil
}

// Open opens a sale now. Errors: NoSuchSale, Conflict when it is closed, Unavailable.
func (q *Queue) Open(ctx context.Context, id string) (Sale, error) { return q.control(ctx, id, "open") }

// Pause stops turns and grabs at once; the sale clock stands still. Errors: as Open.
func (q *Queue) Pause(ctx context.Context, id string) (Sale, error) {
	return q.control(ctx, id, "pause")
}

// Resume ends a pause. Errors: as Open.
func (q *Queue) Resume(ctx context.Context, id string) (Sale, error) {
	return q.control(ctx, id, "resume")
}

// Close ends a sale now; unpaid holds stay payable. Errors: as Open.
func (q *Queue) Close(ctx context.Context, id string) (Sale, error) {
	return q.control(ctx, id, "close")
}

// Recover has a sale put right again as after a loss: nothing is granted until whoever restores sales has been through all
// its orders. Errors: NoSuchSale, Unavailable.
func (q *Queue) Recover(ctx context.Context, id string) error {
	_, err := q.control(ctx, id, "recover")
	return err
}

// Asked says whether a sale that is not ready is so because of Recover. Errors: Unavailable.
func (q *Queue) Asked(ctx context.Context, id string) (bool, error) {
	run, err := q.rdb.HGet(ctx, keysOf(id).meta, "run").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, fmt.Errorf("read the run of sale %s: %w", id, err)
	}
	return run == "asked", nil
}

func (q *Queue) control(ctx context.Context, id, action string) (Sale, error) {
	v, err := q.run(ctx, "control", []string{keysOf(id).meta}, []any{action})
	if err != nil {
		return Sale{}, err
	}
	r := &reply{script: "control"}
	row := r.list(v, 0)
	if len(row) == 0 {
		return Sale{}, &Error{Code: NoSuchSale, Message: fmt.Sprintf("there is no sale %q", id)}
	}
	if len(row) == 2 {
		state := r.text(row[1])
		if State(state) == Recovering {
			return Sale{}, errNotHere(id)
		}
		return Sale{}, &Error{Code: Conflict, Message: fmt.Sprintf("the sale %q is %s: it is too late to %s it", id, state, action)}
	}
	if r.err != nil {
		return Sale{}, r.err
	}
	return q.Sale(ctx, id)
}

// Restore puts a sale right whose Redis state is missing or of another run of the server: Rebuild, then Ready.
func (q *Queue) Restore(ctx context.Context, sale Sale, reach Reach, orders func(yield func([]Order) error) error) error {
	if err := q.Rebuild(ctx, sale, reach, orders); err != nil {
		return err
	}
	return q.Ready(ctx, sale.ID)
}

// Rebuild is total stock where nothing is there, then the mark of every live order in the database, taking its stock
// where the mark was lost, and the release of orders that ended. `orders` yields the orders of the database in pages, in
// the order of their ids. It may run several times, also at once: every step is idempotent for each order. Errors:
// Unavailable.
func (q *Queue) Rebuild(ctx context.Context, sale Sale, reach Reach, orders func(yield func([]Order) error) error) error {
	if err := q.Install(ctx, sale, reach); err != nil {
		return err
	}
	err := orders(func(page []Order) error {
		var live, ended []Order
		for _, order := range page {
			if order.Status.Live() {
				live = append(live, order)
			} else {
				ended = append(ended, order)
			}
		}
		if _, err := q.release(ctx, sale.ID, ended, "recovery"); err != nil {
			return err
		}
		_, err := q.adopt(ctx, sale.ID, live, "0")
		return err
	})
	if err != nil {
		return fmt.Errorf("restore sale %s: %w", sale.ID, err)
	}
	return nil
}

// Ready ends the recovery of a sale: it is granted again when this returns nil. Errors: Unavailable.
func (q *Queue) Ready(ctx context.Context, id string) error {
	v, err := q.run(ctx, "ready", []string{keysOf(id).meta}, nil)
	if err != nil {
		return err
	}
	r := &reply{script: "ready"}
	if r.int(v) < 0 {
		return q.absent(ctx, id) // lost again meanwhile
	}
	return r.err
}
