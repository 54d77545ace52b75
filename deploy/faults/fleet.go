package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// points are where a process of each role may die, with how many visits that may take at most.
var points = map[string]map[string]int{
	"serve": {
		"grab.asked": 60, "grab.taken": 60, "grab.answering": 600,
		"cashier.asked": 120, "cashier.paid": 60, "cashier.cancelled": 40, "payment.recording": 60,
		"order.moved": 100, "order.unsold": 100, "order.noted": 100, "settle.told": 100, "settle.done": 100,
		"restore.begun": 1, "restore.page": 1, "restore.quiet": 1, "restore.ready": 1,
	},
	"worker": {
		"relay.read": 20, "relay.claimed": 1, "relay.published": 300, "relay.confirmed": 300, "relay.finishing": 20, "relay.finished": 20,
		"writer.gathered": 20, "writer.written": 20, "writer.announced": 20, "writer.acknowledged": 20, "writer.released": 1,
		"store.read": 20, "store.inserted": 20, "store.sold": 20, "store.committing": 60, "store.committed": 60,
		"expire.locked": 5, "sweep.expired": 8, "sweep.finishing": 5, "order.unsold": 5, "order.noted": 5,
		"settle.told": 8, "settle.done": 8,
		"restore.begun": 1, "restore.page": 1, "restore.quiet": 1, "restore.ready": 1,
	},
}

// archiving are the points at which a process may die while the sale is archived, once each.
var archiving = map[string][]string{
	"serve":  {"archive.judged", "archive.kept", "archive.erased"},
	"worker": {"archive.purged"},
}

// fleet is the processes of sluice, which are started again whenever they die.
type fleet struct {
	binary string
	dir    string
	env    []string
	log    string // of the points at which processes died

	mu      sync.Mutex
	rng     *rand.Rand
	calm    bool                // nobody is to die any more, but for those in last
	last    map[string][]string // role → where those that are started next are to die
	members []*member
	ended   bool
	group   sync.WaitGroup
}

// member is a process, and those that take its place.
type member struct {
	role   string
	args   []string
	listen string
	mu     sync.Mutex
	cmd    *exec.Cmd
	since  time.Time
}

// start runs a process of that role until the fleet ends.
func (f *fleet) start(role string, args ...string) (*member, error) {
	m := &member{role: role, args: append([]string{role}, args...)}
	if role == "serve" {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		m.listen = listener.Addr().String()
		_ = listener.Close()
		m.args = append(m.args, "--listen", m.listen)
	}
	f.members = append(f.members, m)
	if err := f.launch(m, len(f.members)); err != nil {
		return nil, err
	}
	return m, nil
}

func (f *fleet) launch(m *member, number int) error {
	out, err := os.OpenFile(filepath.Join(f.dir, fmt.Sprintf("%s-%d.log", m.role, number)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return nil
	}
	cmd := exec.Command(f.binary, m.args...)
	cmd.Env = append(os.Environ(), f.env...)
	if fault := f.fate(m.role); fault != "" {
		fmt.Fprintln(out, "--- next to die at", fault)
		cmd.Env = append(cmd.Env, "SLUICE_FAULT="+fault, "SLUICE_FAULT_LOG="+f.log)
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	m.mu.Lock()
	m.cmd, m.since = cmd, time.Now()
	m.mu.Unlock()
	f.group.Go(func() {
		_ = cmd.Wait() // it was killed, or the fleet has ended
		if err := f.launch(m, number); err != nil {
			fmt.Fprintln(os.Stderr, "faults:", err)
		}
	})
	return nil
}

// fate is where the next process of a role dies, "" = nowhere. The caller holds mu.
func (f *fleet) fate(role string) string {
	if !f.calm {
		return f.pick(role)
	}
	left := f.last[role]
	if len(left) == 0 {
		return ""
	}
	f.last[role] = left[1:]
	return left[0] + ":1"
}

// rouse starts all processes again, to die while the sale is archived. The others of their role take over, until all points
// have had their turn.
func (f *fleet) rouse() {
	f.mu.Lock()
	f.last = map[string][]string{}
	for role, names := range archiving {
		f.last[role] = slices.Clone(names)
		f.rng.Shuffle(len(names), func(i, j int) { f.last[role][i], f.last[role][j] = f.last[role][j], f.last[role][i] })
	}
	f.mu.Unlock()
	for i := range f.members {
		f.signal(i, syscall.SIGKILL)
	}
}

// pick chooses a point and a visit. The caller holds mu.
func (f *fleet) pick(role string) string {
	names := make([]string, 0, len(points[role]))
	for name := range points[role] {
		names = append(names, name)
	}
	// The order of a map differs from run to run; that of names does not.
	slices.Sort(names)
	name := names[f.rng.IntN(len(names))]
	return fmt.Sprintf("%s:%d", name, 1+f.rng.IntN(points[role][name]))
}

// signal sends one of the processes a signal.
func (f *fleet) signal(i int, sig syscall.Signal) {
	m := f.members[i]
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.cmd.Process.Signal(sig) // it may be dead, and is started again then
}

// soothe lets nobody die any more who is started from now on, and wakes those that stand still.
func (f *fleet) soothe() {
	f.mu.Lock()
	f.calm = true
	f.mu.Unlock()
	for i := range f.members {
		f.signal(i, syscall.SIGCONT)
	}
}

// end ends all processes.
func (f *fleet) end() {
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	for i := range f.members {
		f.signal(i, syscall.SIGKILL)
	}
	f.group.Wait()
}

// deaths counts the points at which processes died.
func (f *fleet) deaths() map[string]int {
	counts := map[string]int{}
	text, _ := os.ReadFile(f.log) // not there when nobody died
	for name := range strings.FieldsSeq(string(text)) {
		counts[name]++
	}
	return counts
}
