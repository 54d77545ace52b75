package worker

import (
	"testing"

	"sluice/queue"
)

func TestStoreKeepsHowFarALineIsAndNeverGoesBack(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		for _, step := range []struct{ keep, want queue.Reach }{
			{queue.Reach{Epoch: 1, Issued: 10, Served: 2}, queue.Reach{Epoch: 1, Issued: 10, Served: 2}},
			{queue.Reach{Epoch: 1, Issued: 10, Served: 2, Paused: true}, queue.Reach{Epoch: 1, Issued: 10, Served: 2, Paused: true}},
			{queue.Reach{Epoch: 1, Issued: 9, Served: 2}, queue.Reach{Epoch: 1, Issued: 10, Served: 2, Paused: true}},
			{queue.Reach{Epoch: 1, Issued: 10, Served: 1}, queue.Reach{Epoch: 1, Issued: 10, Served: 2, Paused: true}},
			{queue.Reach{Epoch: 2, Issued: 3, Served: 1}, queue.Reach{Epoch: 2, Issued: 3, Served: 1}},
			{queue.Reach{Epoch: 1, Issued: 99, Served: 9}, queue.Reach{Epoch: 2, Issued: 3, Served: 1}},
		} {
			if err := s.KeepReach(t.Context(), "phone", step.keep); err != nil {
				t.Fatal(err)
			}
			got, err := s.Reach(t.Context(), "phone")
			if err != nil || got != step.want {
				t.Errorf("after keeping %+v: %+v, %v; want %+v", step.keep, got, err, step.want)
			}
		}
		if got, err := s.Reach(t.Context(), "watch"); err != nil || got != (queue.Reach{}) {
			t.Errorf("of another sale: %+v, %v", got, err)
		}
		together(8, func(i int) {
			if err := s.KeepReach(t.Context(), "shoes", queue.Reach{Epoch: 1, Issued: int64(i)}); err != nil {
				t.Error(err)
			}
		})
		if got, err := s.Reach(t.Context(), "shoes"); err != nil || got.Issued != 7 {
			t.Errorf("kept at once: %+v, %v", got, err)
		}
	})
}
