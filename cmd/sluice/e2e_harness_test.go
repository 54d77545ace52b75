package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice/server"
)

const (
	e2eSecret = "the secret of the end-to-end tests"
	e2eAdmin  = "the-admin-token-of-the-tests"
	// longest is far beyond what any step takes; only what hangs comes near.
	longest = time.Minute
)

// shipped is the command as it is shipped, but with the race detector: built by the first test that wants it and removed
// by TestMain, the one thing here that all tests share.
var shipped binary

type binary struct {
	once sync.Once
	path string
	err  error
}

func (b *binary) build() (string, error) {
	b.once.Do(func() {
		dir, err := os.MkdirTemp("", "sluice-e2e-")
		if err != nil {
			b.err = err
			return
		}
		b.path = filepath.Join(dir, "sluice")
		if out, err := exec.Command("go", "build", "-race", "-buildvcs=false", "-o", b.path, ".").CombinedOutput(); err != nil {
			b.err = fmt.Errorf("build the command: %w\n%s", err, out)
		}
	})
	return b.path, b.err
}

func (b *binary) remove() {
	if b.path != "" {
		_ = os.RemoveAll(filepath.Dir(b.path))
	}
}

// process is a running command.
type process struct {
	t        *testing.T
	name     string
	cmd      *exec.Cmd
	out, err journal
	done     chan struct{} // closed when it has ended
}

// begin starts the command line.
func begin(t *testing.T, args ...string) *process {
	t.Helper()
	return beginWith(t, nil, args...)
}

// beginWith starts the command line with variables of its own.
func beginWith(t *testing.T, variables []string, args ...string) *process {
	t.Helper()
	path, err := shipped.build()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(withoutSettings(os.Environ()), "SLUICE_SECRET="+e2eSecret, "SLUICE_ADMIN_TOKEN="+e2eAdmin)
	cmd.Env = append(cmd.Env, variables...)
	return launch(t, "sluice "+args[0], cmd)
}

// launch starts a process, which ends with the test at the latest. What it wrote is shown when the test failed, and a
// data race that it reports fails the test.
func launch(t *testing.T, name string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.out, &p.err
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended is in the process's state
	}()
	t.Cleanup(p.end)
	return p
}

// withoutSettings leaves out what would change how the command behaves.
func withoutSettings(env []string) []string {
	var kept []string
	for _, entry := range env {
		if !strings.HasPrefix(entry, "SLUICE_") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// end stops the process if it still runs.
func (p *process) end() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it fails only when the process has ended
	select {
	case <-p.done:
	case <-time.After(longest):
		p.t.Errorf("%s does not end", p.name)
		p.kill()
	}
	if log := p.err.String(); strings.Contains(log, "DATA RACE") {
		p.t.Errorf("%s has a data race:\n%s", p.name, log)
	} else if p.t.Failed() {
		p.t.Logf("%s (%s) wrote:\n%s", p.name, p.cmd.ProcessState, tail(log))
	}
}

// ended says whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the process as a power cut does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it fails only when the process has ended
	<-p.done
}

// wait blocks until the process has ended and returns its exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(longest):
		p.t.Fatalf("%s does not end", p.name)
	}
	return p.cmd.ProcessState.ExitCode()
}

// says waits until the process has written what the pattern matches to its log, and returns the first group.
func (p *process) says(pattern string) string {
	p.t.Helper()
	find := regexp.MustCompile(pattern)
	deadline := time.After(longest)
	for {
		log, changed := p.err.read()
		if found := find.FindStringSubmatch(log); found != nil {
			return found[1]
		}
		select {
		case <-changed:
		case <-p.done:
			if log, _ = p.err.read(); !find.MatchString(log) {
				p.t.Fatalf("%s ended (%s) and never said %q:\n%s", p.name, p.cmd.ProcessState, pattern, tail(log))
			}
		case <-deadline:
			p.t.Fatalf("%s never said %q:\n%s", p.name, pattern, tail(log))
		}
	}
}

// journal keeps what a process writes and tells when there is more.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed by the next write
}

func (j *journal) Write(data []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.more != nil {
		close(j.more)
		j.more = nil
	}
	return j.text.Write(data)
}

// read returns what was written, and what is closed when there is more.
func (j *journal) read() (string, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.more == nil {
		j.more = make(chan struct{})
	}
	return j.text.String(), j.more
}

func (j *journal) String() string {
	text, _ := j.read()
	return text
}

// tail is the end of a log, where the trouble is.
func tail(log string) string {
	const most = 6000
	if len(log) > most {
		return "…" + log[len(log)-most:]
	}
	return log
}

// command runs a command line to its end.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := begin(t, args...)
	code = p.wait()
	return code, p.out.String(), p.err.String()
}

// succeed is command for one that must exit with 0; it returns what it printed.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	code, out, said := command(t, args...)
	if code != exitOK {
		t.Fatalf("sluice %s exits with %d:\n%s%s", strings.Join(args, " "), code, out, tail(said))
	}
	return out
}

// eventually waits until it holds, and asks again and again.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(longest)
	for !holds() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("it never came true: %s", what)
		}
	}
}

// site is a process that serves, and where.
type site struct {
	*process
	url, ops string
}

// open starts `sluice serve` on free ports and returns when it serves.
func open(t *testing.T, flags ...string) *site {
	t.Helper()
	return openAt(t, "127.0.0.1:0", flags...)
}

func openAt(t *testing.T, address string, flags ...string) *site {
	t.Helper()
	return openWith(t, nil, address, flags...)
}

func openWith(t *testing.T, variables []string, address string, flags ...string) *site {
	t.Helper()
	args := append([]string{"serve", "--listen", address, "--ops-listen", "127.0.0.1:0", "--drain", "1s"}, flags...)
	s := &site{process: beginWith(t, variables, args...)}
	s.url = s.says(`msg=serving .*url=(\S+)`)
	s.ops = s.says(`msg=operations .*url=(\S+)`)
	return s
}

// address is where the site listens.
func (s *site) address() string { return strings.TrimPrefix(s.url, "http://") }

// metrics is what the site shows to Prometheus.
func (s *site) metrics() string {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.ops+"/metrics", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// reply is the answer to one HTTP request.
type reply struct {
	status int
	body   []byte
	fields map[string]any // nil when the body is no JSON object
}

// problem is the code and the detail of a problem document.
func (r reply) problem() (code, detail string) {
	code, _ = r.fields["code"].(string)
	detail, _ = r.fields["detail"].(string)
	return code, detail
}

// ask sends one HTTP request to the API, with a bearer token unless it is "".
func (s *site) ask(method, path, token, body string) reply {
	s.t.Helper()
	answer, err := s.try(method, path, token, body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer
}

// try is ask for a site that may not be there.
func (s *site) try(method, path, token, body string) (reply, error) {
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if strings.HasPrefix(body, "{") {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Close = true // no idle connection outlives the test
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return replyOf(resp.StatusCode, data), err
}

func replyOf(status int, body []byte) reply {
	r := reply{status: status, body: body}
	_ = json.Unmarshal(r.body, &r.fields) // not everything is an object
	return r
}

// view is the sale as an operator sees it, with the units left of its only item; -1 while this node does not know.
func (s *site) view(sale string) (view saleView, left int64) {
	s.t.Helper()
	answer := s.ask(http.MethodGet, "/admin/sales/"+sale, e2eAdmin, "")
	if answer.status != http.StatusOK {
		s.t.Fatalf("look at %s: %d %s", sale, answer.status, answer.body)
	}
	if err := json.Unmarshal(answer.body, &view); err != nil {
		s.t.Fatal(err)
	}
	if len(view.Items) != 1 || view.Items[0].Left == nil {
		return view, -1
	}
	return view, *view.Items[0].Left
}

// grab asks for a unit over HTTP and returns the result and the id of the order.
func (s *site) grab(sale, user string) (result, order string) {
	s.t.Helper()
	answer := s.ask(http.MethodPost, "/sales/"+sale+"/grab", tokenOf(s.t, user), fmt.Sprintf(`{"request_id":"request-of-%s"}`, user))
	if answer.status != http.StatusOK {
		s.t.Fatalf("%s grabs: %d %s", user, answer.status, answer.body)
	}
	result, _ = answer.fields["result"].(string)
	if o, ok := answer.fields["order"].(map[string]any); ok {
		order, _ = o["id"].(string)
	}
	return result, order
}

// apply applies a sale file over the command line.
func (s *site) apply(file string) string {
	s.t.Helper()
	return succeed(s.t, "sale", "apply", file, "--url", s.url)
}

// audit takes the audit over the command line, which must hold.
func (s *site) audit(sale string) auditReport {
	s.t.Helper()
	var report auditReport
	out := succeed(s.t, "audit", sale, "--url", s.url, "--json")
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		s.t.Fatalf("understand the audit: %v\n%s", err, out)
	}
	return report
}

// crowd starts a crowd at the sale.
func (s *site) crowd(sale string, users int, flags ...string) *throng {
	s.t.Helper()
	args := []string{"crowd", "--json", "--url", s.url, "--sale", sale, "--users", fmt.Sprint(users), "--timeout", longest.String()}
	return &throng{begin(s.t, append(args, flags...)...)}
}

// throng is a crowd that shops.
type throng struct{ *process }

// report waits for the crowd's end, which must be a good one, and returns what it saw.
func (c *throng) report() crowdReport {
	c.t.Helper()
	code := c.wait()
	var report crowdReport
	if err := json.Unmarshal([]byte(c.out.String()), &report); err != nil {
		c.t.Fatalf("understand the report of the crowd: %v\n%s", err, c.err.String())
	}
	if code != exitOK || len(report.Problems) > 0 {
		c.t.Fatalf("the crowd exits with %d: %q", code, report.Problems)
	}
	return report
}

// saleFile writes a sale with one item; more is what its file says beside id, stock and currency.
func saleFile(t *testing.T, id string, stock int, more string) string {
	t.Helper()
	text := fmt.Sprintf("id: %s\ntitle: { en: Phone X, zh: 手机 X }\nitems:\n  - { id: main, stock: %d, price: 299900 }\ncurrency: CNY\n%s\n", id, stock, more)
	return writeFile(t, id+".yaml", text)
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// freshID is a sale id, or another name, that no other test has.
func freshID() string { return fmt.Sprintf("e2e-%016x", rand.Uint64()) }

// tokenOf is a token of the user.
func tokenOf(t *testing.T, user string) string {
	t.Helper()
	token, err := server.MintJWT([]byte(e2eSecret), user, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// setting reads where a service is.
func setting(t *testing.T, variable string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		t.Fatalf("%s is not set; run the tests with: make test", variable)
	}
	return value
}
