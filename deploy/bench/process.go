package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// startPatience is how long a process may take until it answers.
	startPatience = 30 * time.Second
	// stopPatience is how long a process may take to end after it was asked to.
	stopPatience = 30 * time.Second
	// tick is the unit in which Linux tells the processor time of a process: sysconf(_SC_CLK_TCK) is 100 everywhere.
	tick = 10 * time.Millisecond
)

// process is a contender, or a source of load, that runs on its own.
type process struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	log  string // file with what it says on its error output
	gone chan struct{}
}

// start runs a program. What it says on its error output goes to a file of the bench's folder.
func (b *bench) start(ctx context.Context, name, program string, args ...string) (*process, error) {
	b.started++
	p := &process{name: name, log: filepath.Join(b.dir, fmt.Sprintf("%03d-%s.log", b.started, name)), gone: make(chan struct{})}
	file, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p.cmd = exec.CommandContext(ctx, program, args...)
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = stopPatience
	p.cmd.Stderr = file
	p.cmd.Dir = b.dir
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	// A pipe of our own: the one of exec is closed by Wait, which may lose the last lines.
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout = write
	p.out = bufio.NewReader(read)
	err = p.cmd.Start()
	write.Close()
	if err != nil {
		read.Close()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended matters to nobody who has what it said
		close(p.gone)
	}()
	b.processes = append(b.processes, p)
	return p, nil
}

// starter starts a program, as start does.
type starter func(ctx context.Context, name, program string, args ...string) (*process, error)

// startBehind starts a program of which there are many at once, so that the services and the bench go before it, as they
// would on machines of their own: on one processor, and nicer. Else dozens of programs of many threads take turns on two
// cores, and Redis, which all wait for, has one turn of a hundred.
func (b *bench) startBehind(ctx context.Context, name, program string, args ...string) (*process, error) {
	return b.start(ctx, name, "env", append([]string{"GOMAXPROCS=1", "nice", "-n", "5", program}, args...)...)
}

// line reads the next line that the process prints.
func (p *process) line() (string, error) {
	line, err := p.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s ended: see %s", p.name, p.log)
	}
	return strings.TrimSpace(line), nil
}

// stop asks the process to end, and makes it.
func (p *process) stop() {
	p.in.Close()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.gone:
	case <-time.After(stopPatience):
		p.kill()
	}
}

// kill ends the process at once, for those that would take long to say goodbye to all their connections.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
}

// usage is what a process has used of the machine.
type usage struct {
	at       time.Time
	resident int64         // bytes now
	peak     int64         // bytes at most so far
	cpu      time.Duration // since it began
}

func (p *process) usage() (usage, error) { return usageOf(p.cmd.Process.Pid) }

func usageOf(pid int) (usage, error) {
	u := usage{at: time.Now()}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(status)) {
		for prefix, to := range map[string]*int64{"VmRSS:": &u.resident, "VmHWM:": &u.peak} {
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
				if err != nil {
					return u, err
				}
				*to = kb << 10
			}
		}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // a name may hold spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return u, errors.New("/proc/PID/stat is shorter than expected")
	}
	for _, field := range fields[11:13] { // utime and stime, 14 and 15 in proc(5)
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return u, err
		}
		u.cpu += time.Duration(ticks) * tick
	}
	return u, nil
}

// scrape reads the metrics of a process, name with labels → value.
func scrape(ctx context.Context, url string) (map[string]float64, error) {
	body, err := get(ctx, url)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if v, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			values[line[:at]] = v
		}
	}
	return values, nil
}

var bucket = regexp.MustCompile(`^(.*)_bucket\{(?:.*,)?le="([^"]*)"`)

// quantile reads a quantile of a histogram from the difference of two scrapes: the upper bound of the bucket it is in.
func quantile(before, after map[string]float64, name string, q float64) (seconds, count float64) {
	sums := map[float64]float64{}
	for key, v := range after {
		if m := bucket.FindStringSubmatch(key); m != nil && m[1] == name {
			if le, err := strconv.ParseFloat(m[2], 64); err == nil {
				sums[le] += v - before[key]
				count = max(count, sums[le])
			}
		}
	}
	best := 0.0
	found := false
	for le, n := range sums {
		if n >= q*count && (!found || le < best) {
			best, found = le, true
		}
	}
	return best, count
}

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	return send(request)
}

func post(ctx context.Context, url, body string, header ...string) (string, error) {
	return call(ctx, http.MethodPost, url, body, header...)
}

func call(ctx context.Context, method, url, body string, header ...string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	return send(request)
}

func send(request *http.Request) (string, error) {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %s", request.Method, request.URL, response.Status, strings.TrimSpace(string(body)))
	}
	return string(body), err
}

// until asks every 20 ms until ready says yes.
func until(ctx context.Context, what string, patience time.Duration, ready func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	for {
		ok, err := ready()
		if ok {
			return nil
		}
		last = err
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s: %w", what, errors.Join(ctx.Err(), last))
		case <-time.After(20 * time.Millisecond):
		}
	}
}
