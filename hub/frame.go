package hub

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/gorilla/websocket"
)

// Frame is one text message to peers. It is encoded once, never changes, and may be given to any number of sessions.
type Frame struct {
	wire    []byte // as it goes over the wire
	head    int    // bytes of it before the text
	late    *late  // of a frame that is not encoded before it is written; nil = it is encoded
	written func()
}

// late is how a frame comes by its text when it is to be written.
type late struct {
	once sync.Once
	done atomic.Bool // the frame is encoded
	text func() []byte
}

// NewFrame makes the frame of a JSON text.
func NewFrame(text []byte) *Frame {
	f := &Frame{}
	f.encode(text)
	return f
}

// NewLateFrame makes a frame whose text is dear to write: text is called once, by whoever is the first to write the frame to
// a peer, so that it holds up nobody else, and never when nobody does. It must not block.
func NewLateFrame(text func() []byte) *Frame { return &Frame{late: &late{text: text}} }

func (f *Frame) encode(text []byte) {
	wire := appendFrame(make([]byte, 0, maxHead+len(text)), websocket.TextMessage, text)
	f.wire, f.head = wire, len(wire)-len(text)
}

// ready says whether the frame is encoded.
func (f *Frame) ready() bool { return f.late == nil || f.late.done.Load() }

// finish encodes a frame that is not ready, or waits until somebody else has.
func (f *Frame) finish() {
	f.late.once.Do(func() {
		f.encode(f.late.text())
		f.late.done.Store(true)
	})
}

// Bytes are the JSON text. They belong to the frame.
func (f *Frame) Bytes() []byte {
	if !f.ready() {
		f.finish()
	}
	return f.wire[f.head:]
}

// OnWrite has fn called each time the frame was handed to the kernel for a session, from the goroutine that wrote it.
// fn must not block. Call it before the frame is sent.
func (f *Frame) OnWrite(fn func()) *Frame {
	f.written = fn
	return f
}

// maxHead is the most that goes before a message without a mask, in bytes.
const maxHead = 10

// appendFrame encodes a whole message as a server sends it, in one frame and without a mask (RFC 6455, section 5.2).
func appendFrame(to []byte, opcode byte, payload []byte) []byte {
	to = append(to, 0x80|opcode) // the last frame of its message
	switch n := len(payload); {
	case n < 126:
		to = append(to, byte(n))
	case n < 1<<16:
		to = binary.BigEndian.AppendUint16(append(to, 126), uint16(n))
	default:
		to = binary.BigEndian.AppendUint64(append(to, 127), uint64(n))
	}
	return append(to, payload...)
}
