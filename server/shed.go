package server

import (
	"fmt"
	"time"

	"github.com/gorilla/websocket"
	"github.com/labstack/echo/v5"

	"sluice/queue"
)

// shedAfter is when those are to come back for whom there was no room, at the earliest.
const shedAfter = 2 * time.Second

// admit is before every request: it answers those whose connection is beyond a bound. Sockets hear it from openSocket, in a way
// that a browser can read.
func (s *Server) admit(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		caller := callerOf(c.Request().Context())
		if caller == nil {
			return next(c)
		}
		switch why := caller.why(); {
		case why == welcomed && c.Request().ContentLength != 0:
			caller.begins() // readBody has it speak
			return next(c)
		case why == welcomed:
			caller.speaks()
			return next(c)
		case why == tooMany && websocket.IsWebSocketUpgrade(c.Request()):
			return next(c)
		default:
			c.Response().Header().Set(echo.HeaderConnection, "close")
			return s.turnAway(why)
		}
	}
}

// turnAway is the answer to a connection that is beyond a bound.
func (s *Server) turnAway(why refusedAs) error {
	if why == tooMany {
		s.counted.refused("connections")
		most := s.current().ConnsAddress
		return &queue.Error{
			Code: queue.Limited, RetryAfter: shedAfter, Limit: int64(most),
			Message: manyConnections(most) + "; you keep your place, try again in a moment",
		}
	}
	s.counted.refused("crowded")
	return &queue.Error{
		Code: queue.Unavailable, RetryAfter: shedAfter,
		Message: "it is crowded: this server has no room for another connection just now; you keep your place, try again in a moment",
	}
}

func manyConnections(most int) string {
	return fmt.Sprintf("too many connections from your address: at most %d", most)
}
