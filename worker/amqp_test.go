package worker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestAMQPDeclaresWhatTheContractNames(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
	names := []string{strings.TrimPrefix(broker.orders(), broker.opts.Prefix), strings.TrimPrefix(broker.dead(), broker.opts.Prefix)}
	wantSame(t, "the names", names, []string{"sluice.orders", "sluice.dead"})

	// RabbitMQ accepts a declaration of what exists only when every argument is the same.
	for name, args := range map[string]amqp.Table{
		broker.orders(): {
			"x-queue-type": "quorum", "x-overflow": "reject-publish", "x-delivery-limit": 100,
			"x-dead-letter-exchange": broker.dead(), "x-dead-letter-routing-key": broker.dead(),
			"x-dead-letter-strategy": "at-least-once",
		},
		broker.dead(): {"x-queue-type": "quorum", "x-overflow": "reject-publish", "x-delivery-limit": math.MaxInt32},
	} {
		if _, err := broker.ch.QueueDeclare(name, true, false, false, false, args); err != nil {
			t.Fatal(err)
		}
		if err := broker.ch.ExchangeDeclare(name, "direct", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAMQPIsDeclaredByManyProcessesAtOnce(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
	together(8, func(i int) {
		conn, err := broker.dial(t.Context(), fmt.Sprint("test ", i))
		if err != nil {
			t.Error(err)
			return
		}
		conn.end()
	})
}

func TestAMQPSaysWhichQueueIsNotAsItShouldBe(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
	other, err := NewAMQP(rabbitURL(t), AMQPOptions{Logger: quiet, Prefix: broker.opts.Prefix, MaxLength: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	err = other.Publish(t.Context(), grab("sale", 1), func(error) { t.Error("settled what was not taken") })
	if err == nil || !strings.Contains(err.Error(), broker.orders()) || !strings.Contains(err.Error(), "x-max-length") {
		t.Errorf("the error does not name the queue and what is different: %v", err)
	}
}

func TestAMQPTellsNoPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"http://user:hush@host", "amqp://user:hush@host:port", "amqp://user:hush@host/%zz", "hush"} {
		if _, err := NewAMQP(url, AMQPOptions{Logger: quiet}); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: the error is %v", url, err)
		}
	}
	broker, err := NewAMQP("amqp://user:hush@127.0.0.1:1/", AMQPOptions{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	_, err = broker.Consume(t.Context(), 1)
	if err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("the error is %v", err)
	}
}

func TestAMQPPublishesAPersistentMessageOnce(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
	order := grab("sale", 1)
	publishAll(t, broker, order)
	messages := broker.take(broker.orders())
	if len(messages) != 1 {
		t.Fatalf("there are %d messages, want 1", len(messages))
	}
	m := messages[0]
	if m.MessageId != order.ID || m.Type != "order" || m.ContentType != "application/json" || m.DeliveryMode != amqp.Persistent {
		t.Errorf("the properties are wrong: %+v", m)
	}
	back, err := decodeOrder(m.Body)
	if err != nil || back != order {
		t.Errorf("the order came back as %+v, %v", back, err)
	}
}

func TestAMQPOrderWithoutAQueueIsReturned(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
	publishAll(t, broker, grab("sale", 1)) // begins the session, which declares
	if err := broker.ch.QueueUnbind(broker.orders(), broker.orders(), broker.orders(), nil); err != nil {
		t.Fatal(err)
	}
	// Of the same order twice, each is returned.
	settled := make(chan error, 3)
	for _, i := range []int{2, 3, 3} {
		if err := broker.Publish(t.Context(), grab("sale", i), func(err error) { settled <- err }); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if err := receive(t, "a return", settled); !errors.Is(err, errReturned) {
			t.Errorf("settled with %v, want %v", err, errReturned)
		}
	}
	if err := broker.ch.QueueBind(broker.orders(), broker.orders(), broker.orders(), false, nil); err != nil {
		t.Fatal(err)
	}
	publishAll(t, broker, grab("sale", 3))
}

func TestAMQPFullQueueRefusesAndTakesAgainWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{MaxLength: 3})
	settled := make(chan error, 1)
	publish := func(i int) error {
		if err := broker.Publish(t.Context(), grab("sale", i), func(err error) { settled <- err }); err != nil {
			return err // the session was given up just now
		}
		return receive(t, "an answer", settled)
	}
	accepted := 0
	var err error
	for i := 0; i < 100 && err == nil; i++ {
		if err = publish(i); err == nil {
			accepted++
		}
	}
	if !errors.Is(err, errRefused) {
		t.Fatalf("the full queue answered %v, want %v", err, errRefused)
	}
	if got := len(broker.take(broker.orders())); got != accepted {
		t.Errorf("the queue has %d orders, but %d were confirmed", got, accepted)
	}
	eventually(t, "the queue takes orders again", func() bool { return publish(100) == nil })
}

// TestAMQPGivesUpASessionThatOnlyRefuses has a full queue stand for one whose leader was lost: on the channels that were
// opened before the next was elected, RabbitMQ 3.10 refuses for ever.
func TestAMQPGivesUpASessionThatOnlyRefuses(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{MaxLength: 3})
	settled := make(chan error, 1)
	publish := func() error {
		if err := broker.Publish(t.Context(), grab("sale", 1), func(err error) { settled <- err }); err != nil {
			return err
		}
		return receive(t, "an answer", settled)
	}
	var sessions []*publishSession
	eventually(t, "two more sessions", func() bool {
		if err := publish(); errors.Is(err, errRefused) && !slices.Contains(sessions, broker.session) {
			sessions = append(sessions, broker.session)
		}
		return len(sessions) == 3
	})
	receive(t, "the end of the first session", sessions[0].ended)
	// The first has taken something, and the second nothing.
	for i, want := range []int{0, 0, 1} {
		if got := sessions[i].before; got != want {
			t.Errorf("before session %d were %d in vain, want %d", i+1, got, want)
		}
	}

	// After many of them one goes on for a while, refused as it may be.
	conn, err := broker.dial(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	patient, err := newPublishSession(conn, confirmTimeout, vainSessions, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer patient.stop()
	for range 3 {
		if err := patient.publish(t.Context(), broker.orders(), amqp.Publishing{MessageId: "one"}, func(err error) { settled <- err }); err != nil {
			t.Fatal(err)
		}
		if err := receive(t, "an answer", settled); !errors.Is(err, errRefused) {
			t.Errorf("the full queue answered %v", err)
		}
	}
	if patient.fruitless.Load() {
		t.Error("a session with patience was given up")
	}
}

func TestAMQPAnswersForEveryOrderWhenTheConnectionIsCut(t *testing.T) {
	t.Parallel()
	network := newProxy(t)
	broker := newRabbit(t, network.url(), AMQPOptions{})
	publishAll(t, broker, grab("sale", 0))

	network.mute(true) // RabbitMQ takes the orders, and nobody hears of it
	settled := make(chan error, 100)
	for i := range 100 {
		if err := broker.Publish(t.Context(), grab("sale", i+1), func(err error) { settled <- err }); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "RabbitMQ has the orders", func() bool { return broker.ready(broker.orders()) == 101 })
	network.cut()
	for range 100 {
		if err := receive(t, "an answer", settled); !errors.Is(err, errSession) {
			t.Errorf("an order of unknown fate was settled with %v", err)
		}
	}
	network.mute(false)
	eventually(t, "the broker is back", func() bool {
		return broker.Publish(t.Context(), grab("sale", 0), func(err error) { settled <- err }) == nil
	})
	if err := receive(t, "a confirm", settled); err != nil {
		t.Error(err)
	}
}

func TestAMQPGivesUpASessionThatConfirmsNothing(t *testing.T) {
	t.Parallel()
	network := newProxy(t)
	broker := newRabbit(t, network.url(), AMQPOptions{})
	broker.confirmTimeout = 10 * time.Millisecond
	settled := make(chan error, 1)
	publishAll(t, broker, grab("sale", 0))
	network.mute(true)
	if err := broker.Publish(t.Context(), grab("sale", 1), func(err error) { settled <- err }); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, "an answer", settled); err == nil {
		t.Error("an order that was not confirmed counts as safe")
	}
	network.mute(false)
	eventually(t, "the broker is back", func() bool {
		return broker.Publish(t.Context(), grab("sale", 1), func(err error) { settled <- err }) == nil
	})
	receive(t, "an answer", settled)
}

func TestAMQPIsNotHeldUpByAServerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	for name, confirmTimeout := range map[string]time.Duration{
		"given up for the confirms":   10 * time.Millisecond,
		"given up for the heartbeats": time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			network := newProxy(t)
			broker := newRabbit(t, network.url()+"/?heartbeat=1", AMQPOptions{})
			broker.confirmTimeout = confirmTimeout
			publishAll(t, broker, grab("sale", 0))
			network.freeze()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				large := amqp.Publishing{Body: make([]byte, 64<<10)} // more than all buffers on the way take
				for broker.session.publish(t.Context(), broker.orders(), large, func(error) {}) == nil {
				}
			}()
			receive(t, "the end of a publish that hangs", ended)
			eventually(t, "everything is settled", func() bool { return len(broker.session.slots) == 0 })
		})
	}
}

// blockedFrame is connection.blocked, or connection.unblocked, as RabbitMQ sends it.
func blockedFrame(blocked bool) []byte {
	method := []byte{0, 10, 0, 61}
	if blocked {
		method = append([]byte{0, 10, 0, 60}, "\x0alow memory"...)
	}
	frame := []byte{1, 0, 0} // a method on channel 0
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(method)))
	return append(append(frame, method...), 0xCE)
}

func TestAMQPSendsNothingDuringAnAlarm(t *testing.T) {
	t.Parallel()
	network := newProxy(t)
	book := &logBook{}
	broker := newRabbit(t, network.url(), AMQPOptions{Logger: slogOf(book)})
	publishAll(t, broker, grab("sale", 0))

	network.say(blockedFrame(true))
	eventually(t, "the alarm is known", func() bool { return broker.session.blocked.Load() })
	for i := range 10 {
		err := broker.Publish(t.Context(), grab("sale", i), func(error) { t.Error("settled what was not taken") })
		if !errors.Is(err, errBlocked) {
			t.Errorf("publishing during an alarm: %v, want %v", err, errBlocked)
		}
	}
	if got := broker.ready(broker.orders()); got != 1 {
		t.Errorf("there are %d orders, want 1", got)
	}
	network.say(blockedFrame(false))
	eventually(t, "the end of the alarm is known", func() bool { return !broker.session.blocked.Load() })
	publishAll(t, broker, grab("sale", 1))
	if book.count(warn) != 1 || book.count(info) != 1 {
		t.Errorf("begin and end of the alarm are logged %d and %d times, want once", book.count(warn), book.count(info))
	}
}

func TestAMQPRefusesToPublishWhenItsContextHasEnded(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := broker.Publish(ctx, grab("sale", 1), func(error) { t.Error("settled what was not taken") }); err == nil {
		t.Error("no error")
	}
}

// next receives n deliveries.
func next(t *testing.T, feed Feed, n int) []Delivery {
	t.Helper()
	var batch []Delivery
	for range n {
		batch = append(batch, receive(t, "a delivery", feed.Deliveries()))
	}
	return batch
}

func consume(t *testing.T, broker Broker, prefetch int) Feed {
	t.Helper()
	feed, err := broker.Consume(t.Context(), prefetch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { feed.Close(nil) })
	return feed
}

func TestAMQPDeliversAgainWhatWasNotAcknowledged(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
	publishAll(t, broker, grabs("sale", 0, 10)...)
	first := consume(t, broker, 100)
	batch := next(t, first, 10)
	if err := first.Ack(batch[:4]); err != nil {
		t.Fatal(err)
	}
	first.Close(batch[4:])
	if _, open := <-first.Deliveries(); open {
		t.Error("a closed feed delivers")
	}
	second := consume(t, broker, 100)
	again := map[string]bool{}
	for _, delivery := range next(t, second, 6) {
		again[delivery.ID] = true
	}
	for _, delivery := range batch[4:] {
		if !again[delivery.ID] {
			t.Errorf("order %s is not delivered again", delivery.ID)
		}
	}
}

func TestAMQPLateAcknowledgementHitsNothingOfAnotherSession(t *testing.T) {
	t.Parallel()
	network := newProxy(t)
	broker := newRabbit(t, network.url(), AMQPOptions{})
	publishAll(t, broker, grabs("sale", 0, 3)...)
	old := consume(t, broker, 100)
	late := next(t, old, 3)
	network.cut()
	receive(t, "the end of the session", old.Lost())

	young := consume(t, broker, 100)
	batch := next(t, young, 3) // with the same delivery tags
	if batch[2].tag != late[2].tag {
		t.Fatalf("the test proves nothing: the tags are %d and %d", late[2].tag, batch[2].tag)
	}
	if old.Ack(late) == nil {
		t.Error("a session that has ended takes an acknowledgement")
	}
	if young.Ack(late) == nil {
		t.Error("a session takes an acknowledgement of a delivery of another one")
	}
	young.Close(batch)
	if got := len(next(t, consume(t, broker, 100), 3)); got != 3 {
		t.Errorf("%d orders are left, want 3", got)
	}
}

func TestAMQPFeedEndsWhenItsQueueIsDeleted(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
	feed := consume(t, broker, 100)
	if _, err := broker.ch.QueueDelete(broker.orders(), false, false, false); err != nil {
		t.Fatal(err)
	}
	receive(t, "the end of the session", feed.Lost())
	consume(t, broker, 100) // declares it again
}

func TestAMQPFeedHoldsNoMoreThanItsPrefetch(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
	publishAll(t, broker, grabs("sale", 0, 50)...)
	feed := consume(t, broker, 20)
	batch := next(t, feed, 20)
	if got := broker.ready(broker.orders()); got != 30 {
		t.Errorf("%d orders wait, want 30", got)
	}
	if err := feed.Ack(batch); err != nil {
		t.Fatal(err)
	}
	next(t, feed, 20)
}

func TestAMQPBuriesWithTheReason(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
	order := grab("sale", 1)
	letter := DeadLetter{Delivery: Delivery{Order: order, ID: order.ID, Body: []byte("as it came")}, Reason: "there is no such item"}
	if err := broker.Bury(t.Context(), letter); err != nil {
		t.Fatal(err)
	}
	if n, err := broker.DeadLetters(t.Context()); err != nil || n != 1 {
		t.Errorf("there are %d dead letters, %v; want 1", n, err)
	}
	messages := broker.take(broker.dead())
	if len(messages) != 1 {
		t.Fatalf("there are %d dead letters, want 1", len(messages))
	}
	m := messages[0]
	delete(m.Headers, "x-delivery-count") // RabbitMQ's own
	wantSame(t, "the headers", m.Headers, amqp.Table{
		"x-reason": "there is no such item", "x-sale": "sale", "x-item": "black", "x-user": "user-1"})
	if string(m.Body) != "as it came" || m.MessageId != order.ID || m.DeliveryMode != amqp.Persistent {
		t.Errorf("the dead letter is wrong: %+v", m)
	}
}

func TestAMQPOrderThatKillsItsWritersIsPutAsideInTheEnd(t *testing.T) {
	t.Parallel()
	broker := newRabbit(t, rabbitURL(t), AMQPOptions{})
	publishAll(t, broker, grab("sale", 1))
	conn, err := amqp.Dial(rabbitURL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	deaths := 0
	for ; broker.ready(broker.dead()) == 0; deaths++ {
		if deaths > 2*deliveryLimit {
			t.Fatalf("delivered %d times without an end", deaths)
		}
		ch, err := conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		deliveries, err := ch.Consume(broker.orders(), "", false, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-deliveries:
		case <-time.After(100 * time.Millisecond): // it is on its way to the dead letters
		}
		if err := ch.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if deaths < deliveryLimit {
		t.Errorf("put aside after %d deliveries, want %d", deaths, deliveryLimit)
	}
	if m := broker.take(broker.dead()); len(m) != 1 || m[0].MessageId != grab("sale", 1).ID {
		t.Errorf("the dead letters are %+v", m)
	}
}
