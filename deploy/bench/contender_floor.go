package main

import (
	"net/http"

	"github.com/labstack/echo/v5"
)

// newFloor answers every grab with "sold out" once it knows who asks: what Echo, an HMAC and an answer cost by themselves.
func newFloor(secret []byte) http.Handler {
	e := echo.New()
	e.POST("/api/v1/seckill/:sale", func(c *echo.Context) error {
		header := c.Request().Header
		if !signed(secret, header.Get("X-User-Id"), header.Get("X-Token")) {
			return c.JSON(http.StatusUnauthorized, map[string]any{"code": 401, "msg": "who are you?"})
		}
		return c.JSON(http.StatusOK, map[string]any{"code": -2, "msg": "sold out"})
	})
	return e
}
