package server

import (
	"context"
	"sync"
	"time"

	"sluice/queue"
)

// reloadEvery is how often a node asks which sales there are.
const reloadEvery = time.Second

// registry keeps a room for every sale. It satisfies Snapshots.
type registry struct {
	server *Server

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
	return &registry{server: s, rooms: map[string]*openRoom{}}
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

// AwaitSale waits until this node has read the sale and shoppers can join it. It returns ctx's error when that ends
// first.
func (s *Server) AwaitSale(ctx context.Context, sale string) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if snap := s.opts.Snapshots.Snapshot(sale); snap != nil && snap.State != queue.Recovering {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// run opens and closes rooms as sales come and go, until ctx ends; then it closes all. Trouble with Redis is logged by
// the watchers; rooms that are open stay.
func (g *registry) run(ctx context.Context) {
	ticker := time.NewTicker(reloadEvery)
	defer ticker.Stop()
	for {
		if ids, err := g.server.opts.Queue.Sales(ctx); err == nil {
			g.reload(ctx, ids)
		}
		select {
		case <-ctx.Done():
			g.closeAll()
			return
		case <-ticker.C:
		}
	}
}

func (g *registry) reload(ctx context.Context, ids []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := make(map[string]bool, len(ids))
	for _, id := range ids {
		known[id] = true
		g.openLocked(ctx, id)
	}
	for id, r := range g.rooms {
		if !known[id] {
			r.stop()
			delete(g.rooms, id)
		}
	}
}

// openLocked starts the room of a sale unless it runs.
func (g *registry) openLocked(ctx context.Context, id string) {
	if g.rooms[id] != nil {
		return
	}
	s := g.server
	ctx, cancel := context.WithCancel(ctx)
	r := &openRoom{
		room: newRoom(id, s.opts.Hub, s.opts.Queue, s.line, s.presentOrder, s.log),
		stop: cancel,
		done: make(chan struct{}),
	}
	g.rooms[id] = r
	go func() {
		defer close(r.done)
		_ = r.watch.Run(ctx) // it ends with ctx, and logs its own trouble
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
