package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"sluice/queue"
)

// reloadEvery is how often a node asks which sales there are.
const reloadEvery = time.Second

// registry keeps a room for every sale. It satisfies Snapshots.
type registry struct {
	server *Server
	wanted chan string // sales that somebody asks for before the next reload
	over   chan string // sales whose watcher found them archived

	mu    sync.RWMutex
	rooms map[string]*openRoom
}

// openRoom is a room whose watcher runs.
type openRoom struct {
	*room
	stop context.CancelFunc
	done chan struct{}
}

func newRegistry(s *Server) *registry {
	return &registry{server: s, wanted: make(chan string), over: make(chan string), rooms: map[string]*openRoom{}}
}

// Snapshot is the newest of a sale, nil when it is unknown or not read yet.
func (g *registry) Snapshot(sale string) *queue.Snapshot {
	if r := g.room(sale); r != nil {
		return r.watch.Snapshot()
	}
	return nil
}

// All are the newest of all sales that were read.
func (g *registry) All() []*queue.Snapshot {
	g.mu.RLock()
	defer g.mu.RUnlock()
	snaps := make([]*queue.Snapshot, 0, len(g.rooms))
	for _, r := range g.rooms {
		if snap := r.watch.Snapshot(); snap != nil {
			snaps = append(snaps, snap)
		}
	}
	return snaps
}

// room returns the room of a sale, nil when this node knows of no such sale.
func (g *registry) room(sale string) *room {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if r := g.rooms[sale]; r != nil {
		return r.room
	}
	return nil
}

// Kick makes the next tick of a sale come at once, for somebody who changed it and wants to see that.
func (g *registry) Kick(sale string) {
	if r := g.room(sale); r != nil {
		r.watch.Kick()
	}
}

// shoppers are how many sessions each sale has here.
func (g *registry) shoppers() map[string]int64 {
	g.mu.RLock()
	defer g.mu.RUnlock()
	counts := make(map[string]int64, len(g.rooms))
	for id, r := range g.rooms {
		counts[id] = r.room.shoppers.Load()
	}
	return counts
}

// leaseAge is how long ago, in seconds, the sale that was ticked longest ago was; 0 without a sale.
func (g *registry) leaseAge() float64 {
	g.mu.RLock()
	defer g.mu.RUnlock()
	var oldest time.Duration
	for _, r := range g.rooms {
		oldest = max(oldest, r.watch.Age())
	}
	return oldest.Seconds()
}

// await opens the room of a sale that exists, without waiting for the next reload, and waits until it was read once. It
// returns nil when ctx ends first.
func (g *registry) await(ctx context.Context, sale string) *queue.Snapshot {
	for {
		r := g.room(sale)
		if r == nil {
			select {
			case g.wanted <- sale:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		select {
		case <-r.watch.First():
			return r.watch.Snapshot()
		case <-ctx.Done():
			return nil
		}
	}
}

// run opens and closes rooms as sales come and go, until ctx ends; then it closes all. Trouble with Redis is logged by
// the watchers; rooms that are open stay.
func (g *registry) run(ctx context.Context) {
	ticker := time.NewTicker(reloadEvery)
	defer ticker.Stop()
	g.reload(ctx)
	for {
		select {
		case <-ctx.Done():
			g.closeAll()
			return
		case sale := <-g.wanted:
			g.mu.Lock()
			g.openLocked(ctx, sale)
			g.mu.Unlock()
		case sale := <-g.over:
			g.mu.Lock()
			g.closeLocked(sale)
			g.mu.Unlock()
		case <-ticker.C:
			g.reload(ctx)
		}
	}
}

// reload opens the rooms of new sales and closes those of sales that are gone. While Redis is away the rooms stay, and so
// do those of sales that Redis lost: their shoppers are to hear when they are put right.
func (g *registry) reload(ctx context.Context) {
	ids, err := g.server.opts.Queue.Sales(ctx)
	if err != nil {
		return
	}
	gone := g.gone(ctx, ids)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range ids {
		g.openLocked(ctx, id)
	}
	for _, id := range gone {
		g.closeLocked(id)
	}
}

// closeLocked ends the room of a sale that is no more, if there is one.
func (g *registry) closeLocked(id string) {
	r := g.rooms[id]
	if r == nil {
		return
	}
	r.stop()
	r.end()
	delete(g.rooms, id)
}

// gone are the sales that have a room and are neither among those of Redis nor in the database. It may block on the
// database; rooms come and go only by run, so what it returns still holds when it is used.
func (g *registry) gone(ctx context.Context, known []string) []string {
	g.mu.RLock()
	var missing []string
	for id := range g.rooms {
		if !slices.Contains(known, id) {
			missing = append(missing, id)
		}
	}
	g.mu.RUnlock()
	return slices.DeleteFunc(missing, func(id string) bool {
		lost, err := g.server.catalog.has(ctx, id)
		return lost || err != nil
	})
}

// openLocked starts the room of a sale unless it runs.
func (g *registry) openLocked(ctx context.Context, id string) {
	if g.rooms[id] != nil {
		return
	}
	s := g.server
	ctx, cancel := context.WithCancel(ctx)
	r := &openRoom{
		room: newRoom(id, s.opts.Queue, s.line, s.passes, s.presentOrder, s.fate, s.log),
		stop: cancel,
		done: make(chan struct{}),
	}
	r.tracer = s.opts.Tracer
	r.draw = func() { s.drawer.wake(id) }
	r.turned = func(given int64) { s.counted.turned.Observe(float64(s.now().UnixMilli()-given) / 1000) }
	g.rooms[id] = r
	go func() {
		defer close(r.done)
		if !queue.IsOver(r.watch.Run(ctx)) {
			return // it ends with ctx, and logs its own trouble
		}
		select {
		case g.over <- id:
		case <-ctx.Done():
		}
	}()
}

func (g *registry) closeAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.rooms {
		r.stop()
		<-r.done
	}
}
