package hub

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
)

func TestFramesOfManyGoroutinesArriveWholeAndInTheOrderOfEach(t *testing.T) {
	t.Parallel()
	const writers, each = 8, 200
	s := newSite(t, Options{Pending: writers * each * 2, MessagesPerSecond: -1}) // the peer answers every ping
	v := s.dial()
	v.greet()
	if err := v.session.Bind("sale", "seat"); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				f := NewFrame(fmt.Appendf(nil, "%d %d", w, i))
				switch w % 3 {
				case 0:
					v.session.Send(f)
				case 1:
					s.hub.Send("sale", "seat", f)
				case 2:
					s.hub.Broadcast("sale", f)
				}
				v.session.Position(NewFrame([]byte("position")))
				v.session.ping()
			}
		})
	}
	next := make([]int, writers)
	for got := 0; got < writers*each; {
		msg := v.hear()
		if msg == "position" {
			continue
		}
		var w, i int
		if _, err := fmt.Sscanf(msg, "%d %d", &w, &i); err != nil {
			t.Fatalf("%q: %v", msg, err)
		}
		if i != next[w] {
			t.Fatalf("writer %d: frame %d arrived, want %d", w, i, next[w])
		}
		next[w]++
		got++
	}
	group.Wait()
}

func TestFramesOfEveryLengthArriveWholeAloneAndTogether(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	v := s.dial()
	for _, size := range []int{0, 1, 125, 126, writeAtOnce - 4, writeAtOnce, 1<<16 - 1, 1 << 16, 1<<16 + 1} {
		text := strings.Repeat("x", size)
		const times = 20
		f := NewFrame([]byte(text))
		if string(f.Bytes()) != text {
			t.Fatalf("%d bytes are %d in the frame", size, len(f.Bytes()))
		}
		for range times {
			v.session.Send(f)
		}
		for range times {
			if got := v.hear(); got != text {
				t.Fatalf("%d bytes arrived as %d", size, len(got))
			}
		}
	}
}

func TestAFrameThatIsSentWithTheNextComesBeforeIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	v := s.dial()
	for i := range 100 {
		v.session.SendWithNext(NewFrame(fmt.Appendf(nil, "welcome %d", i)))
		if i%2 == 0 {
			v.session.Send(NewFrame([]byte("state")))
		} else {
			v.session.Position(NewFrame([]byte("state")))
		}
		for _, want := range []string{fmt.Sprint("welcome ", i), "state"} {
			if got := v.hear(); got != want {
				t.Fatalf("received %q, want %q", got, want)
			}
		}
	}
	v.session.SendWithNext(NewFrame([]byte("last")))
	v.session.Close(1000, "")
	if got := v.hear(); got != "last" {
		t.Fatalf("before the close frame came %q", got)
	}
}

// stall makes the session's drainer block in a write by sending more than the kernel takes from a peer that does not
// read, and returns how many frames went into that.
func stall(t *testing.T, v *visit) (sent int) {
	t.Helper()
	big := NewFrame([]byte(strings.Repeat("x", 1<<20)))
	for {
		v.session.Send(big)
		sent++
		// Blocked is when a frame waits behind the one being written and goes on waiting.
		waits := func() bool {
			v.session.mu.Lock()
			defer v.session.mu.Unlock()
			return len(v.session.queue) > 0
		}
		stuck := true
		for range 50 {
			if !waits() {
				stuck = false
				break
			}
			time.Sleep(time.Millisecond)
		}
		if stuck {
			return sent
		}
	}
}

func TestAReaderThatNeverReadsHoldsAConstantNumberOfFrames(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{WriteTimeout: time.Hour})
	v := s.dial()
	stall(t, v)
	var alive []weak.Pointer[Frame]
	for i := range 10_000 {
		f := NewFrame([]byte(strconv.Itoa(i)))
		alive = append(alive, weak.Make(f))
		v.session.Position(f)
	}
	runtime.GC()
	held := 0
	for _, w := range alive {
		if w.Value() != nil {
			held++
		}
	}
	if held != 1 {
		t.Errorf("%d of 10,000 position frames are held; want the newest only", held)
	}
	v.session.abort(codeVanished)
}

func TestAReaderThatNeverReadsDelaysNobodyAndIsClosed(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{Pending: 4, WriteTimeout: 300 * time.Millisecond})
	stuck, well := s.dial(), s.dial()
	for i, v := range []*visit{stuck, well} {
		if err := v.session.Bind("sale", strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	big := strings.Repeat("x", 16<<10)
	for {
		s.hub.Broadcast("sale", NewFrame([]byte(big)))
		if got := well.hear(); got != big {
			t.Fatalf("the other peer received %d bytes", len(got))
		}
		select {
		case <-stuck.closed:
		default:
			continue
		}
		break
	}
	if code := stuck.session.bye.label; code != codeOverloaded {
		t.Errorf("the stuck session is counted as %d, want 1013", code)
	}
	if n := s.hub.Broadcast("sale", NewFrame([]byte("last"))); n != 1 {
		t.Errorf("the frame went to %d sessions, want the other one only", n)
	}
	if got := well.hear(); got != "last" {
		t.Errorf("received %q", got)
	}
}

func TestFramesThatMustBeDeliveredArriveUpToTheCloseWithoutAGap(t *testing.T) {
	t.Parallel()
	const pending = 16
	s := newSite(t, Options{Pending: pending, WriteTimeout: patient})
	v := s.dial()
	stalled := stall(t, v)
	var want []string
	for i := 0; ; i++ {
		text := strconv.Itoa(i)
		if !v.session.send(NewFrame([]byte(text))) {
			break
		}
		want = append(want, text)
	}
	if len(want) > pending {
		t.Fatalf("%d frames were queued, want at most %d", len(want), pending)
	}
	if len(want) == 0 {
		t.Fatal("no frame was queued")
	}
	got, _ := v.ends(codeOverloaded)
	if diff := cmp.Diff(want, got[stalled:]); diff != "" {
		t.Errorf("frames between the stall and the close (-want +got):\n%s", diff)
	}
}

func TestPositionsAreConflatedAndNeverComeAfterALaterFrame(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{Pending: 100_000})
	v := s.dial()
	const ops = 20_000
	go func() {
		for i := range ops {
			f := NewFrame([]byte(strconv.Itoa(i)))
			switch {
			case i == ops-1, rand.N(10) == 0:
				v.session.Send(f)
			default:
				v.session.Position(f)
			}
			if rand.N(1000) == 0 {
				runtime.Gosched()
			}
		}
		close(v.messages)
	}()
	last := -1
	for last < ops-1 {
		n, err := strconv.Atoi(v.hear())
		if err != nil {
			t.Fatal(err)
		}
		if n <= last {
			t.Fatalf("%d arrived after %d", n, last)
		}
		last = n
	}
}

func TestASlowReaderGetsTheNewestPositionOnlyAndNoneOlderThanAFrame(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{WriteTimeout: patient})
	v := s.dial()
	stalled := stall(t, v)
	position := func(name string) { v.session.Position(NewFrame([]byte(name))) }
	position("old")
	position("older than the turn")
	v.session.Send(NewFrame([]byte("turn")))
	position("replaced")
	position("newest")
	var got []string
	for range stalled {
		v.hear()
	}
	for range 2 {
		got = append(got, v.hear())
	}
	v.session.Close(1000, "")
	rest, _ := v.ends(1000)
	if diff := cmp.Diff([]string{"turn", "newest"}, append(got, rest...)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAPeerThatNeverAnswersACloseIsDropped(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{WriteTimeout: 50 * time.Millisecond})
	v := s.dial()
	v.session.Close(4401, "bad token") // the peer does not read, so it does not answer
	await(t, v.closed, "Closed")
	if code := v.session.bye.label; code != 4401 {
		t.Errorf("counted as %d", code)
	}
}

func TestQueuedFramesAreWrittenBeforeTheCloseFrame(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{Pending: 1000})
	v := s.dial()
	var want []string
	for i := range 500 {
		want = append(want, strconv.Itoa(i))
		v.session.Send(NewFrame([]byte(want[i])))
	}
	v.session.Close(4401, "bad token")
	v.session.Close(4404, "a later close decides nothing")
	v.session.Send(NewFrame([]byte("too late")))
	v.session.Position(NewFrame([]byte("too late")))
	got, reason := v.ends(4401)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if reason != "bad token" {
		t.Errorf("reason %q", reason)
	}
}

func TestOnWriteIsCalledOnceForEachSession(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	written := make(chan struct{}, 10)
	for i := range 3 {
		if err := s.dial().session.Bind("sale", strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	s.hub.Broadcast("sale", NewFrame([]byte("turn")).OnWrite(func() { written <- struct{}{} }))
	for range 3 {
		await(t, written, "OnWrite")
	}
	s.hub.Close()
	if len(written) > 0 {
		t.Error("OnWrite was called too often")
	}
}

func TestOnlyCodesThatMayBeSentAreSent(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	for code, want := range map[int]int{
		1000: 1000, 1001: 1001, 1008: 1008, 1011: 1011, 1012: 1012, 1013: 1013,
		3000: 3000, 4400: 4400, 4429: 4429, 4999: 4999,
		0: 1011, -1: 1011, 999: 1011, 1004: 1011, 1005: 1011, 1006: 1011, 1015: 1011, 2000: 1011, 5000: 1011, 70000: 1011,
	} {
		v := s.dial()
		v.session.Close(code, "why")
		v.ends(want) // the peer's library calls any other code a protocol error and an absent one 1005
	}
}

func TestALongReasonIsCutAtTheStartOfACharacter(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{
		"", "short", strings.Repeat("x", maxReason), strings.Repeat("x", maxReason+1), strings.Repeat("票", 50), "x" + strings.Repeat("票", 50), "xx" + strings.Repeat("票", 50),
	} {
		got := cut(reason)
		if !strings.HasPrefix(reason, got) || len(got) > maxReason || strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("cut(%q) = %q", reason, got)
		}
		if len(reason) > maxReason && len(got) < maxReason-3 {
			t.Errorf("cut(%q) dropped more than it had to: %d bytes left", reason, len(got))
		}
	}
	s := newSite(t, Options{})
	v := s.dial()
	v.session.Close(4403, strings.Repeat("票", 50))
	if _, reason := v.ends(4403); reason != strings.Repeat("票", 41) {
		t.Errorf("reason %q", reason)
	}
}

func TestAPeerThatCloses(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	for _, c := range []struct {
		name    string
		payload []byte
		answer  int
	}{
		{"without a code is answered with 1000", []byte{}, 1000},
		{"normally is answered so", websocket.FormatCloseMessage(1000, ""), 1000},
		{"because it goes away is answered so", websocket.FormatCloseMessage(1001, "tab closed"), 1001},
		{"with a code of its own is answered so", websocket.FormatCloseMessage(4999, ""), 4999},
		{"with a code nobody may send is refused", []byte{1006 >> 8, 1006 & 0xff}, 1002},
	} {
		v := s.dial()
		if err := v.peer.WriteControl(websocket.CloseMessage, c.payload, time.Now().Add(patient)); err != nil {
			t.Fatal(err)
		}
		t.Log(c.name)
		v.ends(c.answer)
	}
}

func TestAPeerThatVanishesIsClosedOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	v := s.dial()
	if err := v.peer.NetConn().(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	v.peer.Close()
	await(t, v.closed, "Closed")
	if code := v.session.bye.label; code != codeVanished {
		t.Errorf("counted as %d", code)
	}
}

func TestAPeerThatClosesAndIsGoneAtOnceKeepsNoWriter(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	for range 50 {
		v := s.dial()
		// The answer to the close frame meets a connection that was reset.
		if err := v.peer.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(patient)); err != nil {
			t.Fatal(err)
		}
		if err := v.peer.NetConn().(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
		v.peer.Close()
		await(t, v.closed, "Closed")
	}
}

func TestASessionEndsOnceWhoeverEndsIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	for i := range 60 {
		v := s.dial()
		v.greet()
		if err := v.session.Bind("sale", "seat"+strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for _, fn := range []func(){
			func() { v.session.Close(4400, "") },
			func() { v.session.abort(codeVanished) },
			func() { v.session.retire() },
			func() { v.session.Send(NewFrame([]byte("x"))) },
			func() { s.hub.Broadcast("sale", NewFrame([]byte("y"))) },
			func() { _ = v.peer.WriteMessage(websocket.TextMessage, []byte("z")) },
			func() { v.peer.NetConn().Close() },
		} {
			if rand.N(4) > 0 {
				group.Go(fn)
			}
		}
		group.Wait()
		v.session.Close(1000, "")
		v.peer.NetConn().Close()
		await(t, v.closed, "Closed")
		if n := s.hub.Count("sale", "seat"+strconv.Itoa(i)); n != 0 {
			t.Fatalf("%d sessions left under the key", n)
		}
		if err := v.session.Bind("sale", "again"); err != ErrClosed {
			t.Fatalf("Bind after the end: %v", err)
		}
	}
	eventually(t, "the hub to be empty", func() bool { return s.hub.Len() == 0 })
}

func TestTheNewestPositionIsWrittenAlsoWhenAFrameFollows(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{WriteTimeout: patient})
	v := s.dial()
	for i := range stall(t, v) {
		if i == 0 {
			v.session.Position(NewFrame([]byte("older")))
			v.session.Position(NewFrame([]byte("newest")))
			v.session.Send(NewFrame([]byte("paused")))
		}
		v.hear()
	}
	if got := []string{v.hear(), v.hear()}; !cmp.Equal(got, []string{"newest", "paused"}) {
		t.Errorf("received %q", got)
	}
}

// What the kernel holds for a peer that does not read is memory that nobody counts, and positions that nobody can replace.
func TestTheKernelHoldsLittleForAReaderThatNeverReads(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{WriteTimeout: time.Hour})
	v := s.dial()
	position := NewFrame([]byte(strings.Repeat("x", 4<<10)))
	written := 0
	for stuck := false; !stuck; written += len(position.Bytes()) {
		v.session.Position(position)
		stuck = true
		for range 50 {
			v.session.mu.Lock()
			waits := v.session.position != nil
			v.session.mu.Unlock()
			if !waits {
				stuck = false
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	if written > 1<<20 {
		t.Errorf("%d KiB of positions were written to a peer that read none", written>>10)
	}
	v.session.abort(codeVanished)
}

func TestAReasonIsAlwaysOneThatAPeerCanRead(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"bad \xff\xfe bytes":                 "bad  bytes",
		strings.Repeat("\x80", 200):          "",
		strings.Repeat("a", 122) + "\u00e9b": strings.Repeat("a", 122),
	} {
		s := newSite(t, Options{})
		v := s.dial()
		v.session.Close(codeBadMessage, given)
		if _, reason := v.ends(codeBadMessage); reason != want {
			t.Errorf("the reason %q arrives as %q, want %q", given, reason, want)
		}
	}
}

func TestAFrameThatIsEncodedLateKeepsItsPlaceAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	slow, other := s.dial(), s.dial()
	begun, encode := make(chan struct{}), make(chan struct{})
	var times atomic.Int64
	late := NewLateFrame(func() []byte {
		times.Add(1)
		close(begun)
		<-encode
		return []byte("late")
	})
	slow.session.SendWithNext(NewFrame([]byte("before")))
	slow.session.Send(late)
	await(t, begun, "the encoding of the frame")
	slow.session.Send(NewFrame([]byte("after")))
	slow.session.Position(NewFrame([]byte("position")))
	other.session.Send(NewFrame([]byte("at once")))
	if got := other.hear(); got != "at once" {
		t.Fatalf("the other session received %q", got)
	}
	other.session.Send(late)
	close(encode)
	for _, want := range []string{"before", "late", "after", "position"} {
		if got := slow.hear(); got != want {
			t.Fatalf("received %q, want %q", got, want)
		}
	}
	if got := other.hear(); got != "late" {
		t.Fatalf("the other session received %q", got)
	}
	if got := times.Load(); got != 1 || string(late.Bytes()) != "late" {
		t.Errorf("the frame was encoded %d times, as %q", got, late.Bytes())
	}
}

func TestAFrameThatNobodyWritesIsNeverEncoded(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	v := s.dial()
	v.session.Close(1000, "")
	v.session.Send(NewLateFrame(func() []byte { t.Error("it was encoded"); return nil }))
	v.ends(1000)
}
