package server

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/labstack/echo/v5"

	"sluice/hub"
	"sluice/queue"
)

// subprotocol is what both sides of a socket speak.
const subprotocol = "sluice.v1"

// Close codes of the protocol that the server's side of a conversation uses; the hub has its own.
const (
	closeLeft        = websocket.CloseNormalClosure
	closeBadMessage  = 4400
	closeBadToken    = 4401
	closeNotAllowed  = 4403
	closeNoSale      = 4404
	closeTooManyTabs = 4409
	closeTooMuch     = 4429
)

// longest is how long a frame other than hello may be, in bytes.
const longest = 4 << 10

// callTimeout bounds what one frame of a shopper may wait for.
const callTimeout = 10 * time.Second

// openSocket is GET /ws/v1/sales/{sale}. A browser cannot read a refused handshake, so what is wrong with the request is
// told over the socket, as a close code.
func (s *Server) openSocket(c *echo.Context) error {
	if s.opts.Hub == nil || s.notReady.Load() {
		return &queue.Error{Code: queue.Unavailable, Message: "this node takes no new connections; try again in a moment", RetryAfter: time.Second}
	}
	if !websocket.IsWebSocketUpgrade(c.Request()) {
		return badRequest("this address speaks WebSocket, subprotocol " + subprotocol)
	}
	// The context belongs to the framework once the handler returns: everything that is needed later is copied here.
	visit := &visit{
		server:   s,
		sale:     strings.Clone(c.Param("sale")),
		address:  strings.Clone(addressOf(c)),
		peer:     clientOf(c),
		language: s.languageOf(c.Request()),
	}
	allowed := s.originAllowed(c.Request())
	visit.caller = callerOf(c.Request().Context())
	beyond := visit.claim(c)
	if beyond == crowdedOut {
		return s.turnAway(beyond)
	}
	conn, err := s.upgrader.Upgrade(c.Response(), c.Request(), nil)
	if refused := (websocket.HandshakeError{}); errors.As(err, &refused) {
		c.Response().Header().Set("Sec-WebSocket-Version", "13")
		return badRequest("this is no handshake of a WebSocket: it takes version 13 and a key of 16 bytes")
	}
	if err != nil {
		return nil //nolint:nilerr // the connection has been taken over and closed
	}
	visit.caller.upgrades()
	visit.caller.falls() // until it says a hello that is accepted
	if beyond == tooMany {
		s.counted.refused("connections")
		visit.refuse = refusal{closeTooMuch, manyConnections(s.current().ConnsAddress)}
	} else if !allowed {
		visit.refuse = refusal{closeNotAllowed, "origin"}
	} else if s.registry.room(visit.sale) == nil {
		// A sale that was applied this very second may not have its room yet.
		if _, err := s.settings(c.Request().Context(), visit.sale); queue.CodeOf(err) == queue.NoSuchSale {
			visit.refuse = refusal{closeNoSale, "no such sale"}
		}
	}
	session := s.opts.Hub.Accept(conn, visit)
	if visit.refuse.code != 0 {
		session.Close(visit.refuse.code, visit.refuse.reason)
	}
	return nil
}

// claim counts the socket for the address of its shopper.
func (v *visit) claim(c *echo.Context) refusedAs {
	address, err := netip.ParseAddr(c.RealIP())
	if err != nil { // no proxy of ours said so
		return v.caller.why()
	}
	return v.caller.claim(address)
}

func newUpgrader() *websocket.Upgrader {
	return &websocket.Upgrader{
		ReadBufferSize:  hub.ReadBufferSize,
		WriteBufferSize: hub.WriteBufferSize,
		WriteBufferPool: new(sync.Pool), // a socket has a write buffer only while it writes
		Subprotocols:    []string{subprotocol},
		CheckOrigin:     func(*http.Request) bool { return true },                // originAllowed decides, and says so in a way that can be read
		Error:           func(http.ResponseWriter, *http.Request, int, error) {}, // openSocket says it like everything else
	}
}

type refusal struct {
	code   int
	reason string
}
