package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// wire is what is no HTTP, or claims to be more than one request.
type wire []byte

// wire makes one up.
func (f *forger) wire() wire {
	const host = "Host: sluice.example\r\n"
	post := "POST /api/v1/sales/" + f.siege.sale + "/grab HTTP/1.1\r\n" + host + "Authorization: Bearer " + f.siege.tokens[f.IntN(hostileUsers)] + "\r\n"
	get := "GET /api/v1/sales HTTP/1.1\r\n"
	hidden := "GET /api/v1/admin/about HTTP/1.1\r\n" + host + "\r\n"
	return wire(one(f,
		func() string { // the first line
			return one(f, "", "\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/1.1", "GET  /  HTTP/1.1\r\n\r\n", "GET / HTTP/9.9\r\n"+host+"\r\n", "GET / HTTP/0.9\r\n\r\n", "GET / http/1.1\r\n"+host+"\r\n",
				"GE\x00T / HTTP/1.1\r\n"+host+"\r\n", "G ET / HTTP/1.1\r\n"+host+"\r\n", "GET /\x00 HTTP/1.1\r\n"+host+"\r\n", "GET /\x7f HTTP/1.1\r\n"+host+"\r\n", "GET \xff HTTP/1.1\r\n"+host+"\r\n", "GET api HTTP/1.1\r\n"+host+"\r\n", "GET /%zz HTTP/1.1\r\n"+host+"\r\n", "GET /api/v1/sales/%u0000 HTTP/1.1\r\n"+host+"\r\n",
				"OPTIONS * HTTP/1.1\r\n"+host+"\r\n", "GET * HTTP/1.1\r\n"+host+"\r\n", "CONNECT evil.example:443 HTTP/1.1\r\n"+host+"\r\n", "CONNECT / HTTP/1.1\r\n"+host+"\r\n", "GET http://[::1 HTTP/1.1\r\n"+host+"\r\n", "GET //evil.example/%2e%2e HTTP/1.1\r\n"+host+"\r\n",
				"GET /"+strings.Repeat("a", 100_000)+" HTTP/1.1\r\n"+host+"\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"+strings.Repeat("\x00", 200),
				"SSH-2.0-OpenSSH_9.9\r\n", "*1\r\n$8\r\nFLUSHALL\r\n", "AMQP\x00\x00\x09\x01", string(f.noise(1+f.IntN(3000))))
		},
		func() string { // the header
			return get + one(f, "", "Host: a\r\nHost: b\r\n", "Host: a b\r\n", "Host: a/b\r\n", "Host: \xff\r\n", host+"A\r\n", host+": a\r\n", host+"A : b\r\n", host+"A: b\r\n c\r\n", host+"A: \x00\r\n", host+"A: \x01\x7f\r\n", host+"A\x00: b\r\n", host+"A: b\n", "A: b\r"+host,
				host+strings.Repeat("A: b\r\n", 3000), host+"A: "+strings.Repeat("b", 20_000)+"\r\n", host+strings.Repeat("a", 20_000)+": b\r\n", host+"Expect: 200-maybe\r\n", host+"Connection: "+strings.Repeat("close,", 500)+"\r\n",
				host+"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", host+"Trailer: Authorization\r\n", host+"Range: bytes=0-0\r\nRange: bytes=1-1\r\n") + "\r\n"
		},
		func() string { // how long the body is, and what hides behind it
			return post + one(f,
				"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+hidden, "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\n"+hidden+"\r\n0\r\n\r\n",
				"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "Content-Length: 0\r\nContent-Length: 0\r\n\r\n"+hidden, "Content-Length: -1\r\n\r\n", "Content-Length: +2\r\n\r\n{}", "Content-Length: 1e3\r\n\r\n{}", "Content-Length: 0x2\r\n\r\n{}", "Content-Length: 2, 2\r\n\r\n{}", "Content-Length: \r\n\r\n{}",
				"Content-Length: 99999999999999999999\r\n\r\n{}", "Content-Length: 9223372036854775807\r\n\r\n{}", "Content-Length: 1000\r\n\r\n{}", "Content-Length: 2\r\n\r\n{}"+hidden, "Content-Length : 2\r\n\r\n{}", "\r\n{}",
				"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding: \tchunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "transfer_encoding: chunked\r\n\r\n0\r\n\r\n"+hidden)
		},
		func() string { // chunks
			return post + "Transfer-Encoding: chunked\r\n\r\n" + one(f, "", "0", "0\r\n", "2\r\n{}\r\n", "2\r\n{}0\r\n\r\n", "-1\r\n{}\r\n", "ffffffffffffffff\r\n{}", "fffffffffffffffff\r\n{}", "0x2\r\n{}\r\n0\r\n\r\n", "2;a="+strings.Repeat("b", 20_000)+"\r\n{}\r\n0\r\n\r\n", "2\n{}\n0\n\n", " 2\r\n{}\r\n0\r\n\r\n",
				"g\r\n", "0\r\nX-User-Id: shopper-before\r\nContent-Length: 5\r\n\r\n"+hidden, "0\r\n"+strings.Repeat("A: b\r\n", 3000)+"\r\n", strings.Repeat("1\r\n \r\n", 20_000)+"0\r\n\r\n", "2\r\n{}\r\n0\r\n\r\n"+hidden)
		},
		func() string { // many at once
			return strings.Repeat(get+host+"\r\n", 1+f.IntN(50)) + one(f, "", "\x00", get, hidden)
		},
		func() string { // a socket that is none
			return "GET /ws/v1/sales/" + f.siege.sale + " HTTP/1.1\r\n" + host + "Connection: Upgrade\r\nUpgrade: websocket\r\n" + one(f, "", "Sec-WebSocket-Version: 13\r\n", "Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n",
				"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 12\r\n", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Key: BBBBBBBBBBBBBBBBBBBBBB==\r\nSec-WebSocket-Version: 13, 8\r\n",
				"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: "+strings.Repeat("a,", 4000)+"\r\n", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\nContent-Length: 4\r\n") + "\r\n" + one(f, "", "\x81\x00", hidden, "body")
		},
	)())
}

// statusLine is the beginning of an answer.
var statusLine = regexp.MustCompile(`HTTP/1\.[01] (\d{3}) [^\r]*\r\n`)

func (w wire) send(address string) effect {
	v := effect{kind: "wire", sent: w, answer: "nothing"}
	came, hangs, err := drained(address, w)
	if err != nil {
		v.wrong = err.Error()
		return v
	}
	if hangs {
		v.wrong = "it is neither answered nor ended"
	}
	for _, answer := range statusLine.FindAllSubmatch(came, -1) {
		v.answer = string(answer[1])
		switch status := string(answer[1]); {
		case status == "501", status == "505": // net/http's word for a coding and a version that there are not
		case status == "503": // for nobody: who ends the sending has gone, and what was begun for them is given up
		case status[0] == '5':
			v.wrong = "a status that only a broken server has"
		}
	}
	if bytes.Contains(came, []byte(`"limits"`)) {
		v.wrong = "what hid behind a request got what only operators may see"
	}
	if bytes.Contains(came, []byte("Sec-WebSocket-Version")) && !bytes.Contains(came, []byte("problem+json")) {
		v.wrong = "a handshake is refused in a form of its own"
	}
	if bytes.Contains(came, []byte("+OK\r\n")) {
		v.wrong = "another protocol is spoken here"
	}
	if v.wrong != "" {
		v.wrong += fmt.Sprintf("\nanswer: %.500q", came)
	}
	return v
}
