package hub

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

func TestTheFirstMessageIsTheHello(t *testing.T) {
	t.Parallel()
	v := newSite(t, Options{}).dial()
	for i := range 3 {
		v.say(fmt.Sprint(i))
	}
	if got := await(t, v.hello, "hello"); got != "0" {
		t.Errorf("hello is %q", got)
	}
	for i := 1; i < 3; i++ {
		if got := await(t, v.messages, "a message"); got != fmt.Sprint(i) {
			t.Errorf("message %d is %q", i, got)
		}
	}
}

func TestAMessageThatIsNotUnderstoodClosesWith4400(t *testing.T) {
	t.Parallel()
	const hello, message = 300, 100
	text := func(n int) []byte { return []byte(strings.Repeat("x", n)) }
	for _, c := range []struct {
		name   string
		kind   int
		first  []byte
		second []byte
		expect bool
		reason string
	}{
		{name: "a binary hello", kind: websocket.BinaryMessage, first: text(1), reason: "binary messages are not understood"},
		{name: "a binary message", kind: websocket.BinaryMessage, second: text(1), reason: "binary messages are not understood"},
		{name: "a long hello", first: text(hello + 1), reason: "message is longer than 300 bytes"},
		{name: "a very long hello", first: text(1 << 20), reason: "message is longer than 300 bytes"},
		{name: "a long message", second: text(message + 1), reason: "message is longer than 100 bytes"},
		{name: "a second hello that is too long", second: text(hello + 1), expect: true, reason: "message is longer than 300 bytes"},
		{name: "a text that is none", first: []byte{'"', 0xff, '"'}, reason: "message is not UTF-8"},
		{name: "a hello as long as it may be", first: text(hello)},
		{name: "a message as long as it may be", second: text(message)},
		{name: "a second hello as long as it may be", second: text(hello), expect: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := newSite(t, Options{MaxHello: hello, MaxMessage: message}).dial()
			if c.kind == 0 {
				c.kind = websocket.TextMessage
			}
			msg := c.first
			if msg == nil {
				v.greet()
				msg = c.second
			}
			if c.expect {
				v.session.ExpectHello()
			}
			if err := v.peer.WriteMessage(c.kind, msg); err != nil {
				t.Fatal(err)
			}
			if c.reason != "" {
				if _, reason := v.ends(codeBadMessage); reason != c.reason {
					t.Errorf("reason %q", reason)
				}
				if len(v.hello)+len(v.messages) > 0 {
					t.Error("the handler was given the message")
				}
				return
			}
			got := v.messages
			if c.first != nil {
				got = v.hello
			}
			if text := await(t, got, "the message"); text != string(msg) {
				t.Errorf("%d bytes arrived", len(text))
			}
		})
	}
}

func TestOneSecondHelloMayBeLong(t *testing.T) {
	t.Parallel()
	v := newSite(t, Options{MaxHello: 300, MaxMessage: 100}).dial()
	v.greet()
	v.session.ExpectHello()
	v.say("short ones do not use it up")
	v.say(strings.Repeat("x", 300))
	v.say(strings.Repeat("x", 300))
	v.ends(codeBadMessage)
	if n := len(v.messages); n != 2 {
		t.Errorf("%d messages arrived, want 2", n)
	}
}

func TestAMessageInFragmentsIsLimitedAsAWhole(t *testing.T) {
	t.Parallel()
	v := newSite(t, Options{MaxHello: 10_000}).dial()
	w, err := v.peer.NextWriter(websocket.TextMessage)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := w.Write(make([]byte, 4096)); err != nil { // longer than the peer's buffer: one frame and more
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	v.ends(codeBadMessage)
}

func TestAPeerThatBreaksTheProtocolIsClosedWith1002(t *testing.T) {
	t.Parallel()
	v := newSite(t, Options{}).dial()
	if _, err := v.peer.NetConn().Write([]byte{0x81, 0x01, 'x'}); err != nil { // a client must mask
		t.Fatal(err)
	}
	v.ends(websocket.CloseProtocolError)
	if code := v.session.bye.label; code != websocket.CloseProtocolError {
		t.Errorf("counted as %d", code)
	}
}

func TestMoreMessagesThanTheBudgetCloseWith4429(t *testing.T) {
	t.Parallel()
	const burst = 5
	s := newSite(t, Options{MessagesPerSecond: 2, Burst: burst})
	v := s.dial()
	for range burst + 3 {
		v.say("x")
	}
	v.ends(codeTooMany)
	if n := len(v.hello) + len(v.messages); n != burst {
		t.Errorf("the handler was given %d messages, want %d", n, burst)
	}
}

func TestTheBudgetOfMessagesComesBackWithTime(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{MessagesPerSecond: 2, Burst: 3})
	v := s.dial()
	v.greet()
	send := func(n int) {
		for range n {
			v.say("x")
			await(t, v.messages, "a message")
		}
	}
	send(2)
	s.clock.Advance(time.Second)
	send(2)
	s.clock.Advance(time.Hour) // the budget does not grow beyond the burst
	send(3)
	v.say("one too many")
	v.ends(codeTooMany)
	if len(v.messages) > 0 {
		t.Error("the handler was given a message beyond the budget")
	}
}

func TestPingsOfThePeerAreAnsweredAndCounted(t *testing.T) {
	t.Parallel()
	const burst = 3
	v := newSite(t, Options{Burst: burst}).dial()
	pongs := make(chan string, 10)
	v.peer.SetPongHandler(func(data string) error {
		pongs <- data
		return nil
	})
	ended := make(chan error, 1)
	go func() {
		_, _, err := v.peer.ReadMessage()
		ended <- err
	}()
	for i := range burst + 1 {
		data := fmt.Sprint("ping ", i)
		if err := v.peer.WriteControl(websocket.PingMessage, []byte(data), time.Now().Add(patient)); err != nil {
			t.Fatal(err)
		}
		if i < burst {
			if got := await(t, pongs, "a pong"); got != data {
				t.Errorf("pong says %q, want %q", got, data)
			}
		}
	}
	if err := await(t, ended, "the close"); !websocket.IsCloseError(err, codeTooMany) {
		t.Errorf("ended with %v", err)
	}
}

func TestAPanicOfTheHandlerClosesOneSessionOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	other := s.dial()
	v := s.dial(func(r *recorder) {
		r.do = func(*Session, string) { panic("oops") }
	})
	v.say("hello")
	v.ends(codeBroken)
	other.greet()
}

func TestNothingIsHandedOverOnceTheSessionIsClosing(t *testing.T) {
	t.Parallel()
	v := newSite(t, Options{}).dial(func(r *recorder) {
		r.do = func(s *Session, _ string) { s.Close(4401, "bad token") }
	})
	for range 10 {
		v.say("x")
	}
	v.ends(4401)
	if len(v.hello) != 1 || len(v.messages) != 0 {
		t.Errorf("%d hellos and %d messages arrived, want 1 and 0", len(v.hello), len(v.messages))
	}
}

func TestNothingIsSaidAfterTheCloseFrameWhateverThePeerDoes(t *testing.T) {
	t.Parallel()
	for name, frame := range map[string]string{
		"a frame without a mask":    "\x81\x01x",
		"a frame of no known kind":  "\x83\x81\x00\x00\x00\x00x",
		"a close code that is none": "\x88\x82\x00\x00\x00\x00\x03\xee",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newSite(t, Options{}).dial()
			conn := v.peer.NetConn()
			v.session.Close(4401, "bad token")
			farewell := make([]byte, 2+2+len("bad token"))
			if _, err := io.ReadFull(conn, farewell); err != nil {
				t.Fatal(err)
			}
			if want := "\x88\x0b\x11\x31bad token"; string(farewell) != want {
				t.Errorf("the close frame is %q, want %q", farewell, want)
			}
			if _, err := conn.Write([]byte(frame)); err != nil {
				t.Fatal(err)
			}
			if more, _ := io.ReadAll(conn); len(more) > 0 {
				t.Errorf("after the close frame comes %q", more)
			}
			await(t, v.closed, "Closed")
		})
	}
}

func TestWhatAHandlerPutsOffComesBeforeTheNextMessage(t *testing.T) {
	t.Parallel()
	later := make(chan func(func()), 1)
	v := newSite(t, Options{}).dial(func(r *recorder) {
		r.do = func(s *Session, msg string) {
			if msg == "hello" {
				later <- s.Later()
			}
		}
	})
	v.say("hello")
	v.say("next")
	done := await(t, later, "the handler put something off")
	await(t, v.hello, "hello")
	done(func() {
		if len(v.messages) != 0 {
			t.Error("the next message overtook what was put off")
		}
		v.session.Send(NewFrame([]byte("welcome")))
	})
	await(t, v.messages, "the next message")
	if got := v.hear(); got != "welcome" {
		t.Errorf("received %q", got)
	}
}

func TestAPanicInWhatAHandlerPutOffClosesTheSession(t *testing.T) {
	t.Parallel()
	later := make(chan func(func()), 1)
	v := newSite(t, Options{}).dial(func(r *recorder) { r.do = func(s *Session, _ string) { later <- s.Later() } })
	v.say("hello")
	await(t, later, "the handler put something off")(func() { panic("oops") })
	v.ends(codeBroken)
}
