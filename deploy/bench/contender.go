package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// contendCmd is a server that Sluice is compared with, in a process of its own.
type contendCmd struct {
	Kind     string `arg:"" enum:"chat,bare,hub,plain,floor"`
	Redis    string `help:"Redis, for plain."`
	Secret   string `help:"Secret of the HMAC pair, for plain and floor."`
	Stock    int64  `help:"Units on sale, for plain."`
	Database string `help:"MySQL, as the driver wants it, for plain."`
}

// audience is a server of WebSocket connections which all get what is broadcast.
type audience interface {
	// accept takes a connection over; it may keep the goroutine of the handler.
	accept(conn *websocket.Conn)
	// broadcast has a message written to all, and need not wait until it is.
	broadcast(message []byte)
	upgrader() *websocket.Upgrader
}

// Run serves until it is told to stop.
func (c *contendCmd) Run(std *stdio) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.Handler())
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	var room audience
	switch c.Kind {
	case "chat":
		room = newChat()
	case "bare":
		room = newBare()
	case "hub":
		room = newOurHub()
	case "plain":
		plain, err := newPlain(ctx, c)
		if err != nil {
			return err
		}
		mux.Handle("/api/", plain)
	case "floor":
		mux.Handle("/api/", newFloor([]byte(c.Secret)))
	}
	if room != nil {
		serveAudience(mux, room)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(std.out, "ready", listener.Addr())
	server := &http.Server{Handler: mux}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	_ = server.Serve(listener) // ends with Close
	return nil
}

func serveAudience(mux *http.ServeMux, room audience) {
	up := room.upgrader()
	mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) {
		if conn, err := up.Upgrade(w, r, nil); err == nil {
			room.accept(conn)
		}
	})
	mux.HandleFunc("/broadcast", func(w http.ResponseWriter, r *http.Request) {
		times, err := strconv.Atoi(r.FormValue("times"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for range times {
			room.broadcast([]byte(r.FormValue("message")))
		}
	})
}
