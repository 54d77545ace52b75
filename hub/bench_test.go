package hub

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// The peers of a benchmark live in a process of their own, so that the figures are those of the hub alone.
const (
	crowdURL  = "SLUICE_HUB_BENCH_URL"
	crowdSize = "SLUICE_HUB_BENCH_SIZE" // how many peers, also for the benchmark itself; 1,000
)

func benchSize(b *testing.B) int {
	n := 1000
	if text := os.Getenv(crowdSize); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatalf("%s: %v", crowdSize, err)
		}
	}
	return n
}

// crowd connects, says hello, reports that it has, and reads until its standard input ends.
func crowd(url string) int {
	n, err := strconv.Atoi(os.Getenv(crowdSize))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dialer := websocket.Dialer{ReadBufferSize: 512, WriteBufferSize: 512}
	for range n {
		conn, _, err := dialer.Dial(url, nil)
		if err == nil {
			err = conn.WriteMessage(websocket.TextMessage, []byte("hello"))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		go func() {
			for {
				if _, _, err := conn.NextReader(); err != nil {
					return
				}
			}
		}()
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// seated binds each session to a key of its own.
type seated struct {
	hellos *sync.WaitGroup
	drops  *atomic.Int64
}

func (h seated) Hello(s *Session, _ []byte) {
	if err := s.Bind("sale", s.ID()); err == nil {
		h.hellos.Done()
	}
}
func (seated) Message(*Session, []byte) {}
func (h seated) Closed(*Session)        { h.drops.Add(1) }

// gathered starts a hub with a crowd before it. The function it returns fails the benchmark when a connection was lost.
func gathered(b *testing.B, n int) (hub *Hub, whole func()) {
	b.Helper()
	hub = New(Options{})
	var hellos sync.WaitGroup
	var drops atomic.Int64
	hellos.Add(n)
	up := websocket.Upgrader{ReadBufferSize: ReadBufferSize, WriteBufferSize: WriteBufferSize, WriteBufferPool: new(sync.Pool)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, err := up.Upgrade(w, r, nil); err == nil {
			hub.Accept(conn, seated{&hellos, &drops})
		}
	}))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crowdURL+"=ws"+strings.TrimPrefix(srv.URL, "http"), crowdSize+"="+strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait()
		hub.Close()
		srv.Close()
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		b.Fatalf("the crowd said %q: %v", line, err)
	}
	hellos.Wait()
	return hub, func() {
		b.Helper()
		if drops.Load() > 0 || hub.Len() != n {
			b.Fatalf("%d of %d connections were lost", drops.Load(), n)
		}
	}
}

// BenchmarkFootprint measures what an idle session costs: resident memory of the whole process, stacks and goroutines.
func BenchmarkFootprint(b *testing.B) {
	n := benchSize(b)
	for b.Loop() {
		rss, stacks, routines := resources(b)
		_, whole := gathered(b, n)
		rss2, stacks2, routines2 := resources(b)
		whole()
		b.ReportMetric(float64(rss2-rss)/float64(n), "RSS-B/session")
		b.ReportMetric(float64(stacks2-stacks)/float64(n), "stack-B/session")
		b.ReportMetric(float64(routines2-routines)/float64(n), "goroutines/session")
	}
}

func resources(b *testing.B) (rss, stacks int64, routines int) {
	b.Helper()
	debug.FreeOSMemory() // what the handshakes left is garbage of the past, not of a session
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skipf("resident memory is not known here: %v", err)
	}
	fields := strings.Fields(string(statm))
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize()), int64(mem.StackInuse), runtime.NumGoroutine()
}

// BenchmarkFanOut measures how fast one frame reaches the kernel for all sessions of a group.
func BenchmarkFanOut(b *testing.B) {
	n := benchSize(b)
	hub, whole := gathered(b, n)
	data := []byte(`{"type":"paused","at":1900000000000,"why":"` + strings.Repeat("x", 150) + `"}`)
	start := time.Now()
	sent := 0
	for b.Loop() {
		var written sync.WaitGroup
		written.Add(n)
		if got := hub.Broadcast("sale", NewFrame(data).OnWrite(written.Done)); got != n {
			b.Fatalf("the frame went to %d of %d sessions", got, n)
		}
		written.Wait()
		sent += n
	}
	b.ReportMetric(float64(sent)/time.Since(start).Seconds(), "frames/s")
	whole()
}
