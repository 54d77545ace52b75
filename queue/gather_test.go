package queue

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestARequestWhoseTimeHasPassedIsNotMade: whoever waited too long behind others hears so, and nothing was asked for them.
func TestARequestWhoseTimeHasPassedIsNotMade(t *testing.T) {
	t.Parallel()
	var made []int
	g := newGather(8, func(_ context.Context, args []int) ([]int, []error) {
		made = append(made, args...)
		return args, make([]error, len(args))
	})
	g.flights = gatherFlights // nothing starts yet: both wait for the same call
	late, inTime := make(chan error, 1), make(chan error, 1)
	g.start(request[int, int]{arg: 1, by: time.Now().Add(-time.Second), then: func(_ int, err error) { late <- err }})
	g.start(request[int, int]{arg: 2, by: time.Now().Add(time.Hour), then: func(_ int, err error) { inTime <- err }})
	g.fly()
	if err := <-late; !errors.Is(err, errLate) {
		t.Errorf("the late one got %v", err)
	}
	if err := <-inTime; err != nil {
		t.Errorf("the other one got %v", err)
	}
	if len(made) != 1 || made[0] != 2 {
		t.Errorf("asked for %v, want only the one in time", made)
	}
}
