package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Archive is what is kept of a sale that was taken out of Redis. Its settings and orders stay in the database. Times are
// ms since the epoch.
type Archive struct {
	Sale    string          `json:"-"`
	At      int64           `json:"at"`             // by Redis time; from then on nothing brings it back
	Done    int64           `json:"done,omitempty"` // since when Redis has nothing of it; 0 = it may have
	Audit   json.RawMessage `json:"audit"`          // the last audit, which held
	Version int64           `json:"-"`              // of the settings in Redis that were judged
	Purge   bool            `json:"purge"`          // its users are to be purged, or were
	Purged  int64           `json:"purged,omitempty"`
}

// archivedLasts is how long a sale that was archived cannot be installed whatever the database says: much longer than any
// process goes on with what it read before.
const archivedLasts = time.Hour

// Causes inside ErrArchived and ErrOver.
var (
	errArchived = errors.New("the sale is archived")
	errOver     = errors.New("the sale is archived, and not in redis")
)

// ErrArchived is what is wrong with a change of a sale that is archived. Its code is Conflict.
func ErrArchived(sale string) error {
	return &Error{
		Code: Conflict, Err: errArchived,
		Message: fmt.Sprintf("the sale %q is archived and cannot be changed or held again; give the next one another id", sale),
	}
}

// IsArchived says whether an error is that a sale is archived.
func IsArchived(err error) bool { return errors.Is(err, errArchived) }

// ErrOver is what is wrong with a request about a sale that is archived, and that only Redis could answer. Its code is
// NoSuchSale; it is no trouble.
func ErrOver(sale string) error {
	return &Error{
		Code: NoSuchSale, Err: errOver,
		Message: fmt.Sprintf("the sale %q is over and was archived; its orders are still there", sale),
	}
}

// IsOver says whether an error is that a sale is archived and Redis has nothing of it any more.
func IsOver(err error) bool { return errors.Is(err, errOver) }

// absent is why Redis has nothing of a sale: it is archived, or was lost. The mark is set in the step that takes the keys, so
// whoever found none of these finds the mark. Errors that are neither: Unavailable.
func (q *Queue) absent(ctx context.Context, sale string) error {
	archived, err := q.isArchived(ctx, sale)
	switch {
	case err != nil:
		return err
	case archived:
		return ErrOver(sale)
	}
	return errNotHere(sale)
}

// isArchived says whether a sale was archived a while ago, as its mark tells.
func (q *Queue) isArchived(ctx context.Context, sale string) (bool, error) {
	marks, err := q.rdb.Exists(ctx, keysOf(sale).archived).Result()
	if err != nil {
		return false, fmt.Errorf("look whether sale %s is archived: %w", sale, err)
	}
	return marks > 0, nil
}

// SettingsVersion is a number that grows with every change of a sale by its operator. Errors: Unavailable, also when the
// sale is not there.
func (q *Queue) SettingsVersion(ctx context.Context, sale string) (int64, error) {
	text, err := q.rdb.HGet(ctx, keysOf(sale).meta, "v").Result()
	if errors.Is(err, redis.Nil) {
		return 0, q.absent(ctx, sale)
	}
	var version int64
	if err == nil {
		version, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil {
		return 0, fmt.Errorf("read the version of the settings of sale %s: %w", sale, err)
	}
	return version, nil
}

// Erase takes a closed sale out of Redis, with the version of its settings by which it was judged. Erasing again changes
// nothing; for an hour it cannot be installed. Errors: Conflict, and then it stays as it is, when it was changed since or
// orders wait in its outbox; Unavailable.
func (q *Queue) Erase(ctx context.Context, sale string, version int64) error {
	return q.erase(ctx, sale, strconv.FormatInt(version, 10))
}

// EraseLeftovers takes away what there may be in Redis of a sale that was erased: what a process made that did not know
// yet, or what a Redis had that was out of date and came back. Errors: Unavailable.
func (q *Queue) EraseLeftovers(ctx context.Context, sale string) error { return q.erase(ctx, sale, "") }

func (q *Queue) erase(ctx context.Context, sale, version string) error {
	k := keysOf(sale)
	names := []string{k.meta, k.outbox, k.archived}
	for _, name := range k.all() {
		if name != k.meta && name != k.outbox {
			names = append(names, name)
		}
	}
	v, err := q.run(ctx, "erase", names, []any{version, archivedLasts.Milliseconds()})
	if err != nil {
		return err
	}
	r := &reply{script: "erase"}
	switch r.int(v) {
	case -1:
		return &Error{Code: Conflict, Message: fmt.Sprintf("the sale %q was changed while it was being archived; look at it, and archive it again", sale)}
	case -2:
		return &Error{Code: Conflict, Message: fmt.Sprintf("orders of the sale %q wait in its outbox; archive it again when they are written", sale)}
	}
	if r.err != nil {
		return r.err
	}
	// In a cluster this is another slot. If it is lost, erasing again does it.
	if err := q.rdb.SRem(ctx, salesKey, sale).Err(); err != nil {
		return fmt.Errorf("take sale %s off the list: %w", sale, err)
	}
	return nil
}
