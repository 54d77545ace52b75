package worker

import (
	"path/filepath"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"sluice/queue"
)

// TestHoldsThatCannotBeEndedAreCounted has a database that takes no more moves of units.
func TestHoldsThatCannotBeEndedAreCounted(t *testing.T) {
	t.Parallel()
	s := openTest(t, "sqlite://"+filepath.Join(t.TempDir(), "orders.db"))
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	redis := miniredis.RunT(t)
	rdb, err := queue.Connect("redis://"+redis.Addr(), 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	save(t, s, sellOut("phone", 1, 20))
	for i := range 3 {
		write(t, s, held("phone", i, opening))
	}
	sweeper := NewSweeper(queue.New(rdb, queue.Options{Embedded: true}), s, quiet, nil, nil)
	rename := func(from, to string) {
		t.Helper()
		if err := s.write(t.Context(), func(tx *sqlx.Tx) error {
			_, err := tx.ExecContext(t.Context(), "ALTER TABLE "+from+" RENAME TO "+to)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	rename("stock_moves", "hidden")
	if err := sweeper.Once(t.Context()); err == nil {
		t.Fatal("the moves were written into a table that is not there")
	}
	if n := testutil.ToFloat64(sweeper.overdue); n != 3 {
		t.Errorf("%v holds are overdue, want 3", n)
	}
	rename("hidden", "stock_moves")
	if err := sweeper.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := testutil.ToFloat64(sweeper.overdue); n != 0 {
		t.Errorf("%v holds are overdue once they could be ended", n)
	}
}
