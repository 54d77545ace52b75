package worker

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/queue"
)

func TestURLsOfSeveralNodesAreToldApart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		list string
		want []amqpNode
	}{
		"one": {"amqp://u:p@one:5673/shop", []amqpNode{{"amqp://u:p@one:5673/shop", "one:5673"}}},
		"three, with spaces and lines between them": {"amqp://one/, amqp://two:1/,\namqps://[::1]/", []amqpNode{
			{"amqp://one/", "one:5672"}, {"amqp://two:1/", "two:1"}, {"amqps://[::1]/", "[::1]:5671"}}},
		"a password with a comma": {"amqp://u:a,b@one/,amqp://u:,amqp@two/", []amqpNode{
			{"amqp://u:a,b@one/", "one:5672"}, {"amqp://u:,amqp@two/", "two:5672"}}},
	} {
		nodes, err := parseNodes(test.list)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(nodes.all, test.want) {
			t.Errorf("%s: %+v, want %+v", name, nodes.all, test.want)
		}
	}
	for _, list := range []string{
		"amqp://u:hush@one,two", "amqp://u:hush@one:5672,two:5672", "amqp://u:hush@one,", "amqp://u:hush@one,http://u:hush@two",
		",amqp://u:hush@one", "amqp://u:12345/hush@one", "amqp://u:hush@one/shop,amqp://u:hush@two/other", "amqp://u:hush@one,amqp://u:hush@two:port",
	} {
		if nodes, err := parseNodes(list); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, %v", list, nodes, err)
		}
	}
}

func TestAMQPGoesOnAtAnotherNodeAndKeepsToIt(t *testing.T) {
	t.Parallel()
	one, two := newProxy(t), newProxy(t)
	broker := newRabbit(t, one.url()+","+two.url(), AMQPOptions{})
	publishAll(t, broker, grab("sale", 0))
	if one.carries() != 1 || two.carries() != 0 {
		t.Fatalf("%d and %d connections, want one to the node that is named first", one.carries(), two.carries())
	}
	one.down()
	feed := consume(t, broker, 10)
	if got := next(t, feed, 1)[0].ID; got != grab("sale", 0).ID {
		t.Errorf("the other node delivers %s", got)
	}
	settled := make(chan error, 1)
	eventually(t, "orders go to the other node", func() bool {
		return broker.Publish(t.Context(), grab("sale", 1), func(err error) { settled <- err }) == nil && receive(t, "an answer", settled) == nil
	})
	one.up()
	two.cut()
	receive(t, "the end of the session", feed.Lost())
	next(t, consume(t, broker, 10), 2)
	if one.carries() != 0 {
		t.Error("it went back to the first node, which may be away again")
	}
}

func TestAMQPSaysWhatIsWrongWithEachNodeAndNoPassword(t *testing.T) {
	t.Parallel()
	one, two := closedPort(t), closedPort(t)
	broker, err := NewAMQP("amqp://user:hush@"+one+"/,amqp://user:hush@"+two+"/", AMQPOptions{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	_, err = broker.Consume(t.Context(), 1)
	if err == nil || strings.Contains(err.Error(), "hush") || !strings.Contains(err.Error(), one+": ") || !strings.Contains(err.Error(), two+": ") {
		t.Errorf("the error is %v", err)
	}
}

// TestAMQPNodeThatIsSilentIsNotTriedForEver asks with less time than a silent node is given.
func TestAMQPNodeThatIsSilentIsNotTriedForEver(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connections are made, and nobody answers them
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	broker := newRabbit(t, "amqp://user:hush@"+silent.Addr().String()+"/,"+rabbitURL(t), AMQPOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := broker.Consume(ctx, 1); err == nil {
		t.Fatal("there was time for both nodes, which proves nothing")
	}
	if at := broker.nodes.next.Load(); at != 1 {
		t.Errorf("the next one begins with node %d", at)
	}
	consume(t, broker, 1)
}

func TestAMQPPingWaitsForNobodyElse(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	at := silent.Addr().String()
	broker := newRabbit(t, "amqp://user:hush@"+at+"/,amqp://user:hush@"+at+"/,"+rabbitURL(t), AMQPOptions{})
	other := make(chan error, 1)
	go func() {
		_, err := broker.publishing(t.Context())
		other <- err
	}()
	if _, err := silent.Accept(); err != nil { // that one is trying
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	var away *queue.Away
	if err := broker.Ping(ctx); !errors.As(err, &away) || strings.Count(away.Where, at) != 2 || away.Why != "no connection in time" || strings.Contains(away.Error(), "hush") {
		t.Errorf("the error is %v", err)
	}
	select {
	case <-other:
		t.Error("somebody else came first, which proves nothing")
	default:
	}
	if err := receive(t, "the end of the other's try", other); err != nil {
		t.Error(err)
	}
}

// closedPort is an address at which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
