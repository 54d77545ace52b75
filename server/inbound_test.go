package server

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestASocketIsReadNoFasterThanAShopperSpeaks floods a connection before and after it has become a socket.
func TestASocketIsReadNoFasterThanAShopperSpeaks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		c := &caller{Conn: near}
		flood := func(n int) time.Duration {
			t.Helper()
			began := time.Now()
			go func() {
				buffer := make([]byte, 4096)
				for range n / len(buffer) {
					if _, err := far.Write(buffer); err != nil {
						return
					}
				}
			}()
			if _, err := io.CopyN(io.Discard, c, int64(n)); err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		if took := flood(1 << 20); took != 0 {
			t.Errorf("a request was slowed down by %s", took)
		}
		c.upgrades()
		if took := flood(inboundBurst); took != 0 {
			t.Errorf("a burst was slowed down by %s", took)
		}
		if took, want := flood(10*inboundPerSecond), 10*time.Second; took != want {
			t.Errorf("ten seconds' worth was read within %s", took)
		}
		time.Sleep(time.Minute) // by the clock of this bubble
		if took := flood(inboundBurst); took != 0 {
			t.Errorf("a burst after a rest was slowed down by %s", took)
		}
	})
}
