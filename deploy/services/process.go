package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is how long a process may take to end by itself before it is killed.
const patience = 10 * time.Second

// process is a program in a process group of its own: a Ctrl-C at the terminal does not reach it before its time, and
// stopping it takes whatever it started with it.
type process struct {
	group int           // process group, the pid of its first process
	ended chan struct{} // closed when the first process has ended and been waited for
	err   error         // how it ended; read it only after ended is closed
}

// startProcess starts cmd in a new process group. Stop it to free what it holds.
func startProcess(cmd *exec.Cmd) (*process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	// Descendants that outlive the program may hold its output open; its end must not wait for theirs.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{group: cmd.Process.Pid, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// stop asks the group to end by the signal, kills what is left when the first process has ended or does not end in
// time, and returns when the group is empty. It may be called more than once.
func (p *process) stop(sig syscall.Signal) error {
	if err := p.send(sig); err != nil {
		return err
	}
	select {
	case <-p.ended:
	case <-time.After(patience):
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if err := syscall.Kill(-p.group, syscall.SIGKILL); errors.Is(err, syscall.ESRCH) || onlyDead(p.group) {
			<-p.ended
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process group %d was killed and is still there", p.group)
		}
	}
}

// onlyDead says whether all that is left of a group is dead and waits to be reaped. A process whose parent died with it
// is reaped by init, and in many containers what runs as init never does. Where there is no /proc it says no.
func onlyDead(group int) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended meanwhile
		}
		// The name, in brackets, may hold anything; behind it come state, parent and group.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(group) && fields[0] != "Z" && fields[0] != "X" {
			return false
		}
	}
	return len(stats) > 0
}

func (p *process) send(sig syscall.Signal) error {
	if err := syscall.Kill(-p.group, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %s to process group %d: %w", sig, p.group, err)
	}
	return nil
}
