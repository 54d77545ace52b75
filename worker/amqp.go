package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"sluice/queue"
)

const (
	// dialTimeout bounds connecting to one node of RabbitMQ, the handshake and the declarations included.
	dialTimeout = 3 * time.Second
	// redialPause is the least time between two attempts to connect, however many ask for it.
	redialPause = 250 * time.Millisecond
	// closeTimeout bounds the polite way to close a connection.
	closeTimeout = time.Second
	// heartbeat is how often the two ends show that they live; a silent server is given up after three times that.
	// Shorter ones cut connections that are only slow.
	heartbeat = 3 * time.Second
	// confirmTimeout is how long a confirm may take while no alarm is raised. After that the session is given up.
	confirmTimeout = 10 * time.Second
	// refusalTimeout is how long a session that has taken something may then refuse whatever comes. After that it is
	// given up.
	refusalTimeout = time.Second
	// vainSessions is how many sessions that took nothing are given up one after the other at their first refusal; an election
	// takes less than so many need. Each one after them may refuse for fullPatience.
	vainSessions = 8
	fullPatience = 5 * time.Second
	// publishSlots is how many messages of all relays together may be unconfirmed.
	publishSlots = 2048
)

// AMQP is RabbitMQ as a broker. It connects when it is needed, and again after a failure; each connection is a session
// of its own that ends with it, for no delivery tag and no confirm means anything in another one. (The recovery that
// the client library offers keeps the same channel across connections, so that a late acknowledgement would hit another
// message; it is not used.) It works with RabbitMQ 3.10 and later, and uses nothing that 4.x has deprecated.
type AMQP struct {
	nodes          *amqpNodes
	opts           AMQPOptions
	confirmTimeout time.Duration

	holding holding // of the writers of this process

	mu       sync.Mutex
	session  *publishSession // for publishing; nil before the first
	failure  error           // of the last attempt to connect
	failedAt time.Time
	closed   bool
}

// AMQPOptions are the settings of an AMQP. The zero value is usable, but for the Logger.
type AMQPOptions struct {
	Logger *slog.Logger
	Node   string // names this process among RabbitMQ's connections

	// Prefix comes before the names of exchanges and queues, so that installations can share a virtual host.
	Prefix string
	// MaxLength is how many orders the queue holds at most. Beyond it RabbitMQ refuses them, and they stay in their
	// outboxes. 0 = as many as its disk holds. It cannot be changed for a queue that exists.
	MaxLength int64
}

// NewAMQP makes a broker of the RabbitMQ server at an amqp:// or amqps:// URL, or of a cluster at the URLs of its nodes
// with commas between them. When a node is away, the next one is connected to, and kept to from then on. NewAMQP checks
// the URLs, and does not connect. No error of it contains a password.
func NewAMQP(urls string, opts AMQPOptions) (*AMQP, error) {
	nodes, err := parseNodes(urls)
	if err != nil {
		return nil, err
	}
	return &AMQP{nodes: nodes, opts: opts, confirmTimeout: confirmTimeout}, nil
}

// Publish implements [Broker]. settled gets nil when a majority of the queue's replicas have the message on disk.
func (a *AMQP) Publish(ctx context.Context, order queue.Order, settled func(error)) error {
	body, err := encodeOrder(order)
	if err != nil {
		return err
	}
	session, err := a.publishing(ctx)
	if err != nil {
		return err
	}
	return session.publish(ctx, a.orders(), amqp.Publishing{
		MessageId:    order.ID,
		Type:         "order",
		ContentType:  "application/json",
		DeliveryMode: amqp.Persistent,
		Timestamp:    time.UnixMilli(order.CreatedAt),
		Headers:      headersOf(order),
		Body:         body,
	}, settled)
}

// Bury implements [Broker]. It publishes the message as it came to the queue of dead letters and waits for the confirm.
// The headers say why: x-reason is a sentence, and x-sale, x-item and x-user are of the order, if it could be read.
func (a *AMQP) Bury(ctx context.Context, letter DeadLetter) error {
	session, err := a.publishing(ctx)
	if err != nil {
		return fmt.Errorf("put a dead letter aside: %w", err)
	}
	headers := amqp.Table{"x-reason": letter.Reason}
	if letter.Err == nil {
		headers["x-sale"] = letter.Order.Sale
		headers["x-item"] = letter.Order.Item
		headers["x-user"] = letter.Order.User
	}
	if letter.Order.Trace != "" {
		headers[headerTrace] = letter.Order.Trace // whoever tries it again goes on with what began it
	}
	settled := make(chan error, 1)
	err = session.publish(ctx, a.dead(), amqp.Publishing{
		MessageId:    letter.ID,
		Type:         "order",
		ContentType:  "application/json",
		DeliveryMode: amqp.Persistent,
		Timestamp:    time.UnixMilli(letter.At),
		Headers:      headers,
		Body:         letter.Body,
	}, func(err error) { settled <- err })
	if err == nil {
		select {
		case err = <-settled:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return fmt.Errorf("put a dead letter aside: %w", err)
	}
	return nil
}

// DeadLetters implements [Broker].
func (a *AMQP) DeadLetters(ctx context.Context) (int64, error) {
	session, err := a.publishing(ctx)
	if err != nil {
		return 0, fmt.Errorf("count the dead letters: %w", err)
	}
	n, err := session.count(a.dead())
	if err != nil {
		return 0, fmt.Errorf("count the dead letters: %w", err)
	}
	return n, nil
}

// Waiting implements [Broker].
func (a *AMQP) Waiting(ctx context.Context) (int64, error) {
	session, err := a.publishing(ctx)
	if err != nil {
		return 0, fmt.Errorf("count the orders in the broker: %w", err)
	}
	n, err := session.count(a.orders())
	if err != nil {
		return 0, fmt.Errorf("count the orders in the broker: %w", err)
	}
	return n, nil
}

// Held implements [Broker].
func (a *AMQP) Held(before time.Time) map[string][]string { return a.holding.old(before) }

// Close ends the session for publishing. Feeds end by themselves.
func (a *AMQP) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.session != nil {
		a.session.stop()
	}
}

// publishing returns the session for publishing, which all relays share, and begins one if there is none.
func (a *AMQP) publishing(ctx context.Context) (*publishSession, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.session != nil && a.session.alive() {
		return a.session, nil
	}
	if a.closed {
		return nil, errSession
	}
	if a.failure != nil && time.Since(a.failedAt) < redialPause {
		return nil, a.failure
	}
	conn, err := a.dial(ctx, "relay")
	if err == nil {
		a.session, err = newPublishSession(conn, a.confirmTimeout, a.session.vain(), a.opts.Logger)
	}
	a.failure, a.failedAt = err, time.Now()
	if err != nil {
		return nil, err
	}
	return a.session, nil
}

// link is a connection to RabbitMQ, and the socket below it.
type link struct {
	*amqp.Connection
	socket net.Conn
}

// awayAMQP says where RabbitMQ was looked for, what came of it, and what to do.
func awayAMQP(url string, err error) error {
	away := &queue.Away{What: "RabbitMQ", Why: queue.NetworkCause(err), Do: "start it, or correct --amqp-url", Err: err}
	if uri, bad := amqp.ParseURI(url); bad == nil {
		away.Where = net.JoinHostPort(uri.Host, strconv.Itoa(uri.Port))
	}
	var said *amqp.Error
	switch {
	case errors.As(err, &said):
		away.Why, away.Do = said.Reason, "correct user, password and virtual host in --amqp-url"
	case away.Why == "":
		away.Why = err.Error()
	}
	return away
}

// dial connects to RabbitMQ and declares what this package uses there.
func (a *AMQP) dial(ctx context.Context, role string) (link, error) {
	return a.dialAnd(ctx, role, a.declare)
}

// Ping waits for a connection to RabbitMQ, until ctx ends at most. Its error is a [queue.Away].
func (a *AMQP) Ping(ctx context.Context) error {
	answer := make(chan error, 1)
	go func() { // somebody else may be trying one silent node after the other
		_, err := a.publishing(ctx)
		answer <- err
	}()
	select {
	case err := <-answer:
		var away *queue.Away
		if err != nil && !errors.As(err, &away) {
			err = a.nodes.away(err.Error(), "see what sluice doctor says of it", err)
		}
		return err
	case <-ctx.Done():
		return a.nodes.away("no connection in time", "start it, or correct --amqp-url", ctx.Err())
	}
}

// dialAnd connects to a node of RabbitMQ and begins with a first conversation; dialTimeout bounds both for each node that
// is tried.
func (a *AMQP) dialAnd(ctx context.Context, role string, first func(*amqp.Connection) error) (link, error) {
	return a.nodes.dial(ctx, func(url string) (link, error) { return a.dialNode(ctx, url, role, first) })
}

// dialNode is dialAnd for one node.
func (a *AMQP) dialNode(ctx context.Context, url, role string, first func(*amqp.Connection) error) (link, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var l link
	// Closing the socket is the only thing that bounds every step. It also happens after a step that failed.
	keep := func() bool { return false }
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName("sluice " + role + " " + a.opts.Node)
	var err error
	l.Connection, err = amqp.DialConfig(url, amqp.Config{
		Heartbeat:  heartbeat,
		Properties: properties,
		Dial: func(network, address string) (net.Conn, error) {
			socket, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			l.socket = socket
			keep = context.AfterFunc(ctx, func() { _ = socket.Close() })
			return socket, nil
		},
	})
	if err != nil {
		return link{}, awayAMQP(url, err)
	}
	if err := first(l.Connection); err != nil {
		return link{}, err
	}
	keep()
	return l, nil
}

// end closes the connection and everything that was made with it. It takes closeTimeout at most, even when the server
// neither reads nor answers: the library would wait for a write that hangs, with its locks held, and only closing the
// socket below it ends that.
func (l link) end() {
	timer := time.AfterFunc(closeTimeout, func() { _ = l.socket.Close() })
	defer timer.Stop()
	_ = l.Close()        // whatever it returns, the connection is not used any more
	_ = l.socket.Close() // the library may have left it to a write that hangs
}
