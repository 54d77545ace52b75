package server

import (
	"net/http"

	"github.com/labstack/echo/v5"
)

// makeGuest is POST /guests.
func (s *Server) makeGuest(c *echo.Context) error {
	user, token, expires, err := s.current().identities.Guest()
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, struct {
		User      string `json:"user"`
		Token     string `json:"token"`
		ExpiresAt int64  `json:"expires_at"` // ms since the epoch
	}{user, token, expires.UnixMilli()})
}
