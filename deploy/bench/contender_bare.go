package main

import (
	"runtime"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// bare is the floor for a hub on gorilla/websocket: one goroutine a connection that only reads, small buffers, a pool of
// write buffers, one encoding of a message for all, and no session: no key, no queue, no heartbeat, no limits.
type bare struct {
	mu  sync.RWMutex
	all map[*websocket.Conn]*sync.Mutex
}

func newBare() *bare { return &bare{all: map[*websocket.Conn]*sync.Mutex{}} }

func (b *bare) upgrader() *websocket.Upgrader {
	return &websocket.Upgrader{ReadBufferSize: 512, WriteBufferSize: 1024, WriteBufferPool: new(sync.Pool)}
}

func (b *bare) accept(conn *websocket.Conn) {
	b.mu.Lock()
	b.all[conn] = new(sync.Mutex)
	b.mu.Unlock()
	go func() {
		for {
			if _, _, err := conn.NextReader(); err != nil {
				break
			}
		}
		b.mu.Lock()
		delete(b.all, conn)
		b.mu.Unlock()
		conn.Close()
	}()
}

func (b *bare) broadcast(message []byte) {
	pm, err := websocket.NewPreparedMessage(websocket.TextMessage, message)
	if err != nil {
		return
	}
	b.mu.RLock()
	type member struct {
		conn *websocket.Conn
		mu   *sync.Mutex
	}
	list := make([]member, 0, len(b.all))
	for conn, mu := range b.all {
		list = append(list, member{conn, mu})
	}
	b.mu.RUnlock()
	var group sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		group.Go(func() {
			for i := w; i < len(list); i += workers {
				m := list[i]
				m.mu.Lock()
				_ = m.conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
				_ = m.conn.WritePreparedMessage(pm)
				m.mu.Unlock()
			}
		})
	}
	group.Wait()
}
