package server

import (
	"context"
	"time"

	"sluice/queue"
)

const (
	// reportEvery is how often a node tells the others of itself: one round trip, however many shoppers it has.
	reportEvery = time.Second
	// reportTimeout bounds that, so that a report is never late for the next one.
	reportTimeout = 800 * time.Millisecond
)

// reportNode tells the other nodes of this one until ctx ends, and then takes that back. Whether Redis answers is logged by
// those who watch the sales.
func (s *Server) reportNode(ctx context.Context) {
	if s.opts.Node == "" {
		return
	}
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	for {
		s.brief(ctx, func(ctx context.Context) { _ = s.line.ReportNode(ctx, s.nodeReport()) })
		select {
		case <-ticker.C:
		case <-ctx.Done():
			s.brief(context.WithoutCancel(ctx), func(ctx context.Context) { _ = s.line.ForgetNode(ctx, s.opts.Node) })
			return
		}
	}
}

func (s *Server) brief(ctx context.Context, fn func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	fn(ctx)
}

// nodeReport is this node as it is now.
func (s *Server) nodeReport() queue.NodeReport {
	report := queue.NodeReport{
		Node: s.opts.Node, Started: s.started.UnixMilli(), At: s.now().UnixMilli(),
		Limited: s.counted.tally.limited(), Sales: map[string]queue.NodeSale{},
	}
	if s.opts.Hub != nil {
		report.Connections = s.opts.Hub.Len()
	}
	for sale, shoppers := range s.registry.shoppers() {
		report.Sales[sale] = queue.NodeSale{Shoppers: shoppers, Grabs: s.counted.tally.of(sale)}
	}
	return report
}
