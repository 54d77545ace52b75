package queue

import "context"

// NewTicker returns a function that makes one tick, for tests that drive the clock themselves.
func NewTicker(q *Queue, sale string) func(context.Context) (*Snapshot, error) {
	w := NewWatcher(q, sale, nil)
	return func(ctx context.Context) (*Snapshot, error) {
		if _, err := w.tick(ctx); err != nil {
			return nil, err
		}
		return w.Snapshot(), nil
	}
}
