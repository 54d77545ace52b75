package worker

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"sluice/queue"
)

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(time.Minute)
	for !is() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// receive waits for a value.
func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(time.Minute):
		t.Fatalf("waited in vain: %s", what)
		panic("unreachable")
	}
}

// start runs something that ends with its context, and returns what ends it and waits for that. It is also ended after
// the test.
func start(t *testing.T, run func(context.Context)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return stop
}

var quiet = slog.New(slog.DiscardHandler)

const (
	info = slog.LevelInfo
	warn = slog.LevelWarn
)

func slogOf(book *logBook) *slog.Logger { return slog.New(book) }

// logBook is a log handler that counts what was logged at each level.
type logBook struct {
	mu     sync.Mutex
	levels map[slog.Level]int
}

func (b *logBook) Enabled(context.Context, slog.Level) bool { return true }
func (b *logBook) WithAttrs([]slog.Attr) slog.Handler       { return b }
func (b *logBook) WithGroup(string) slog.Handler            { return b }
func (b *logBook) Handle(_ context.Context, record slog.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.levels == nil {
		b.levels = map[slog.Level]int{}
	}
	b.levels[record.Level]++
	return nil
}

func (b *logBook) count(level slog.Level) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.levels[level]
}

// rabbitURL is the RabbitMQ server for tests.
func rabbitURL(t *testing.T) string {
	t.Helper()
	server := os.Getenv("SLUICE_TEST_AMQP")
	if server == "" {
		t.Fatal("SLUICE_TEST_AMQP is not set; run the tests with: make test")
	}
	return server
}

// rabbit is a broker with names of its own, and a connection of the test's own to look behind it.
type rabbit struct {
	*AMQP
	t  *testing.T
	ch *amqp.Channel
}

// newRabbit makes a broker at a URL, which may be that of a proxy. Its queues are deleted after the test.
func newRabbit(t *testing.T, url string, opts AMQPOptions) *rabbit {
	t.Helper()
	opts.Prefix = fmt.Sprintf("test-%016x-", rand.Uint64())
	if opts.Logger == nil {
		opts.Logger = quiet
	}
	broker, err := NewAMQP(url, opts)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := amqp.Dial(rabbitURL(t))
	if err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.declare(conn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		broker.Close()
		_ = conn.Close()
		conn, err := amqp.Dial(rabbitURL(t))
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		ch, err := conn.Channel()
		if err != nil {
			t.Error(err)
			return
		}
		for _, name := range []string{broker.orders(), broker.dead()} {
			if _, err := ch.QueueDelete(name, false, false, false); err != nil {
				t.Error(err)
			}
			if err := ch.ExchangeDelete(name, false, false); err != nil {
				t.Error(err)
			}
		}
	})
	return &rabbit{broker, t, ch}
}

// ready is how many messages of a queue wait for a consumer. None of those in the hands of one count.
func (r *rabbit) ready(name string) int {
	r.t.Helper()
	q, err := r.ch.QueueDeclarePassive(name, true, false, false, false, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return q.Messages
}

// take removes and returns all messages of a queue.
func (r *rabbit) take(name string) []amqp.Delivery {
	r.t.Helper()
	var messages []amqp.Delivery
	for {
		message, ok, err := r.ch.Get(name, true)
		if err != nil {
			r.t.Fatal(err)
		}
		if !ok {
			return messages
		}
		messages = append(messages, message)
	}
}

// send puts bytes into the queue of orders.
func (r *rabbit) send(id string, body []byte) {
	r.t.Helper()
	if err := r.ch.Publish(r.orders(), r.orders(), true, false, amqp.Publishing{MessageId: id, Body: body}); err != nil {
		r.t.Fatal(err)
	}
}

// publishAll publishes orders and waits until all of them are safe.
func publishAll(t *testing.T, broker publisher, orders ...queue.Order) {
	t.Helper()
	settled := make(chan error, len(orders))
	for _, order := range orders {
		if err := broker.Publish(t.Context(), order, func(err error) { settled <- err }); err != nil {
			t.Fatal(err)
		}
	}
	for range orders {
		if err := receive(t, "a confirm", settled); err != nil {
			t.Fatal(err)
		}
	}
}

// proxy stands between a broker and RabbitMQ, and is the network's bad days.
type proxy struct {
	t       *testing.T
	server  *url.URL
	address string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]net.Conn // client's → server's
	muted    bool
	frozen   chan struct{} // closed when frozen
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	server, err := url.Parse(rabbitURL(t))
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, server: server, address: "127.0.0.1:0", conns: map[net.Conn]net.Conn{}, frozen: make(chan struct{})}
	p.up()
	t.Cleanup(p.down)
	return p
}

// url is how to reach the server through the proxy.
func (p *proxy) url() string {
	through := *p.server
	through.Host = p.address
	return through.String()
}

// up begins to accept connections, at the same address as before.
func (p *proxy) up() {
	p.t.Helper()
	var listener net.Listener
	eventually(p.t, "the proxy has its port", func() (ok bool) {
		var err error
		listener, err = net.Listen("tcp", p.address)
		return err == nil
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener, p.address = listener, listener.Addr().String()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", p.server.Host)
			if err != nil {
				client.Close()
				continue
			}
			p.mu.Lock()
			if p.listener != listener { // it went down meanwhile
				client.Close()
				server.Close()
			}
			p.conns[client] = server
			p.mu.Unlock()
			go p.carry(server, client, false)
			go p.carry(client, server, true)
		}
	}()
}

// carry copies one direction of a connection.
func (p *proxy) carry(to, from net.Conn, fromServer bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-p.frozen:
			<-p.t.Context().Done()
			return
		default:
		}
		if n > 0 {
			p.mu.Lock()
			if !(fromServer && p.muted) {
				_, err = to.Write(buffer[:n])
			}
			p.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// carries counts the connections through the proxy.
func (p *proxy) carries() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// mute loses all that the server says, or ends that.
func (p *proxy) mute(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.muted = on
}

// freeze stops reading from both sides, for good.
func (p *proxy) freeze() { close(p.frozen) }

// say puts bytes into every connection as if the server had sent them.
func (p *proxy) say(frame []byte) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for client := range p.conns {
		if _, err := client.Write(frame); err != nil && err != io.ErrClosedPipe {
			p.t.Log(err)
		}
	}
}

// cut cuts all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for client, server := range p.conns {
		client.Close()
		server.Close()
		delete(p.conns, client)
	}
}

// down cuts all connections and refuses others.
func (p *proxy) down() {
	p.mu.Lock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	p.mu.Unlock()
	p.cut()
}
