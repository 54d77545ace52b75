package main

import (
	"bytes"
	endian "encoding/binary" // this package has a binary of its own
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Opcodes of RFC 6455, 5.2.
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xA
)

// wireFrame is a frame as it goes over the wire, right or wrong.
type wireFrame struct {
	more    bool // not the last of its message
	rsv, op byte
	plain   bool  // not masked, as only a server may send it
	length  int64 // what it says of its length, beyond what is true; 0 = the truth
	long    bool  // the length in eight bytes, whatever it is
	payload []byte
}

// bytes are the frame, masked with a mask that is not all zero.
func (w wireFrame) bytes() []byte {
	first, mask := w.op|w.rsv<<4, byte(0x80)
	if !w.more {
		first |= 0x80
	}
	if w.plain {
		mask = 0
	}
	length := int64(len(w.payload)) + w.length
	b := []byte{first}
	switch {
	case w.long || length > 0xffff:
		b = endian.BigEndian.AppendUint64(append(b, 127|mask), uint64(length))
	case length > 125:
		b = endian.BigEndian.AppendUint16(append(b, 126|mask), uint16(length))
	default:
		b = append(b, byte(length)|mask)
	}
	if w.plain {
		return append(b, w.payload...)
	}
	key := [4]byte{1, 2, 3, 4}
	b = append(b, key[:]...)
	for i, c := range w.payload {
		b = append(b, c^key[i%4])
	}
	return b
}

func textFrame(payload string) []byte { return wireFrame{op: opText, payload: []byte(payload)}.bytes() }

// conversation is all that one shopper sends over a socket: the request for one, and then the rest.
type conversation struct{ upgrade, frames []byte }

// conversation makes one up: mostly somebody who says hello as they should, and then goes wrong.
func (f *forger) conversation() conversation {
	var b bytes.Buffer
	sale := one(f, f.siege.sale, f.siege.sale, f.siege.sale, f.siege.lottery, f.siege.spare, hostileMark)
	fmt.Fprintf(&b, "GET /ws/v1/sales/%s HTTP/1.1\r\nHost: sluice.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: sluice.v1\r\n%s\r\n", sale, one(f, "", "", "", "Origin: https://evil.example\r\n", "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"))
	c := conversation{upgrade: bytes.Clone(b.Bytes())}
	b.Reset()
	token := f.siege.tokens[f.IntN(hostileUsers)]
	if !f.odds(4) {
		b.Write(textFrame(fmt.Sprintf(`{"type":"hello","token":%q}`, token)))
	}
	for range 1 + f.IntN(3) {
		if f.odds(2) {
			b.Write(f.frames())
		} else {
			b.Write(textFrame(f.message(token)))
		}
	}
	if f.odds(2) {
		b.Write(wireFrame{op: opClose, payload: one(f, nil, []byte{3}, closing(1000, ""), closing(0, ""), closing(999, ""), closing(1004, ""), closing(1005, ""), closing(1006, ""), closing(1015, ""),
			closing(2999, ""), closing(4400, ""), closing(5000, ""), closing(65535, ""), closing(1000, "\xff"), closing(1000, strings.Repeat("a", 123)))}.bytes())
	}
	c.frames = b.Bytes()
	return c
}

func closing(code uint16, reason string) []byte {
	return append(endian.BigEndian.AppendUint16(nil, code), reason...)
}

// frames are what RFC 6455 forbids, or allows and nobody sends.
func (f *forger) frames() []byte {
	text := []byte(f.message(f.siege.tokens[0]))
	frames := one(f,
		[]wireFrame{{op: opText, plain: true, payload: text}},
		[]wireFrame{{op: opText, rsv: byte(1 + f.IntN(7)), payload: text}},
		[]wireFrame{{op: one[byte](f, 3, 4, 5, 6, 7, 11, 12, 13, 14, 15), payload: text}},
		[]wireFrame{{op: one[byte](f, opPing, opPong, opClose), more: true, payload: []byte("a")}},
		[]wireFrame{{op: one[byte](f, opPing, opPong, opClose), payload: bytes.Repeat([]byte("a"), 126)}},
		[]wireFrame{{op: opContinuation, payload: text}},
		[]wireFrame{{op: opText, more: true, payload: text}, {op: opText, payload: text}},
		[]wireFrame{{op: opText, more: true, payload: text[:len(text)/2]}, {op: opPing}, {op: opContinuation, payload: text[len(text)/2:]}},
		[]wireFrame{{op: opText, more: true}, {op: opContinuation, more: true}, {op: opContinuation}},
		[]wireFrame{{op: opText, payload: []byte("{\"type\":\"\xff\"}")}},
		[]wireFrame{{op: opText, payload: []byte("\xed\xa0\x80")}},
		[]wireFrame{{op: opBinary, payload: f.noise(f.IntN(300))}},
		[]wireFrame{{op: opText, payload: bytes.Repeat([]byte(" "), one(f, 4095, 4096, 4097, 16383, 16384, 16385, 70_000, 1<<20))}},
		[]wireFrame{{op: opText, length: one[int64](f, 1, 100, 1<<20, 1<<40, 1<<62), payload: text}},
		[]wireFrame{{op: opText, long: true, length: -1 << 62, payload: text}},
		[]wireFrame{{op: opText, long: true, payload: text}},
	)
	if f.odds(8) { // a flood
		frames = make([]wireFrame, 200)
		op := one[byte](f, opPing, opPong, opText)
		for i := range frames {
			frames[i] = wireFrame{op: op, payload: bytes.Repeat([]byte("a"), f.IntN(125))}
		}
	}
	if f.odds(10) {
		return f.noise(1 + f.IntN(500))
	}
	var b []byte
	for _, frame := range frames {
		b = append(b, frame.bytes()...)
	}
	return b
}

// message is one of the protocol, in the wrong place or with the wrong things in it.
func (f *forger) message(token string) string {
	hello := func(format string, args ...any) string {
		return fmt.Sprintf(`{"type":"hello","token":%q`+format+"}", append([]any{token}, args...)...)
	}
	switch f.IntN(6) {
	case 0:
		return one(f, "", "null", "[]", "{}", "{", `"grab"`, "{}{}", "\ufeff{}", `{"type":null}`, `{"type":7}`, `{"type":["grab"]}`, `{"type":"GRAB"}`, `{"type":"welcome"}`, `{"type":"success","order":{}}`, `{"type":"`+strings.Repeat("x", 3000)+`"}`,
			strings.Repeat("[", 4000), strings.Repeat(`{"a":`, 800), `{"type":"grab","type":"leave"}`, `{"type":"\ud800"}`, `{"type":"turn","until":9999999999999}`, `{"type":"moving"}`)
	case 1:
		return one(f, hello(""), hello(`,"seat":%q`, f.siege.seat), hello(`,"seat":"x"`), hello(`,"seat":%q`, strings.Repeat("x", 3000)), hello(`,"order":%q`, f.siege.prey), hello(`,"order":"%s"`, f.uuid()), hello(`,"order":"'; DROP TABLE orders; --"`),
			hello(`,"order":"\u0000"`), hello(`,"seat":7`), hello(`,"code":{}`), hello(`,"token":""`), `{"type":"hello"}`, `{"type":"hello","token":null}`, `{"type":"hello","token":`+fmt.Sprintf("%q", f.siege.tokens[f.IntN(hostileUsers)])+`}`,
			`{"type":"hello","token":"`+e2eAdmin+`"}`, `{"type":"hello","token":"`+f.siege.seat+`"}`, hello(`,"challenge":%q`, strings.Repeat("x", 12_000)))
	case 2:
		return `{"type":"leave"}`
	}
	return fmt.Sprintf(`{"type":"grab","id":%s,"item":%s,"qty":%s}`, one(f, f.value(), `"r1"`), one(f, f.value(), `"main"`), one(f, f.value(), "1"))
}

func (c conversation) send(address string) effect {
	v := effect{kind: "conversation", sent: c.frames, answer: "nothing"}
	came, hangs, err := drained(address, c.upgrade, c.frames)
	switch {
	case err != nil:
		v.wrong = err.Error()
		return v
	case hangs:
		v.wrong = "it is not ended"
		return v
	}
	v.answer, v.wrong = heard(came)
	if v.wrong != "" {
		v.wrong += fmt.Sprintf("\nheard: %.1500q", came)
	}
	return v
}

// heard reads what came over a socket: how it ended, and what is wrong with it.
func heard(came []byte) (answer, wrong string) {
	head, rest, ok := bytes.Cut(came, []byte("\r\n\r\n"))
	switch {
	case !ok || !bytes.HasPrefix(head, []byte("HTTP/1.1 101 ")):
		return "refused", "a socket is refused"
	}
	answer = "no close frame"
	for len(rest) > 0 {
		if strings.HasPrefix(answer, "close") && answer != "close 1002" { // which gorilla may put in between
			return answer, "something comes after the close frame"
		}
		if len(rest) < 2 || len(rest) < int(rest[1]&0x7f) && rest[1]&0x7f < 126 {
			return answer, "" // cut off
		}
		first, length, at := rest[0], uint64(rest[1]), 2
		if rest[1]&0x80 != 0 || first&0x70 != 0 || first&0x80 == 0 {
			return answer, "a frame that no server sends"
		}
		switch {
		case length == 126 && len(rest) >= 4:
			length, at = uint64(endian.BigEndian.Uint16(rest[2:])), 4
		case length == 127 && len(rest) >= 10:
			length, at = endian.BigEndian.Uint64(rest[2:]), 10
		}
		if uint64(len(rest)) < uint64(at)+length {
			return answer, ""
		}
		payload := rest[at : uint64(at)+length]
		rest = rest[uint64(at)+length:]
		switch first & 0xf {
		case opText:
			var frame struct {
				Type, Code string
				At         int64
			}
			if err := json.Unmarshal(payload, &frame); err != nil || frame.Type == "" || frame.At == 0 || !utf8.Valid(payload) {
				return answer, fmt.Sprintf("a frame that is none of the protocol: %q", payload)
			}
			if frame.Code == "unavailable" {
				return answer, "it is called unavailable, and all is well"
			}
		case opClose:
			answer = "close"
			if len(payload) >= 2 {
				code := endian.BigEndian.Uint16(payload)
				answer = fmt.Sprintf("close %d", code)
				// 1011 is the hub's word for a handler that panicked.
				if code < 1000 || code == 1004 || code == 1005 || code == 1006 || code == 1011 || code == 1015 || code >= 5000 || !utf8.Valid(payload[2:]) {
					return answer, "a close frame that must not be sent"
				}
			}
		case opPing, opPong:
		default:
			return answer, "a frame of no known kind"
		}
	}
	return answer, ""
}
