package hub

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
)

func TestAKeyHasSoManySessionsAndNoMore(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{ConnsPerKey: 3})
	var visits []*visit
	for range 3 {
		v := s.dial()
		visits = append(visits, v)
		if err := v.session.Bind("sale", "seat"); err != nil {
			t.Fatal(err)
		}
	}
	extra := s.dial()
	if err := extra.session.Bind("sale", "seat"); !errors.Is(err, ErrTooMany) {
		t.Fatalf("a fourth session: %v", err)
	}
	if err := extra.session.Bind("another sale", "seat"); err != nil {
		t.Fatalf("the same key of another group: %v", err)
	}
	if n := s.hub.Count("sale", "seat"); n != 3 {
		t.Fatalf("%d sessions of the key", n)
	}
	// Whichever of the list ends, there is room for one again.
	for _, i := range []int{1, 0, 2} {
		visits[i].session.Close(1000, "")
		visits[i].ends(1000)
		if n := s.hub.Count("sale", "seat"); n != 2 {
			t.Fatalf("%d sessions of the key after one ended", n)
		}
		visits[i] = s.dial()
		if err := visits[i].session.Bind("sale", "seat"); err != nil {
			t.Fatalf("in place of one that ended: %v", err)
		}
	}
}

func TestTheLimitOfAKeyIsChangedWhileSessionsAreThere(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{ConnsPerKey: 2})
	bind := func() error { return s.dial().session.Bind("sale", "seat") }
	for _, step := range []struct {
		most   int
		passes int
	}{{2, 2}, {3, 1}, {1, 0}, {4, 1}} {
		s.hub.SetConnsPerKey(step.most)
		for range step.passes {
			if err := bind(); err != nil {
				t.Fatalf("at most %d: %v", step.most, err)
			}
		}
		if err := bind(); !errors.Is(err, ErrTooMany) {
			t.Fatalf("one more than %d: %v", step.most, err)
		}
	}
	if n := s.hub.Count("sale", "seat"); n != 4 {
		t.Fatalf("%d sessions of the key", n)
	}
}

func TestTheLimitOfAKeyHoldsAgainstARace(t *testing.T) {
	t.Parallel()
	const most = 4
	s := newSite(t, Options{ConnsPerKey: most})
	var group sync.WaitGroup
	errs := make(chan error, 3*most)
	for range 3 * most {
		session := s.dial().session
		group.Go(func() { errs <- session.Bind("sale", "seat") })
	}
	group.Wait()
	close(errs)
	bound := 0
	for err := range errs {
		switch {
		case err == nil:
			bound++
		case !errors.Is(err, ErrTooMany):
			t.Error(err)
		}
	}
	if bound != most || s.hub.Count("sale", "seat") != most {
		t.Errorf("%d were bound and %d are counted, want %d", bound, s.hub.Count("sale", "seat"), most)
	}
}

func TestAFrameReachesTheSessionsOfItsKeyOrGroupOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{Shards: 4})
	var visits []*visit
	for i := range 12 {
		v := s.dial()
		visits = append(visits, v)
		if err := v.session.Bind(fmt.Sprint("sale", i%2), fmt.Sprint("seat", i/4)); err != nil {
			t.Fatal(err)
		}
	}
	unbound := s.dial()
	if n := s.hub.Send("sale0", "seat1", NewFrame([]byte("key"))); n != 2 {
		t.Errorf("Send reached %d sessions, want 2", n)
	}
	if n := s.hub.Broadcast("sale0", NewFrame([]byte("group"))); n != 6 {
		t.Errorf("Broadcast reached %d sessions, want 6", n)
	}
	if n := s.hub.Send("sale2", "seat1", NewFrame([]byte("nobody"))) + s.hub.Broadcast("sale2", NewFrame([]byte("nobody"))); n != 0 {
		t.Errorf("%d sessions of a group without any", n)
	}
	for i, v := range append(visits, unbound) {
		want := ""
		if i == 4 || i == 6 {
			want += "key "
		}
		if i < 12 && i%2 == 0 {
			want += "group "
		}
		v.session.Close(1000, "")
		msgs, _ := v.ends(1000)
		got := ""
		for _, m := range msgs {
			got += m + " "
		}
		if got != want {
			t.Errorf("session %d received %q, want %q", i, got, want)
		}
	}
}

func TestASessionThatIsBoundAgainLeavesItsEarlierKey(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{ConnsPerKey: 1})
	v := s.dial()
	for _, key := range []string{"a", "a", "b", "c"} {
		if err := v.session.Bind("sale", key); err != nil {
			t.Fatal(err)
		}
		if v.session.Group() != "sale" || v.session.Key() != key {
			t.Fatalf("bound to %s/%s", v.session.Group(), v.session.Key())
		}
		n := 0
		for range s.hub.Sessions("sale") {
			n++
		}
		if n != 1 || s.hub.Count("sale", key) != 1 {
			t.Fatalf("%d sessions in the group, %d under the key", n, s.hub.Count("sale", key))
		}
	}
	v.session.Unbind()
	if n := s.hub.Broadcast("sale", NewFrame([]byte("x"))); n != 0 {
		t.Errorf("an unbound session was reached")
	}
	for _, d := range s.hub.shards {
		if len(d.groups) > 0 {
			t.Error("an empty group is kept")
		}
	}
}

func TestASessionKeepsItsValueAndItsID(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	a, b := s.dial().session, s.dial().session
	if a.Value() != nil {
		t.Error("there is a value from the start")
	}
	a.SetValue(7)
	if a.Value() != 7 || b.Value() != nil {
		t.Error("the value is not that of its session")
	}
	if a.ID() == b.ID() || a.ID() == "" {
		t.Errorf("ids %q and %q", a.ID(), b.ID())
	}
}

func TestLenCountsUntilTheEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	v := s.dial()
	s.dial()
	if n := s.hub.Len(); n != 2 {
		t.Errorf("Len is %d with two sessions", n)
	}
	if err := v.peer.WriteControl(websocket.CloseMessage, nil, deadline()); err != nil {
		t.Fatal(err)
	}
	v.ends(1000)
	eventually(t, "Len to be 1", func() bool { return s.hub.Len() == 1 })
}
