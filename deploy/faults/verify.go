package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"sluice/server"
)

// forgetAge is how old an order that is nowhere must be before it is called forgotten, and a little more.
const forgetAge = 6 * time.Second

// settle waits until everything adds up and no hold runs any more, and returns how long that took after the last fault
// and the last hold, whichever was later.
func (c *schedule) settle(ctx context.Context) (time.Duration, error) {
	begun := time.Now()
	holds := begun.Add(c.hold) // the last unpaid order may be as young as that
	ctx, cancel := context.WithDeadline(ctx, holds.Add(settling))
	defer cancel()
	for {
		missing := c.missing(ctx)
		if missing == nil {
			return max(0, time.Since(holds)), nil
		}
		select {
		case <-ctx.Done():
			return time.Since(holds), fmt.Errorf("%s after the last fault and the last hold: %w", settling, missing)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// missing is what does not add up yet.
func (c *schedule) missing(ctx context.Context) error {
	var held, moves int
	if err := c.services.db.QueryRowContext(ctx, "SELECT (SELECT COUNT(*) FROM "+c.name+".orders WHERE status = 'confirmed'), "+
		"(SELECT COUNT(*) FROM "+c.name+".stock_moves WHERE done = 0)").Scan(&held, &moves); err != nil {
		return err
	}
	if held > 0 || moves > 0 {
		return fmt.Errorf("%d orders are neither paid nor ended and %d stock moves are pending", held, moves)
	}
	audit, err := c.audit(ctx)
	switch {
	case err != nil:
		return err
	case !audit.Balanced:
		return errors.New("the audit does not hold: " + strings.Join(audit.Problems, "; "))
	case audit.Outbox > 0 || audit.InFlight > 0:
		return fmt.Errorf("%d orders are in the outbox and %d on their way", audit.Outbox, audit.InFlight)
	case audit.Broker.Dead > 0:
		return fmt.Errorf("%d orders are dead letters", audit.Broker.Dead)
	}
	return nil
}

// audit is the report of a node's audit.
type audit struct {
	Balanced bool `json:"balanced"`
	Items    []struct {
		Total, Stock, Winners, Sold, Live int
	} `json:"items"`
	InFlight int `json:"in_flight"`
	Outbox   int `json:"outbox"`
	Broker   struct {
		Dead int `json:"dead"`
	} `json:"broker"`
	Problems []string `json:"problems"`
}

func (c *schedule) audit(ctx context.Context) (a audit, err error) {
	for _, node := range c.shoppers.nodes {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, node+"/api/v1/admin/sales/"+c.shoppers.sale+"/audit", nil)
		if err != nil {
			return a, err
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			continue
		}
		err = json.NewDecoder(resp.Body).Decode(&a)
		_ = resp.Body.Close()
		if err == nil && resp.StatusCode == http.StatusOK {
			return a, nil
		}
	}
	return a, errors.New("no node takes the audit")
}

// unwritten counts the orders that somebody was told of and that have no row.
func (c *schedule) unwritten(ctx context.Context) int {
	written := map[string]bool{}
	rows, err := c.services.db.QueryContext(ctx, "SELECT id FROM "+c.name+".orders")
	if err != nil {
		return len(c.shoppers.told) // verify will say why
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if rows.Scan(&id) == nil {
			written[id] = true
		}
	}
	missing := 0
	for order := range c.shoppers.told {
		if !written[order] {
			missing++
		}
	}
	return missing
}

// verify compares what every shopper was told with the rows.
func (c *schedule) verify(ctx context.Context) (orders, paid int, err error) {
	wrong := slices.Clone(c.shoppers.problems)
	problem := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	rows, err := c.services.db.QueryContext(ctx, "SELECT id, user_id, status, live IS NOT NULL FROM "+c.name+".orders")
	if err != nil {
		return 0, 0, err
	}
	defer rows.Close()
	status, live := map[string]string{}, map[string]int{}
	sold := 0
	for rows.Next() {
		var id, user, is string
		var lives bool
		if err := rows.Scan(&id, &user, &is, &lives); err != nil {
			return 0, 0, err
		}
		status[id] = is
		if owner, told := c.shoppers.told[id]; told && owner != user {
			problem("order %s is of %s, and %s was told of it", id, user, owner)
		}
		if lives {
			live[user]++
			sold++
		}
		if is == "paid" {
			paid++
		}
	}
	if err := rows.Err(); err != nil {
		return 0, 0, err
	}
	for user, n := range live {
		if n > 1 {
			problem("%s has %d live orders", user, n)
		}
	}
	if sold > c.units {
		problem("%d units of %d are sold", sold, c.units)
	}
	forgotten := 0
	for order, user := range c.shoppers.told {
		is, written := status[order]
		switch {
		case written && c.shoppers.paid[order] && is != "paid":
			problem("order %s was answered as paid and is %s", order, is)
		case written && c.shoppers.cancelled[order] && is != "cancelled":
			problem("order %s was answered as cancelled and is %s", order, is)
		case written:
		case c.archived && c.forgetful: // whoever comes back later hears that the sale is no more
		case !c.forgetful:
			problem("order %s of %s was told as a success and is lost", order, user)
		default:
			if forgotten++; forgotten <= 5 {
				if err := c.mustHear(ctx, user, order); err != nil {
					problem("%v", err)
				}
			}
		}
	}
	audit, err := c.audit(ctx)
	if err != nil {
		return len(status), paid, err
	}
	if item := audit.Items[0]; item.Stock != c.units-sold || item.Live != sold {
		problem("%d of %d units are sold and %d are left", sold, c.units, item.Stock)
	}
	if c.shoppers.grabs < crowdSize {
		problem("there were %d answers to %d grabs", c.shoppers.grabs, crowdSize)
	}
	if len(wrong) > 0 {
		return len(status), paid, errors.New(strings.Join(wrong[:min(len(wrong), 10)], "; "))
	}
	return len(status), paid, nil
}

// mustHear lets a shopper come back with an order that is nowhere, who must be told that it is rejected.
func (c *schedule) mustHear(ctx context.Context, user, order string) error {
	token, err := server.MintJWT([]byte(secret), user, time.Now().Add(time.Hour))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	dialer := websocket.Dialer{Subprotocols: []string{"sluice.v1"}}
	conn, resp, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(c.shoppers.nodes[0], "http")+"/ws/v1/sales/"+c.shoppers.sale, nil)
	if err != nil {
		return fmt.Errorf("come back with a forgotten order: %w", err)
	}
	_ = resp.Body.Close()
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := errors.Join(conn.SetReadDeadline(deadline), conn.WriteJSON(map[string]string{"type": "hello", "token": token, "order": order})); err != nil {
		return err
	}
	for {
		var frame struct {
			Type  string `json:"type"`
			Order any    `json:"order"`
		}
		if err := conn.ReadJSON(&frame); err != nil {
			return fmt.Errorf("%s named the forgotten order %s and was not told: %w", user, order, err)
		}
		if told, ok := frame.Order.(map[string]any); ok && frame.Type == "order" && told["id"] == order {
			if told["status"] != "rejected" {
				return fmt.Errorf("the forgotten order %s is told to be %v", order, told["status"])
			}
			return nil
		}
	}
}
