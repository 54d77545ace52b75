package main

import (
	"time"

	"github.com/gorilla/websocket"
)

// chat is the pattern that gorilla's own chat example made popular: two goroutines a connection, a channel of pending
// messages for each, and one goroutine that knows them all. Buffers are of the default size. It does not batch what
// waits into one message, because every message must be a frame of its own here.
type chat struct {
	join, leave chan *chatter
	messages    chan []byte
}

type chatter struct {
	conn *websocket.Conn
	send chan []byte
}

const (
	chatWriteWait = 10 * time.Second
	chatPongWait  = 60 * time.Second
	chatPing      = chatPongWait * 9 / 10
)

func newChat() *chat {
	c := &chat{join: make(chan *chatter), leave: make(chan *chatter), messages: make(chan []byte)}
	go c.run()
	return c
}

func (c *chat) run() {
	all := map[*chatter]bool{}
	for {
		select {
		case one := <-c.join:
			all[one] = true
		case one := <-c.leave:
			if all[one] {
				delete(all, one)
				close(one.send)
			}
		case message := <-c.messages:
			for one := range all {
				select {
				case one.send <- message:
				default:
					delete(all, one)
					close(one.send)
				}
			}
		}
	}
}

func (c *chat) upgrader() *websocket.Upgrader {
	return &websocket.Upgrader{ReadBufferSize: 1024, WriteBufferSize: 1024}
}

func (c *chat) broadcast(message []byte) { c.messages <- message }

func (c *chat) accept(conn *websocket.Conn) {
	one := &chatter{conn: conn, send: make(chan []byte, 256)}
	c.join <- one
	go one.write()
	go func() {
		defer conn.Close()
		defer func() { c.leave <- one }()
		conn.SetReadLimit(512)
		_ = conn.SetReadDeadline(time.Now().Add(chatPongWait))
		conn.SetPongHandler(func(string) error { return conn.SetReadDeadline(time.Now().Add(chatPongWait)) })
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				return
			}
		}
	}()
}

func (one *chatter) write() {
	ping := time.NewTicker(chatPing)
	defer ping.Stop()
	defer one.conn.Close()
	for {
		select {
		case message, open := <-one.send:
			_ = one.conn.SetWriteDeadline(time.Now().Add(chatWriteWait))
			if !open {
				_ = one.conn.WriteMessage(websocket.CloseMessage, nil)
				return
			}
			if one.conn.WriteMessage(websocket.TextMessage, message) != nil {
				return
			}
		case <-ping.C:
			_ = one.conn.SetWriteDeadline(time.Now().Add(chatWriteWait))
			if one.conn.WriteMessage(websocket.PingMessage, nil) != nil {
				return
			}
		}
	}
}
