package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v5"

	"sluice/queue"
)

// What an operator changes while a sale runs, one figure at a time: PATCH /admin/sales/{sale}/line, POST …/extend and
// POST …/stock. Each is the sale's present file with that one thing changed, so the rules are those of a file, and the
// figures are absolute: doing it again changes nothing.

// lineChange is the body of PATCH …/line; what is left out stays.
type lineChange struct {
	Rate   *json.Number `json:"rate"`
	Active *json.Number `json:"active"`
	Ratio  *json.Number `json:"ratio"`
}

func (s *Server) patchLine(c *echo.Context) error {
	var change lineChange
	if err := readJSON(c, &change); err != nil {
		return err
	}
	if change == (lineChange{}) {
		return invalid("say what to change: rate, active or ratio")
	}
	return s.patchSale(c, "line", func(file map[string]any) error {
		line, _ := file["line"].(map[string]any)
		for name, value := range map[string]*json.Number{"rate": change.Rate, "active": change.Active, "ratio": change.Ratio} {
			if value != nil {
				line[name] = *value
			}
		}
		return nil
	})
}

func (s *Server) extendSale(c *echo.Context) error {
	var change struct {
		ClosesAt string `json:"closes_at"`
	}
	if err := readJSON(c, &change); err != nil {
		return err
	}
	if change.ClosesAt == "" {
		return invalid("closes_at is missing: the time until which the sale is to last, like 2026-12-01T13:00:00+08:00")
	}
	return s.patchSale(c, "extend", func(file map[string]any) error {
		if at, err := time.Parse(time.RFC3339, change.ClosesAt); err == nil && !at.After(s.now()) {
			return invalid("closes_at %s is over: to end the sale now, close it", change.ClosesAt)
		}
		file["closes_at"] = change.ClosesAt
		return nil
	})
}

func (s *Server) changeStock(c *echo.Context) error {
	var change struct {
		Item  string       `json:"item"`
		Total *json.Number `json:"total"`
	}
	if err := readJSON(c, &change); err != nil {
		return err
	}
	if change.Total == nil {
		return invalid("total is missing: the units of the item in total, sold ones included")
	}
	return s.patchSale(c, "stock", func(file map[string]any) error {
		items, _ := file["items"].([]any)
		if change.Item == "" && len(items) > 1 {
			ids := make([]string, len(items))
			for i, item := range items {
				fields, _ := item.(map[string]any)
				ids[i], _ = fields["id"].(string)
			}
			return invalid("say which item: this sale has %s", strings.Join(ids, ", "))
		}
		i := slices.IndexFunc(items, func(item any) bool {
			fields, _ := item.(map[string]any)
			return change.Item == "" || fields["id"] == change.Item
		})
		if i < 0 {
			return &queue.Error{Code: queue.NoSuchItem, Message: fmt.Sprintf("this sale has no item %q", clip(change.Item))}
		}
		items[i].(map[string]any)["stock"] = *change.Total
		return nil
	})
}

// patchSale applies the sale with one thing changed in its file.
func (s *Server) patchSale(c *echo.Context, action string, patch func(file map[string]any) error) error {
	ctx, cancel := changeContext(c)
	defer cancel()
	s.changing.Lock()
	defer s.changing.Unlock()
	id := c.Param("sale")
	if err := s.notArchived(ctx, id); err != nil {
		return err
	}
	before, err := s.fromRedis(ctx, id)
	if err != nil {
		return err
	}
	sale, err := s.patched(before, patch)
	if err != nil {
		return err
	}
	stored, err := found(s.opts.Sales.Sale(ctx, id))
	if err != nil {
		return err
	}
	after, err := s.apply(ctx, sale, stored, &before)
	if err != nil {
		return err
	}
	s.record(c, action, id, &before, &after)
	s.opts.Snapshots.Kick(id)
	return c.JSON(http.StatusOK, s.viewForAdmin(after, ""))
}

// patched is a sale after a change of its file, by the rules of a file.
func (s *Server) patched(sale queue.Sale, patch func(file map[string]any) error) (queue.Sale, error) {
	text, err := json.Marshal(sale)
	if err != nil {
		return sale, fmt.Errorf("write sale %s: %w", sale.ID, err)
	}
	var file map[string]any
	if err := json.Unmarshal(text, &file); err != nil {
		return sale, fmt.Errorf("read sale %s: %w", sale.ID, err)
	}
	if err := patch(file); err != nil {
		return sale, err
	}
	if text, err = json.Marshal(file); err != nil {
		return sale, fmt.Errorf("write sale %s: %w", sale.ID, err)
	}
	parsed, err := queue.ParseSale(text)
	if err != nil {
		return sale, unfit(err)
	}
	changed, err := parsed.Resolve(s.now(), &sale)
	if err != nil {
		return sale, unfit(err)
	}
	return changed, nil
}
