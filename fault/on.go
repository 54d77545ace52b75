//go:build faults

package fault

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// plan is what SLUICE_FAULT asks for.
type plan struct {
	name string
	left atomic.Int64 // visits until it happens
	stop bool
	log  string
}

var asked = sync.OnceValue(func() *plan {
	parts := strings.Split(os.Getenv("SLUICE_FAULT"), ":")
	p := &plan{log: os.Getenv("SLUICE_FAULT_LOG")}
	if len(parts) < 2 {
		return p
	}
	n, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return p
	}
	p.name, p.stop = parts[0], len(parts) > 2 && parts[2] == "stop"
	p.left.Store(n)
	return p
})

// Point is a moment in which the process may end.
func Point(name string) {
	p := asked()
	if p.name != name || p.left.Add(-1) != 0 {
		return
	}
	if f, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
		_, _ = f.WriteString(name + "\n")
		_ = f.Close()
	}
	signal := syscall.SIGKILL
	if p.stop {
		signal = syscall.SIGSTOP
	}
	_ = syscall.Kill(os.Getpid(), signal)
	if !p.stop {
		select {} // the signal may take a moment; nothing may happen after this point
	}
}
