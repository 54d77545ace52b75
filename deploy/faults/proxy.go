package main

import (
	"net"
	"sync"
	"time"
)

// proxy stands between sluice and a service and loses, delays and cuts what passes.
type proxy struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	pairs map[net.Conn]net.Conn // ours to theirs
	delay time.Duration         // of what the service answers
	mute  bool                  // what the service answers is lost; it hears everything
	down  bool                  // nobody gets through
}

func newProxy(target string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, target: target, pairs: map[net.Conn]net.Conn{}}
	go p.serve()
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) close() {
	_ = p.listener.Close()
	p.cut()
}

func (p *proxy) serve() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.connect(near)
	}
}

func (p *proxy) connect(near net.Conn) {
	far, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = near.Close()
		return
	}
	p.mu.Lock()
	if p.down {
		p.mu.Unlock()
		_, _ = near.Close(), far.Close()
		return
	}
	p.pairs[near] = far
	p.mu.Unlock()
	go func() {
		p.pipe(far, near, false)
		p.forget(near)
	}()
	p.pipe(near, far, true)
	p.forget(near)
}

func (p *proxy) forget(near net.Conn) {
	p.mu.Lock()
	far := p.pairs[near]
	delete(p.pairs, near)
	p.mu.Unlock()
	_ = near.Close()
	if far != nil {
		_ = far.Close()
	}
}

// pipe copies until one side ends. Only answers are lost and delayed: what was asked is always done.
func (p *proxy) pipe(to, from net.Conn, answers bool) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && answers {
			p.mu.Lock()
			delay, mute := p.delay, p.mute
			p.mu.Unlock()
			if delay > 0 {
				time.Sleep(delay)
			}
			if mute {
				continue
			}
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for near, far := range p.pairs {
		_, _ = near.Close(), far.Close()
	}
	clear(p.pairs)
}

// set changes how it behaves.
func (p *proxy) set(change func(*proxy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}
