package hub

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"
)

// FuzzWire has a peer send anything at all once it is connected. The handler hears of nothing but text within the limits,
// the peer hears of nothing but whole frames with the close frame as the last, and nothing is left of the session.
func FuzzWire(f *testing.F) {
	f.Add([]byte("\x81\x82\x00\x00\x00\x00hi\x88\x82\x00\x00\x00\x00\x03\xe8"))
	f.Add([]byte("\x81\x02hi"))                                                                               // no mask
	f.Add([]byte("\xc1\x82\x00\x00\x00\x00hi"))                                                               // compressed
	f.Add([]byte("\x01\x81\x00\x00\x00\x00h\x89\x80\x00\x00\x00\x00\x80\x81\x00\x00\x00\x00i"))               // in two parts, with a ping between them
	f.Add([]byte("\x80\x81\x00\x00\x00\x00i"))                                                                // a second part without a first
	f.Add([]byte("\x09\x80\x00\x00\x00\x00"))                                                                 // a ping in parts
	f.Add([]byte("\x89\xfe\x00\x80\x00\x00\x00\x00"))                                                         // a long ping
	f.Add([]byte("\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00"))                                 // longer than anything
	f.Add([]byte("\x81\xff\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))                                 // shorter than nothing
	f.Add([]byte("\x81\x81\x00\x00\x00\x00\xff"))                                                             // no text
	f.Add([]byte("\x82\x81\x00\x00\x00\x00x"))                                                                // binary
	f.Add([]byte("\x88\x82\x00\x00\x00\x00\x03\xee"))                                                         // closed with 1006
	f.Add([]byte("\x8a\x80\x00\x00\x00\x00\x8a\x80\x00\x00\x00\x00\x8a\x80\x00\x00\x00\x00\x81\xfe\x00\x40")) // pongs, and the beginning of a message
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { listener.Close() })
	f.Fuzz(func(t *testing.T, sent []byte) {
		h := New(Options{MaxHello: 300, MaxMessage: 100, Logger: slog.New(loud{t})})
		defer h.Close()
		peer, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		near, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		r := newRecorder(t)
		r.do = func(_ *Session, msg string) {
			if len(msg) > 300 || !utf8.ValidString(msg) {
				t.Errorf("the handler heard %q", msg)
			}
		}
		upgrader := websocket.Upgrader{ReadBufferSize: ReadBufferSize, WriteBufferSize: WriteBufferSize, WriteBufferPool: new(sync.Pool)}
		conn, err := upgrader.Upgrade(&taken{conn: near, header: http.Header{}}, &http.Request{Method: http.MethodGet, Header: http.Header{
			"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="},
		}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		session := h.Accept(conn, r)
		session.Send(NewFrame([]byte("welcome")))
		if _, err := peer.Write(sent); err == nil {
			_ = peer.(*net.TCPConn).CloseWrite()
		}
		_ = peer.SetReadDeadline(time.Now().Add(patient))
		reader := bufio.NewReader(peer)
		_, err = http.ReadResponse(reader, nil)
		if err == nil {
			var came []byte
			came, err = io.ReadAll(reader)
			mustBeFrames(t, came)
		}
		// Closing a connection with unread bytes resets it, and the reset may overtake what was said before.
		if network, ok := err.(net.Error); ok && network.Timeout() {
			t.Error("the connection does not end")
		}
		await(t, r.closed, "Closed")
	})
}

// mustBeFrames checks that what came are whole frames of a server, of which the last may be cut off, and that nothing comes
// after the close frame. Only what gorilla's reader says of a broken frame, by 1002, may cross what is being written.
func mustBeFrames(t *testing.T, came []byte) {
	t.Helper()
	for closed := false; len(came) >= 2; {
		length, at := int(came[1]), 2
		if length == 126 && len(came) >= 4 {
			length, at = int(binary.BigEndian.Uint16(came[2:])), 4
		}
		if first := came[0]; first&0xf0 != 0x80 || length > 126 && at == 2 || closed {
			t.Errorf("the peer heard %q", came)
			return
		}
		if len(came) < at+length {
			return
		}
		if came[0] == 0x88 {
			code := websocket.CloseNormalClosure
			if length >= 2 {
				code = int(binary.BigEndian.Uint16(came[at:]))
			}
			if closed = code != websocket.CloseProtocolError; !sendable(code) {
				t.Errorf("the connection was closed with %q", came[at:at+length])
			}
		}
		came = came[at+length:]
	}
}

// loud is a log in which nothing may be an error.
type loud struct{ t *testing.T }

func (loud) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }
func (l loud) WithAttrs([]slog.Attr) slog.Handler             { return l }
func (l loud) WithGroup(string) slog.Handler                  { return l }
func (l loud) Handle(_ context.Context, r slog.Record) error {
	l.t.Error(r.Message)
	return nil
}

// taken is an answer whose connection is about to be taken over.
type taken struct {
	http.ResponseWriter
	conn   net.Conn
	header http.Header
}

func (a *taken) Header() http.Header { return a.header }
func (a *taken) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return a.conn, bufio.NewReadWriter(bufio.NewReader(a.conn), bufio.NewWriter(a.conn)), nil
}
