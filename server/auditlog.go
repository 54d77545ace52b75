package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v5"

	"sluice/queue"
)

// AuditLog keeps who changed what.
type AuditLog interface {
	Log(ctx context.Context, change Change) error
	// Entries returns what was kept, the newest first, limit at most: of one sale, or of all when sale is "", and only
	// those below the id before, or from the newest on when that is 0.
	Entries(ctx context.Context, sale string, before int64, limit int) ([]LogEntry, error)
}

// LogEntry is an entry of the audit log as it was kept.
type LogEntry struct {
	ID     int64           `json:"id"` // grows with every entry
	At     int64           `json:"at"` // ms since the epoch
	Who    string          `json:"who"`
	Action string          `json:"action"`
	Sale   string          `json:"sale"`
	Before json.RawMessage `json:"before"` // the settings of the sale; null = there were none
	After  json.RawMessage `json:"after"`
}

// readAuditLog is GET /admin/audit-log: the newest first, of one sale with ?sale=.
func (s *Server) readAuditLog(c *echo.Context) error {
	if s.opts.AuditLog == nil {
		return &queue.Error{Code: queue.Unavailable, Message: "this node keeps no audit log"}
	}
	limit, err := pageLimit(c)
	if err != nil {
		return err
	}
	before := int64(0)
	if text := c.QueryParam("before"); text != "" {
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before < 1 {
			return invalid("before must be the next of the page before, a whole number from 1, not %q", clip(text))
		}
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), readTimeout)
	defer cancel()
	sale := c.QueryParam("sale")
	if sale != "" {
		if err := s.storedSale(ctx, sale); err != nil {
			return err
		}
	}
	entries, err := s.opts.AuditLog.Entries(ctx, sale, before, limit+1)
	if err != nil {
		return err
	}
	page := struct {
		Entries []LogEntry `json:"entries"`
		Next    int64      `json:"next"` // the before of the next page; 0 = there is none
	}{Entries: entries}
	if len(entries) > limit {
		page.Entries, page.Next = entries[:limit], entries[limit-1].ID
	}
	if page.Entries == nil {
		page.Entries = []LogEntry{}
	}
	return c.JSON(http.StatusOK, page)
}
