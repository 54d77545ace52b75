package worker

import (
	"reflect"
	"testing"

	"sluice/queue"
)

func TestStoreKeepsTheFirstOfEveryStepOfADraw(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		if _, there, err := s.DrawOf(t.Context(), "watch"); there || err != nil {
			t.Fatalf("a sale without a lottery has one: %v, %v", there, err)
		}
		made, err := s.MakeDraw(t.Context(), "watch", [32]byte{7}, queue.NoBeacon)
		if err != nil || made.Secret != [32]byte{7} || made.Frozen() || made.Drawn() {
			t.Fatalf("made %+v, %v", made, err)
		}
		if again, err := s.MakeDraw(t.Context(), "watch", [32]byte{8}, queue.NoBeacon); err != nil || again.Secret != [32]byte{7} {
			t.Fatalf("a second secret took its place: %+v, %v", again, err)
		}
		if reach, err := s.Reach(t.Context(), "watch"); err != nil || reach.Draw != nil {
			t.Fatalf("before the opening the reach has the draw %+v, %v", reach.Draw, err)
		}
		made.Tickets, made.Live, made.Dropouts, made.Ranks, made.Root = 9, 7, []byte{0, 255}, []byte{0, 3, 255}, [32]byte{1}
		frozen, err := s.FreezeDraw(t.Context(), made)
		if err != nil || !reflect.DeepEqual(frozen, made) {
			t.Fatalf("frozen %+v, want %+v, %v", frozen, made, err)
		}
		other := made
		other.Live, other.Root = 3, [32]byte{2}
		if again, err := s.FreezeDraw(t.Context(), other); err != nil || !reflect.DeepEqual(again, made) {
			t.Fatalf("freezing again made it %+v, %v", again, err)
		}
		frozen.Seed = [32]byte{3}
		if sealed, err := s.SealDraw(t.Context(), frozen); err != nil || !reflect.DeepEqual(sealed, frozen) {
			t.Fatalf("sealed %+v, %v", sealed, err)
		}
		other.Seed = [32]byte{4}
		if again, err := s.SealDraw(t.Context(), other); err != nil || again.Seed != frozen.Seed {
			t.Fatalf("sealing again made it %+v, %v", again, err)
		}
		cut, err := s.MakeDraw(t.Context(), "shoes", [32]byte{7}, queue.NoBeacon)
		if err != nil {
			t.Fatal(err)
		}
		cut.Root = [32]byte{5}
		if cut, err = s.FreezeDraw(t.Context(), cut); err != nil {
			t.Fatal(err)
		}
		if reach, err := s.Reach(t.Context(), "shoes"); err != nil || reach.Draw == nil || reach.Draw.Seed != queue.DrawSeed(cut.Secret, cut.Root, "") {
			t.Fatalf("of a draw that was cut off the reach has %+v, %v", reach.Draw, err)
		}
		if kept, _, err := s.DrawOf(t.Context(), "shoes"); err != nil || !kept.Drawn() {
			t.Fatalf("a draw that was cut off is kept as %+v, %v", kept, err)
		}
		if reach, err := s.Reach(t.Context(), "watch"); err != nil || reach.Draw == nil || !reflect.DeepEqual(*reach.Draw, frozen) {
			t.Fatalf("the reach has the draw %+v, %v", reach.Draw, err)
		}
	})
}
