package server

import (
	"strconv"

	"github.com/labstack/echo/v5"
)

// How long a page of a list is, unless ?limit= says so, and at most.
const (
	usualPage   = 50
	longestPage = 200
)

// pageLimit reads ?limit=.
func pageLimit(c *echo.Context) (int, error) {
	text := c.QueryParam("limit")
	if text == "" {
		return usualPage, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > longestPage {
		return 0, invalid("limit must be a whole number from 1 to %d, not %q", longestPage, clip(text))
	}
	return limit, nil
}
