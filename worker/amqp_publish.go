package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// publishSession is one connection for publishing with confirms. Consumers have other connections, since RabbitMQ
// reads nothing from one that publishes while an alarm is raised, not even acknowledgements.
type publishSession struct {
	conn      link
	ch        *amqp.Channel
	timeout   time.Duration // how long a confirm may take
	before    int           // how many before it, in a row, were given up without having taken anything
	fruitless atomic.Bool   // so was this one
	log       *slog.Logger
	slots     chan struct{} // one for each unsettled message
	returns   chan amqp.Return
	blocked   atomic.Bool // an alarm is raised
	ended     chan struct{}

	mu      sync.Mutex
	stopped bool
	pending chan unconfirmed // in the order they were published; closed when stopped
}

// unconfirmed is a message that RabbitMQ has not answered for.
type unconfirmed struct {
	id       string
	answer   *amqp.DeferredConfirmation
	deadline time.Time
	settled  func(error)
}

// newPublishSession takes over a connection. It closes it on an error.
func newPublishSession(conn link, timeout time.Duration, before int, log *slog.Logger) (*publishSession, error) {
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		conn.end()
		return nil, fmt.Errorf("open a channel with confirms: %w", err)
	}
	s := &publishSession{
		conn:    conn,
		ch:      ch,
		timeout: timeout,
		before:  before,
		log:     log,
		slots:   make(chan struct{}, publishSlots),
		// Room for all that can be returned, so that the library's reader never waits for us.
		returns: ch.NotifyReturn(make(chan amqp.Return, publishSlots)),
		ended:   make(chan struct{}),
		pending: make(chan unconfirmed, publishSlots),
	}
	// The library closes these channels when the connection ends, for whatever reason.
	alarms := conn.NotifyBlocked(make(chan amqp.Blocking, 16))
	connEnd := conn.NotifyClose(make(chan *amqp.Error, 1))
	chEnd := ch.NotifyClose(make(chan *amqp.Error, 1))
	go s.watchAlarms(alarms)
	go func() {
		select {
		case <-connEnd:
		case <-chEnd:
		}
		s.stop()
	}()
	go s.collect()
	return s, nil
}

// alive says whether the session may be used. It may have ended in the next moment.
func (s *publishSession) alive() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// publish sends a message to the exchange and queue of that name. See [Broker].
func (s *publishSession) publish(ctx context.Context, to string, message amqp.Publishing, settled func(error)) error {
	if s.blocked.Load() {
		return errBlocked
	}
	select {
	case s.slots <- struct{}{}:
	case <-s.ended:
		return errSession
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		<-s.slots
		return errSession
	}
	answer, err := s.ch.PublishWithDeferredConfirm(to, to, true, false, message)
	if err != nil {
		<-s.slots
		go s.stop() // it needs the lock
		return fmt.Errorf("publish: %w", err)
	}
	s.pending <- unconfirmed{message.MessageId, answer, time.Now().Add(s.timeout), settled} // has room, as slots
	return nil
}

// vain is how many sessions in a row, up to this one, which may be nil, were given up without having taken anything.
func (s *publishSession) vain() int {
	if s == nil || !s.fruitless.Load() {
		return 0
	}
	return s.before + 1
}

// patience is how long it may refuse when it has taken nothing. One that a lost leader left behind is replaced at once, as often as
// it takes to elect the next; but when that goes on, the queue is full, and a session for each try would only burden RabbitMQ.
func (s *publishSession) patience() time.Duration {
	if s.before < vainSessions {
		return 0
	}
	return fullPatience
}

// collect settles what was published. It ends when the session has, and everything is settled.
func (s *publishSession) collect() {
	returned := map[string]int{} // by message id; RabbitMQ returns a message first and confirms it then
	var taken time.Time          // when a message was taken last; zero = none was
	var refusing time.Time       // when the first was refused
	given := false               // up
	for message := range s.pending {
		s.await(message, returned)
		err := s.verdict(message, returned)
		<-s.slots
		switch {
		case err == nil:
			taken = time.Now()
		case errors.Is(err, errRefused) && !given:
			if refusing.IsZero() {
				refusing = time.Now()
			}
			// The queue is full, or the channel has an outdated view of it: RabbitMQ 3.10 refuses for ever what comes
			// on a channel that was used for the first time between the loss of the queue's leader and the election of
			// the next. Another channel works.
			given = time.Since(taken) > refusalTimeout
			if taken.IsZero() {
				given = time.Since(refusing) >= s.patience()
			}
			if given {
				s.fruitless.Store(taken.IsZero())
				go s.stop()
			}
		}
		message.settled(err)
	}
}

// await waits until RabbitMQ has answered for a message, or the session has ended. It ends the session when the answer
// takes too long.
func (s *publishSession) await(message unconfirmed, returned map[string]int) {
	for {
		timer := time.NewTimer(max(time.Until(message.deadline), time.Second))
		select {
		case <-message.answer.Done():
			timer.Stop()
			return
		case r, open := <-s.returns:
			timer.Stop()
			if !open {
				<-message.answer.Done() // the library answers for everything when it closes
				return
			}
			returned[r.MessageId]++
		case <-timer.C:
			// During an alarm RabbitMQ may have not even read the message. It will, after the alarm.
			if !s.blocked.Load() {
				s.log.Warn("RabbitMQ does not confirm, connecting again", "timeout", s.timeout)
				go s.stop()
				<-message.answer.Done()
				return
			}
			message.deadline = time.Now().Add(s.timeout)
		}
	}
}

// verdict says what the answer for a message means.
func (s *publishSession) verdict(message unconfirmed, returned map[string]int) error {
	for range len(s.returns) {
		if r, open := <-s.returns; open {
			returned[r.MessageId]++
		}
	}
	switch {
	case returned[message.id] > 0:
		if returned[message.id]--; returned[message.id] == 0 {
			delete(returned, message.id)
		}
		return errReturned
	case message.answer.Acked():
		return nil
	case s.ch.IsClosed():
		return errSession // it may have the message or not
	}
	return errRefused
}

// watchAlarms follows the alarms of the server until the connection ends.
func (s *publishSession) watchAlarms(alarms <-chan amqp.Blocking) {
	for alarm := range alarms {
		s.blocked.Store(alarm.Active)
		if alarm.Active {
			s.log.Warn("RabbitMQ has raised an alarm and takes no orders", "reason", alarm.Reason)
		} else {
			s.log.Info("the alarm of RabbitMQ is over")
		}
	}
}

// count returns how many messages lie in a queue. It uses a channel of its own: asking for a queue that is not there
// closes it.
func (s *publishSession) count(name string) (int64, error) {
	if s.blocked.Load() {
		return 0, errBlocked
	}
	ch, err := s.conn.Channel()
	if err != nil {
		return 0, err
	}
	q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
	if err != nil {
		return 0, err
	}
	return int64(q.Messages), ch.Close()
}

// stop ends the session. What is unconfirmed is settled as unknown.
func (s *publishSession) stop() {
	s.conn.end() // first: it frees a publish that hangs in a write with the lock held
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.stopped = true
		close(s.ended)
		close(s.pending)
	}
}
