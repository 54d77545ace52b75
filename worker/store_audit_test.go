package worker

import (
	"testing"

	"sluice/queue"
)

func TestStoreDatabaseItselfRefusesToOversell(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 2))
		write(t, s, grabs("phone", 0, 2)...)
		for _, statement := range []string{
			"UPDATE items SET sold = sold + 1",
			"UPDATE items SET sold = -1",
			"UPDATE items SET total = 1",
			"UPDATE orders SET qty = 0",
			"UPDATE orders SET live = NULL",
			"UPDATE orders SET live = 2",
			"UPDATE orders SET status = 'rejected'",
			"UPDATE orders SET status = 'reserved'",
		} {
			if _, err := s.writer.ExecContext(t.Context(), statement); !IsPermanent(err) {
				t.Errorf("%s: %v", statement, err)
			}
		}
		_, err := s.writer.ExecContext(t.Context(), "UPDATE orders SET user_id = 'one and the same'")
		if !isUniqueViolation(err) || IsPermanent(err) {
			t.Errorf("two live orders of a user: %v", err)
		}
		wantSold(t, s, "phone", 2)
	})
}

func TestStoreAuditFindsWhatIsWrong(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 3, 5, 5))
		save(t, s, sellOut("watch", 1, 5))
		orders := grabs("phone", 0, 4)
		for i := range orders {
			orders[i].Qty = int64(i%2) + 1
		}
		write(t, s, orders...)
		write(t, s, grabs("watch", 0, 2)...)
		sound := StoreAudit{Items: []ItemAudit{
			{Item: "black", Total: 5, Sold: 4, Live: 4}, // the fourth order is rejected
			{Item: "white", Total: 5},
		}}
		audit, err := s.Audit(t.Context(), "phone")
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "the audit of a sound sale", audit, sound)

		for _, tamper := range []struct {
			statement, undo string
			want            StoreAudit
		}{
			{"UPDATE items SET sold = 1 WHERE item_id = 'white'", "UPDATE items SET sold = 0 WHERE item_id = 'white'",
				StoreAudit{Items: []ItemAudit{sound.Items[0], {Item: "white", Total: 5, Sold: 1}}}},
			{"UPDATE orders SET qty = 3 WHERE user_id = 'user-2'", "UPDATE orders SET qty = 1 WHERE user_id = 'user-2'",
				StoreAudit{Items: []ItemAudit{{Item: "black", Total: 5, Sold: 4, Live: 6}, sound.Items[1]}}},
			{"UPDATE sales SET order_limit = 1", "UPDATE sales SET order_limit = 3",
				StoreAudit{Items: sound.Items, OverLimit: []string{grab("phone", 1).ID}}},
		} {
			for _, step := range []struct {
				statement string
				want      StoreAudit
			}{{tamper.statement, tamper.want}, {tamper.undo, sound}} {
				if _, err := s.writer.ExecContext(t.Context(), step.statement); err != nil {
					t.Fatal(err)
				}
				audit, err := s.Audit(t.Context(), "phone")
				if err != nil {
					t.Fatal(err)
				}
				wantSame(t, "the audit after "+step.statement, audit, step.want)
				if audit.Sound() != (step.statement == tamper.undo) {
					t.Errorf("after %s the audit is sound: %t", step.statement, audit.Sound())
				}
			}
		}
		wantSold(t, s, "watch", 2)
	})
}

func TestStoreAuditFindsUsersWithTwoLiveOrders(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		drop, possible := map[string]string{ // SQLite cannot drop a constraint
			"mysql":    "ALTER TABLE orders DROP INDEX orders_one_live",
			"postgres": "ALTER TABLE orders DROP CONSTRAINT orders_one_live",
		}[s.Dialect()]
		if !possible {
			return
		}
		save(t, s, sellOut("phone", 1, 5))
		write(t, s, grabs("phone", 0, 3)...)
		if _, err := s.db.ExecContext(t.Context(), drop); err != nil {
			t.Fatal(err)
		}
		second := grab("phone", 3)
		second.User = "user-1"
		write(t, s, second)
		audit, err := s.Audit(t.Context(), "phone")
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "the users with two live orders", audit.Doubles, []string{"user-1"})
		if audit.Sound() {
			t.Error("the audit is sound")
		}
	})
}

func TestStoreAuditSeesOneMoment(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 200, 200))
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 40 {
				orders := grabs("phone", i*5, i*5+5)
				orders[i%5].Item = "white"
				accepted(t, s, orders)
				if _, err := s.Transition(t.Context(), orders[0].ID, queue.Confirmed, queue.Cancelled, opening); err != nil {
					t.Error(err)
				}
			}
		}()
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			audit, err := s.Audit(t.Context(), "phone")
			if err != nil {
				t.Fatal(err)
			}
			if !audit.Sound() {
				t.Fatalf("an audit between transactions: %+v", audit)
			}
		}
	})
}
