package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sluice/server"
)

// peersCmd holds connections to a server and tells what came over them. It obeys orders, one a line of JSON on its
// standard input, and answers each with one line.
type peersCmd struct {
	URL    string   `required:"" help:"ws URL."`
	Speak  string   `enum:"sluice,centrifugo,plain" default:"plain" help:"What to say first."`
	Secret string   `help:"Signs the tokens of shoppers."`
	Prefix string   `default:"peer" help:"Shoppers are PREFIX-1 and so on."`
	Source []string `required:"" help:"Local addresses to connect from, in turn."`
	Dials  int      `default:"32" help:"Handshakes at once."`
}

// order is what the bench tells its peers to do.
type order struct {
	Do     string `json:"do"` // connect, watch, wait, status
	N      int    `json:"n,omitempty"`
	Frames int    `json:"frames,omitempty"` // of connect: frames after which a peer counts as there; of watch: frames to come to each
	Needle string `json:"needle,omitempty"` // of watch: what such a frame holds; "" = any
}

// told is the answer to an order.
type told struct {
	Error string  `json:"error,omitempty"`
	Open  int     `json:"open"`
	Lost  int     `json:"lost"`
	Again int     `json:"again,omitempty"` // hellos that had to be said again
	Why   string  `json:"why,omitempty"`   // the first was lost
	Took  float64 `json:"took,omitempty"`  // of connect: seconds
	First int64   `json:"first,omitempty"` // of wait, in Unix nanoseconds: when the first frame came to anyone
	Mid   int64   `json:"mid,omitempty"`   // when half of the peers had all theirs
	P99   int64   `json:"p99,omitempty"`
	Last  int64   `json:"last,omitempty"`
}

// peer is one connection.
type peer struct {
	fd     int
	carry  []byte // the begun frame of the last read
	frames int    // counted towards what is watched for
	had    bool   // all of them came
	heard  string // what came last while more is to come
	hello  []byte // what it said first, until that was heard out
}

// peers are all connections of this process.
type peers struct {
	cmd       peersCmd
	remote    *net.TCPAddr
	handshake []byte
	epoll     int

	mu      sync.Mutex
	all     map[int]*peer // by descriptor
	lost    int
	why     string // the first was lost
	again   int    // hellos that had to be said again
	needle  []byte
	want    int // frames to each
	begun   int64
	reached []int64 // when each peer had its frames
	changed chan struct{}
	next    atomic.Int64
}

// Run obeys until its standard input ends.
func (c *peersCmd) Run(std *stdio) error {
	u, err := url.Parse(c.URL)
	if err != nil {
		return err
	}
	remote, err := net.ResolveTCPAddr("tcp4", u.Host)
	if err != nil {
		return err
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	p := &peers{cmd: *c, remote: remote, epoll: epoll, all: map[int]*peer{}, changed: make(chan struct{}, 1)}
	p.handshake = []byte("GET " + u.RequestURI() + " HTTP/1.1\r\nHost: " + u.Host + "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c2x1aWNlLWJlbmNoLWtleQ==\r\n" + map[string]string{"sluice": "Sec-WebSocket-Protocol: sluice.v1\r\n"}[c.Speak] + "\r\n")
	go p.listen()

	out := json.NewEncoder(std.out)
	in := bufio.NewReader(std.in)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var o order
		if err := json.Unmarshal(line, &o); err != nil {
			return err
		}
		answer := p.obey(o)
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
}

func (p *peers) obey(o order) told {
	var answer told
	var err error
	switch o.Do {
	case "connect":
		answer, err = p.connect(o.N, o.Frames)
	case "watch":
		p.watch(o.Needle, o.Frames)
	case "wait":
		answer, err = p.wait()
	case "status":
	default:
		err = fmt.Errorf("unknown order %q", o.Do)
	}
	if err != nil {
		answer.Error = err.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	answer.Open, answer.Lost, answer.Why, answer.Again = len(p.all), p.lost, p.why, p.again
	return answer
}

// connect makes n connections and waits until each had its first frames.
func (p *peers) connect(n, frames int) (told, error) {
	hellos := make([][]byte, n)
	first := p.next.Add(int64(n)) - int64(n) + 1
	for i := range hellos {
		hello, err := p.hello(first + int64(i))
		if err != nil {
			return told{}, err
		}
		hellos[i] = hello
	}
	p.mu.Lock()
	p.want, p.needle, p.reached, p.begun = frames, nil, nil, 0
	p.mu.Unlock()
	begun := time.Now()
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var group sync.WaitGroup
	for range min(p.cmd.Dials, n) {
		group.Go(func() {
			for i := next.Add(1); i <= int64(n) && failed.Load() == nil; i = next.Add(1) {
				local := &net.TCPAddr{IP: net.ParseIP(p.cmd.Source[int(i)%len(p.cmd.Source)])}
				fd, rest, err := dialFrom(local, p.remote, p.handshake, hellos[i-1])
				if err == nil {
					err = p.add(fd, hellos[i-1], rest)
				}
				if err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return told{}, *err
	}
	if frames > 0 {
		if err := p.await(func() bool { return len(p.reached) >= n || p.lost > 0 }); err != nil {
			return told{}, err
		}
	}
	return told{Took: time.Since(begun).Seconds()}, nil
}

// hello is what the peer with that number says first; nil where the peers of this server say nothing.
func (p *peers) hello(n int64) ([]byte, error) {
	switch p.cmd.Speak {
	case "sluice":
		token, err := server.MintJWT([]byte(p.cmd.Secret), fmt.Sprintf("%s-%d", p.cmd.Prefix, n), time.Now().Add(24*time.Hour))
		return clientFrame(opText, []byte(`{"type":"hello","token":"`+token+`"}`)), err
	case "centrifugo":
		return clientFrame(opText, []byte(`{"id":1,"connect":{}}`+"\n"+`{"id":2,"subscribe":{"channel":"sale"}}`)), nil
	}
	return nil, nil
}

func (p *peers) add(fd int, hello, rest []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &peer{fd: fd, hello: hello}
	if p.begun == 0 {
		p.begun = time.Now().UnixNano()
	}
	p.all[fd] = c
	p.take(c, rest)
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP, Fd: int32(fd)})
}

// watch counts frames from now on.
func (p *peers) watch(needle string, frames int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.needle, p.want, p.reached, p.begun = []byte(needle), frames, nil, 0
	for _, c := range p.all {
		c.frames, c.had, c.heard = 0, false, ""
	}
}

// wait blocks until every peer had the frames that are watched for.
func (p *peers) wait() (told, error) {
	if err := p.await(func() bool { return len(p.reached) >= len(p.all) || p.lost > 0 }); err != nil {
		return told{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(p.reached)
	at := func(q float64) int64 { return p.reached[min(int(q*float64(len(p.reached))), len(p.reached)-1)] }
	if len(p.reached) == 0 {
		return told{}, errors.New("all peers were lost")
	}
	return told{First: p.begun, Mid: at(0.5), P99: at(0.99), Last: at(1)}, nil
}

// await blocks until ready, which is asked under mu, at most two minutes.
func (p *peers) await(ready func() bool) error {
	patience := time.After(2 * time.Minute)
	for {
		p.mu.Lock()
		ok, reached, open := ready(), len(p.reached), len(p.all)
		p.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-p.changed:
		case <-patience:
			return fmt.Errorf("after two minutes %d of %d peers had their frames; another had %s", reached, open, p.lacking())
		}
	}
}

// lacking says what a peer that still waits for frames has heard.
func (p *peers) lacking() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.all {
		if !c.had {
			return fmt.Sprintf("%d, and %d bytes of one, the last %q", c.frames, len(c.carry), c.heard)
		}
	}
	return "all of them by now"
}

// listen reads from all connections.
func (p *peers) listen() {
	events := make([]unix.EpollEvent, 1024)
	buffer := make([]byte, 64<<10)
	for {
		n, err := unix.EpollWait(p.epoll, events, -1)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			panic(err) // the descriptor is wrong: a fault of this program
		}
		p.mu.Lock()
		for _, event := range events[:max(n, 0)] {
			if c := p.all[int(event.Fd)]; c != nil {
				p.read(c, buffer)
			}
		}
		p.mu.Unlock()
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
}

// read takes what one connection has; under mu.
func (p *peers) read(c *peer, buffer []byte) {
	n, err := unix.Read(c.fd, buffer)
	switch {
	case errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR):
	case err != nil || n == 0:
		p.lose(c, fmt.Sprintf("read: %d bytes, %v", n, err))
	default:
		p.take(c, buffer[:n])
	}
}

// take handles the frames in data; under mu.
func (p *peers) take(c *peer, data []byte) {
	if len(c.carry) > 0 {
		data = append(c.carry, data...)
		c.carry = nil
	}
	for {
		op, payload, rest, ok := cutFrame(data)
		if !ok {
			break
		}
		data = rest
		switch op {
		case opText:
			if bytes.Equal(payload, []byte("{}")) && p.cmd.Speak == "centrifugo" {
				p.answer(c, clientFrame(opText, payload)) // its ping and pong are messages
				continue
			}
			p.count(c, payload)
		case opPing:
			p.answer(c, clientFrame(opPong, payload))
		case opClose:
			p.lose(c, fmt.Sprintf("closed by the server: %q", payload))
			return
		}
	}
	if len(data) > 0 {
		c.carry = bytes.Clone(data)
	}
}

func (p *peers) count(c *peer, payload []byte) {
	if len(p.needle) > 0 && !bytes.Contains(payload, p.needle) {
		return
	}
	if wait, refused := refusal(payload); refused && !c.had && p.cmd.Speak == "sluice" {
		c.heard = string(payload)
		time.AfterFunc(wait, func() { p.greetAgain(c) })
		return
	}
	now := time.Now().UnixNano()
	if p.begun == 0 {
		p.begun = now
	}
	// Several messages may come in one frame, a line each.
	if p.cmd.Speak == "centrifugo" {
		c.frames += bytes.Count(bytes.TrimSpace(payload), []byte("\n"))
	}
	c.frames++
	if c.frames >= p.want && !c.had {
		c.had, c.heard, c.hello = true, "", nil
		p.reached = append(p.reached, now)
	} else if !c.had {
		c.heard = string(payload[:min(len(payload), 200)])
	}
}

// refusal says whether a node could not take a hello just now, and for how long to wait.
func refusal(payload []byte) (time.Duration, bool) {
	if !bytes.HasPrefix(payload, []byte(`{"type":"error"`)) && !bytes.HasPrefix(payload, []byte(`{"type":"limited"`)) {
		return 0, false
	}
	var frame struct {
		RetryAfter int64 `json:"retry_after_ms"`
	}
	if err := json.Unmarshal(payload, &frame); err != nil || frame.RetryAfter <= 0 {
		return 0, false // it is none that waiting helps: the peer never has its frames, and its last is told
	}
	return time.Duration(frame.RetryAfter) * time.Millisecond, true
}

// greetAgain says hello again, as every client does that was asked to wait.
func (p *peers) greetAgain(c *peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[c.fd] == c && c.hello != nil {
		p.again++
		p.answer(c, c.hello)
	}
}

// answer writes a small frame. The socket has room for it, or the peer is lost anyway.
func (p *peers) answer(c *peer, frame []byte) {
	if _, err := unix.Write(c.fd, frame); err != nil {
		p.lose(c, fmt.Sprintf("answer: %v", err))
	}
}

func (p *peers) lose(c *peer, why string) {
	if p.all[c.fd] == c {
		if p.why == "" {
			p.why = why
		}
		delete(p.all, c.fd)
		p.lost++
		unix.Close(c.fd)
	}
}
