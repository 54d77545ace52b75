package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// nodeLasts is how long a report counts: a node that missed three of its reports is gone, or cannot be reached.
const nodeLasts = 4 * time.Second

// NodeReport is what a node that serves tells of itself. Times are ms since the epoch, by the clock of the node.
type NodeReport struct {
	Node        string              `json:"node"`
	Started     int64               `json:"started"`
	At          int64               `json:"at"`
	Connections int                 `json:"connections"`
	Limited     NodeLimited         `json:"limited"`
	Sales       map[string]NodeSale `json:"sales"` // by id
}

// NodeLimited counts the requests that a node has refused since it started, by the limit that they met.
type NodeLimited struct {
	User    int64 `json:"user"`
	Address int64 `json:"address"`
	Node    int64 `json:"node"`
}

// NodeSale is one sale on a node.
type NodeSale struct {
	Shoppers int64            `json:"shoppers"` // connections
	Grabs    map[string]int64 `json:"grabs"`    // since the node started, by result; "failed" = without one. Absent = 0
}

// ReportNode tells the other nodes about this one, until nodeLasts later. It is one round trip. Errors: Unavailable.
func (q *Queue) ReportNode(ctx context.Context, report NodeReport) error {
	data, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("write the report of node %s: %w", report.Node, err)
	}
	_, err = q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, nodeKey+report.Node, data, nodeLasts)
		p.SAdd(ctx, nodesKey, report.Node)
		return nil
	})
	if err != nil {
		return fmt.Errorf("report node %s: %w", report.Node, err)
	}
	return nil
}

// ForgetNode takes back the report of a node that ends. Errors: Unavailable; then the report expires.
func (q *Queue) ForgetNode(ctx context.Context, node string) error {
	_, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, nodeKey+node)
		p.SRem(ctx, nodesKey, node)
		return nil
	})
	if err != nil {
		return fmt.Errorf("forget node %s: %w", node, err)
	}
	return nil
}

// Nodes are the newest reports of all nodes that have reported lately, by name. Errors: Unavailable.
func (q *Queue) Nodes(ctx context.Context) ([]NodeReport, error) {
	names, err := q.rdb.SMembers(ctx, nodesKey).Result()
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	if len(names) == 0 {
		return nil, nil
	}
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = nodeKey + name
	}
	values, err := q.rdb.MGet(ctx, keys...).Result()
	if err != nil {
		return nil, fmt.Errorf("read the reports of the nodes: %w", err)
	}
	var reports []NodeReport
	var gone []any
	for i, value := range values {
		text, ok := value.(string)
		if !ok {
			gone = append(gone, names[i])
			continue
		}
		var report NodeReport
		if err := json.Unmarshal([]byte(text), &report); err != nil {
			continue // of a version that writes it in another way
		}
		reports = append(reports, report)
	}
	if len(gone) > 0 {
		// Whoever reports just now is listed again by the next report; what is not removed here is by the next reader.
		_ = q.rdb.SRem(ctx, nodesKey, gone...).Err()
	}
	slices.SortFunc(reports, func(a, b NodeReport) int { return strings.Compare(a.Node, b.Node) })
	return reports, nil
}
