package main

import (
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"sluice/hub"
)

// ourHub is Sluice's hub without the rest of a node: every connection is a session of one group from the start.
type ourHub struct {
	hub *hub.Hub
}

func newOurHub() *ourHub { return &ourHub{hub: hub.New(hub.Options{HelloWithin: 24 * time.Hour})} }

func (o *ourHub) upgrader() *websocket.Upgrader {
	return &websocket.Upgrader{ReadBufferSize: hub.ReadBufferSize, WriteBufferSize: hub.WriteBufferSize, WriteBufferPool: new(sync.Pool)}
}

func (o *ourHub) accept(conn *websocket.Conn) {
	session := o.hub.Accept(conn, silent{})
	_ = session.Bind("sale", session.ID()) // fails only when the peer has gone already, and then nobody misses it
}

func (o *ourHub) broadcast(message []byte) { o.hub.Broadcast("sale", hub.NewFrame(message)) }

// silent hears and ignores.
type silent struct{}

// Hello, Message and Closed implement [hub.Handler].
func (silent) Hello(*hub.Session, []byte)   {}
func (silent) Message(*hub.Session, []byte) {}
func (silent) Closed(*hub.Session)          {}
