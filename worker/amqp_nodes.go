package worker

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync/atomic"

	amqp "github.com/rabbitmq/amqp091-go"

	"sluice/queue"
)

// amqpNode is a RabbitMQ server that may be connected to.
type amqpNode struct {
	url  string
	name string // host and port, as errors name it
}

// amqpNodes are the nodes of one cluster, each of which leads to the same queues.
type amqpNodes struct {
	all  []amqpNode
	next atomic.Int64 // index of the one that is tried first
}

// parseNodes reads URLs with commas between them. No error of it contains a password.
func parseNodes(list string) (*amqpNodes, error) {
	n := &amqpNodes{}
	vhost := ""
	for i, url := range splitURLs(list) {
		uri, err := amqp.ParseURI(url)
		// An @ behind the host is that of a password with a / in it, of which a part would be taken for the host, and named.
		_, behind, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(url, "amqps://"), "amqp://"), "/")
		if err != nil || strings.Contains(uri.Host, ",") || strings.Contains(behind, "@") {
			return nil, errors.New("the RabbitMQ URL must look like amqp://user:password@host:5672/vhost; " +
				"for several nodes of a cluster give the whole URL of each, with commas between them")
		}
		if i == 0 {
			vhost = uri.Vhost
		} else if uri.Vhost != vhost {
			return nil, errors.New("the RabbitMQ URLs must all end with the same virtual host: an order in another one would be read by nobody")
		}
		n.all = append(n.all, amqpNode{url: url, name: net.JoinHostPort(uri.Host, strconv.Itoa(uri.Port))})
	}
	return n, nil
}

// splitURLs splits at the commas that a URL follows: a password may have others.
func splitURLs(list string) []string {
	var urls []string
	for piece := range strings.SplitSeq(list, ",") {
		start := strings.TrimSpace(piece)
		if len(urls) > 0 && !strings.HasPrefix(start, "amqp://") && !strings.HasPrefix(start, "amqps://") {
			urls[len(urls)-1] += "," + piece
			continue
		}
		urls = append(urls, start)
	}
	return urls
}

// others are the errors of the nodes that one which was connected to stands in for.
func (n *amqpNodes) others(try func(url string) error) []error {
	var errs []error
	for i := range len(n.all) - 1 {
		if err := try(n.all[(int(n.next.Load())+1+i)%len(n.all)].url); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// away is the error of all of them together.
func (n *amqpNodes) away(why, do string, err error) error {
	names := make([]string, len(n.all))
	for i, node := range n.all {
		names[i] = node.name
	}
	return &queue.Away{What: "RabbitMQ", Where: strings.Join(names, ", "), Why: why, Do: do, Err: err}
}

// dial tries one node after the other until one is connected to, which is the first to be tried from then on. With several
// nodes the error, a [queue.Away], says what was wrong with each that was tried: none is any more when ctx has ended.
func (n *amqpNodes) dial(ctx context.Context, connect func(url string) (link, error)) (link, error) {
	first := int(n.next.Load())
	none := &queue.Away{What: "RabbitMQ", Do: "start a node, or correct --amqp-url"}
	for i := range n.all {
		at := (first + i) % len(n.all)
		node := n.all[at]
		l, err := connect(node.url)
		if err == nil {
			n.next.Store(int64(at))
			return l, nil
		}
		// A silent node may have taken all the time of this caller. The next one does not begin with it.
		n.next.Store(int64((at + 1) % len(n.all)))
		if len(n.all) == 1 {
			return link{}, err
		}
		why := err.Error()
		if away := (*queue.Away)(nil); errors.As(err, &away) {
			why = away.Why
		}
		if i > 0 {
			none.Where, none.Why = none.Where+", ", none.Why+"; "
		}
		none.Where, none.Why, none.Err = none.Where+node.name, none.Why+node.name+": "+why, errors.Join(none.Err, err)
		if ctx.Err() != nil {
			break
		}
	}
	return link{}, none
}
