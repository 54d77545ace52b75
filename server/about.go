package server

import (
	"net/http"

	"github.com/labstack/echo/v5"

	"sluice/queue"
)

// aboutView is what an operator should know of the node that answers. Limits are as on the command line, "" = off.
type aboutView struct {
	Node     string      `json:"node"`
	Version  string      `json:"version"`
	BrokerUI string      `json:"broker_ui_url,omitempty"`
	Limits   aboutLimits `json:"limits"`
	Payment  string      `json:"payment"` // as in the welcome frame
	Time     int64       `json:"time"`    // ms since the epoch
}

type aboutLimits struct {
	User    string `json:"user"`
	Address string `json:"address"`
	Node    string `json:"node"`
}

// about is GET /admin/about.
func (s *Server) about(c *echo.Context) error {
	limit := func(r queue.Rate) string {
		if !r.On() {
			return ""
		}
		return r.String()
	}
	set := s.current()
	return c.JSON(http.StatusOK, aboutView{
		Node:     s.opts.Node,
		Version:  s.opts.Version,
		BrokerUI: s.opts.BrokerUI,
		Limits:   aboutLimits{User: limit(set.UserLimit), Address: limit(set.AddressLimit), Node: limit(set.NodeLimit)},
		Payment:  s.payment(),
		Time:     s.now().UnixMilli(),
	})
}
