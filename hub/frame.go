package hub

import (
	"sync"
	"sync/atomic"

	"github.com/gorilla/websocket"
)

// Frame is one text message to peers. It is encoded once, never changes, and may be given to any number of sessions.
type Frame struct {
	data    []byte
	written func()

	once   sync.Once
	shared atomic.Pointer[websocket.PreparedMessage]
}

// NewFrame makes the frame of a JSON text, which must not be changed afterwards.
func NewFrame(data []byte) *Frame {
	return &Frame{data: data}
}

// Bytes are the JSON text. They belong to the frame.
func (f *Frame) Bytes() []byte { return f.data }

// OnWrite has fn called each time the frame was handed to the kernel for a session, from the goroutine that wrote it.
// fn must not block. Call it before the frame is sent.
func (f *Frame) OnWrite(fn func()) *Frame {
	f.written = fn
	return f
}

// Share also encodes the frame as it goes over the wire, so that each of many sessions writes the same bytes. It pays
// from the second session on; Hub.Send and Hub.Broadcast call it by themselves.
func (f *Frame) Share() *Frame {
	f.once.Do(func() {
		// This fails only for an unknown kind of message; the frame is then written unshared.
		if pm, err := websocket.NewPreparedMessage(websocket.TextMessage, f.data); err == nil {
			f.shared.Store(pm)
		}
	})
	return f
}

// writeTo writes the frame within the write deadline of conn.
func (f *Frame) writeTo(conn *websocket.Conn) error {
	var err error
	if pm := f.shared.Load(); pm != nil {
		err = conn.WritePreparedMessage(pm)
	} else {
		err = conn.WriteMessage(websocket.TextMessage, f.data)
	}
	if err == nil && f.written != nil {
		f.written()
	}
	return err
}
