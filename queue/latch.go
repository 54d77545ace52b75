package queue

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// latchMost is how many buyers a node keeps to answer by itself; of a larger sale it asks Redis, as before.
	latchMost = 200_000
	// latchPage is about how many are read at once, so that no other command waits long.
	latchPage = 1000
	// latchAge is how old the last tick may be at most. It must be well below REST in the scripts: what comes back is not sold
	// until every node has looked again or stopped to answer by itself, whatever became of it meanwhile.
	latchAge = 500 * time.Millisecond
)

// latch lets a node answer grabs without asking Redis, of a sale without a line of which nothing is left. It is exact: a node that
// has seen the whole sale at zero reads all who have an order or had one, and if the next tick finds that no unit has come in
// since, nobody can have become a buyer meanwhile, nor become one before a unit does and has rested longer than any node believes
// its last tick. To everybody else it says "sold out"; those that it knows are answered by Redis, because they may be repeating
// the request that won.
//
// A sale with a line needs none: only those whose turn it is come as far as a grab.
type latch struct {
	closed atomic.Pointer[soldOut] // nil = open: Redis answers

	mu      sync.Mutex
	loading bool
	loaded  *soldOut // waits for a tick that began after it was read
}

// soldOut is a sale of which nothing is left.
type soldOut struct {
	supply int64 // counts what came in; see supply in the scripts
	stock  StockState
	buyers map[string]struct{} // by user: who has an order, or had one
	until  int64               // when this node stops to believe it, ns on its own monotonic clock
}

// latches are those of all sales of a node.
type latches struct {
	start time.Time
	mu    sync.RWMutex
	of    map[string]*latch
}

func (l *latches) get(sale string) *latch {
	l.mu.RLock()
	one := l.of[sale]
	l.mu.RUnlock()
	if one != nil {
		return one
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if one = l.of[sale]; one == nil {
		one = &latch{}
		l.of[sale] = one
	}
	return one
}

func (l *latches) now() int64 { return int64(time.Since(l.start)) }

// latched is what a node can say to a grab by itself; false = Redis must be asked.
func (q *Queue) latched(req *GrabRequest) (Grabbed, bool) {
	closed := q.latches.get(req.Sale).closed.Load()
	if closed == nil || q.latches.now() > closed.until {
		return Grabbed{}, false
	}
	if _, buyer := closed.buyers[req.User]; buyer {
		return Grabbed{}, false
	}
	return Grabbed{Result: SoldOut, Stock: closed.stock, State: Open}, true
}

// latch closes the latch of a sale, keeps it closed or opens it, as a tick that began at that moment of this node's clock
// saw the sale.
func (q *Queue) latch(ctx context.Context, s *Snapshot, supply, begun int64) {
	l := q.latches.get(s.Sale.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.State != Open || s.Units() > 0 || s.Sale.Line.Order != Off {
		l.closed.Store(nil)
		l.loaded = nil
		return
	}
	closed := l.closed.Load()
	if closed == nil {
		closed = l.loaded
	}
	if closed != nil && closed.supply == supply && closed.buyers != nil {
		l.closed.Store(&soldOut{supply: supply, stock: s.Stock, buyers: closed.buyers, until: begun + int64(latchAge)})
		l.loaded = nil
		return
	}
	if closed != nil && closed.supply == supply {
		return // too many buyers to keep
	}
	l.closed.Store(nil)
	l.loaded = nil
	if l.loading {
		return
	}
	l.loading = true
	go func() {
		buyers, err := q.buyers(context.WithoutCancel(ctx), s.Sale.ID)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.loading = false
		if err == nil { // else the next tick tries again
			l.loaded = &soldOut{supply: supply, buyers: buyers}
		}
	}()
}

// isClosed says whether this node answers for the sale.
func (l *latches) isClosed(sale string) bool { return l.get(sale).closed.Load() != nil }

// buyers reads all who have an order or had one; nil when they are too many.
func (q *Queue) buyers(ctx context.Context, sale string) (map[string]struct{}, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	k := keysOf(sale)
	users := map[string]struct{}{}
	for _, key := range []string{k.winners, k.past} {
		for cursor := uint64(0); ; {
			page, next, err := q.rdb.HScan(ctx, key, cursor, "", latchPage).Result()
			if err != nil {
				return nil, fmt.Errorf("read the buyers of sale %s: %w", sale, err)
			}
			for i := 0; i < len(page); i += 2 {
				users[page[i]] = struct{}{}
			}
			if len(users) > latchMost {
				return nil, nil
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
	}
	return users, nil
}
