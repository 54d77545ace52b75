package server

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/queue"
)

// livePart is how long each part of a frame may take. It is less than the time between two frames, so that a part that
// hangs does not hold up the next one.
const livePart = 800 * time.Millisecond

// liveFrame is a sale as an operator sees it at one moment. What could not be read is null, and said in Troubles.
type liveFrame struct {
	At       int64               `json:"at"` // of the snapshot, Redis time; the server's time where there is none
	Node     string              `json:"node"`
	Sale     *adminView          `json:"sale"`
	Line     *liveLine           `json:"line"`
	Orders   liveOrders          `json:"orders"`
	Audit    *queue.AuditSummary `json:"audit"` // the latest of the regular ones; null = there was none
	Nodes    []liveNode          `json:"nodes"` // that serve; this one alone while the others are not known
	Troubles []string            `json:"troubles"`
}

// liveLine is the line of a sale, in seats, and how fast it moves.
type liveLine struct {
	Waiting  int64   `json:"waiting"`
	Recalled int64   `json:"recalled"` // of those who wait: called before the others
	Turns    int64   `json:"turns"`
	Served   int64   `json:"served"` // the cursor
	Issued   int64   `json:"issued"` // the last number given
	Granted  int64   `json:"granted"`
	Left     int64   `json:"left"` // given up
	Held     int64   `json:"held"` // units of orders that are not paid
	Rate     float64 `json:"rate"` // turns given a second, as seen lately
}

// liveOrders is where the orders of a sale are.
type liveOrders struct {
	Taken   *int64 `json:"taken"`   // units, as Redis has it
	Written *int64 `json:"written"` // units, as the database counts
	Outbox  *int64 `json:"outbox"`  // orders on their way to the broker
	Broker  *int64 `json:"broker"`  // messages of all sales that wait for a writer
	Dead    *int64 `json:"dead"`    // messages of all sales that could not be written
}

// liveNode is a node that serves, as it told of itself.
type liveNode struct {
	Node        string            `json:"node"`
	Started     int64             `json:"started"`
	At          int64             `json:"at"`
	Connections int               `json:"connections"` // of all sales
	Shoppers    int64             `json:"shoppers"`    // of this sale
	Grabs       map[string]int64  `json:"grabs"`       // of this sale, since Started
	Limited     queue.NodeLimited `json:"limited"`
}

// liveFrame reads a sale from everywhere at once. It takes livePart at most.
func (s *Server) liveFrame(ctx context.Context, id string) liveFrame {
	snap := s.opts.Snapshots.Snapshot(id)
	f := liveFrame{At: s.now().UnixMilli(), Node: s.opts.Node, Troubles: []string{}}
	if snap != nil {
		f.At = snap.At
		view := s.viewForAdmin(*snap.Sale, "")
		f.Sale, f.Line, f.Orders.Taken = &view, lineOf(snap), takenOf(snap)
	}
	// Each part has fields of its own in the frame, so they share nothing but the time.
	parts := []struct {
		read    func(ctx context.Context, id string, f *liveFrame) error
		trouble string
		failed  bool
	}{
		{read: s.liveDatabase, trouble: "the database cannot be asked"},
		{read: s.liveRedis, trouble: "Redis cannot be asked: the line is as it was read last, and other nodes are not known"},
		{read: s.liveBroker, trouble: "the broker cannot be asked"},
	}
	ctx, cancel := context.WithTimeout(ctx, livePart)
	defer cancel()
	var group sync.WaitGroup
	for i := range parts {
		group.Go(func() { parts[i].failed = parts[i].read(ctx, id, &f) != nil })
	}
	group.Wait()
	if snap == nil && (f.Sale == nil || f.Sale.Archived == nil) {
		f.Troubles = append(f.Troubles, "this node has not read the line of the sale")
	}
	for _, part := range parts {
		if part.failed {
			f.Troubles = append(f.Troubles, part.trouble)
		}
	}
	return f
}

// liveDatabase reads what is sold, and the settings of a sale that this node has not read.
func (s *Server) liveDatabase(ctx context.Context, id string, f *liveFrame) error {
	if f.Sale == nil {
		sale, err := s.opts.Sales.Sale(ctx, id)
		if err != nil {
			return err
		}
		archive, err := s.opts.Sales.Archive(ctx, id)
		if err != nil {
			return err
		}
		view := s.viewForAdmin(sale, "")
		if archive != nil {
			view = s.viewOfArchived(sale, archive)
		}
		f.Sale = &view
	}
	sold, err := s.opts.Sales.Sold(ctx, id)
	if err != nil {
		return err
	}
	var units int64
	for _, n := range sold {
		units += n
	}
	f.Orders.Written = &units
	return nil
}

// liveRedis reads what Redis has beside the line: the outbox, the last audit, and the nodes.
func (s *Server) liveRedis(ctx context.Context, id string, f *liveFrame) error {
	f.Nodes = s.liveNodes(id, nil)
	outbox, err := s.line.OutboxLen(ctx, id)
	if err != nil {
		return err
	}
	f.Orders.Outbox = &outbox
	if f.Audit, err = s.line.LastAudit(ctx, id); err != nil {
		return err
	}
	nodes, err := s.line.Nodes(ctx)
	if err != nil {
		return err
	}
	f.Nodes = s.liveNodes(id, nodes)
	return nil
}

// liveNodes are the nodes as one sale sees them. Of itself this node knows better than what it told.
func (s *Server) liveNodes(id string, reports []queue.NodeReport) []liveNode {
	nodes := []liveNode{liveNodeOf(s.nodeReport(), id)}
	for _, report := range reports {
		if report.Node != s.opts.Node {
			nodes = append(nodes, liveNodeOf(report, id))
		}
	}
	slices.SortFunc(nodes, func(a, b liveNode) int { return strings.Compare(a.Node, b.Node) })
	return nodes
}

func liveNodeOf(r queue.NodeReport, id string) liveNode {
	sale := r.Sales[id]
	if sale.Grabs == nil {
		sale.Grabs = map[string]int64{}
	}
	return liveNode{
		Node: r.Node, Started: r.Started, At: r.At, Connections: r.Connections,
		Shoppers: sale.Shoppers, Grabs: sale.Grabs, Limited: r.Limited,
	}
}

// liveBroker reads what the broker counts.
func (s *Server) liveBroker(ctx context.Context, _ string, f *liveFrame) error {
	if s.opts.Broker == nil {
		return nil // there is nothing to be known
	}
	waiting, dead, err := s.broker.get(ctx)
	if err != nil {
		return err
	}
	f.Orders.Broker, f.Orders.Dead = &waiting, &dead
	return nil
}

func lineOf(snap *queue.Snapshot) *liveLine {
	return &liveLine{
		Waiting: snap.Waiting(), Recalled: snap.Recalled(), Turns: snap.Turns, Served: snap.Served, Issued: snap.Issued,
		Granted: snap.Granted, Left: snap.Left, Held: snap.Held, Rate: snap.Rate,
	}
}

// takenOf is how many units Redis has given away.
func takenOf(snap *queue.Snapshot) *int64 {
	taken := snap.Sale.Units() - snap.Units()
	return &taken
}
