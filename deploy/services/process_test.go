package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// familyOf starts a shell whose script prints the pid of a child, and returns it with that pid.
func familyOf(t *testing.T, script string) (*process, int) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := exec.Command("sh", "-c", script)
	cmd.Stdout = write
	p, err := startProcess(cmd)
	write.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return p, child
}

// gone waits until no process with the pid is alive; a killed orphan is there until init reaps it, if that ever does.
func gone(pid int) bool {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || err == nil && strings.Contains(string(stat), ") Z ") {
			return true
		}
	}
	return false
}

func TestStopEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	p, child := familyOf(t, `sleep 600 & echo $!; wait`)
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{p.group, child} {
		if !gone(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
}

func TestStopKillsAChildThatIgnoresTheSignalWhichEndsItsParent(t *testing.T) {
	t.Parallel()
	p, child := familyOf(t, `sh -c 'trap "" TERM; echo $$; exec sleep 600' & wait`)
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !gone(child) {
		t.Errorf("process %d ignored the signal and is still there", child)
	}
}

func TestStoppingTwiceIsHarmless(t *testing.T) {
	t.Parallel()
	p, err := startProcess(exec.Command("true"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.stop(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAGroupOfWhichOnlyAnUnreapedProcessIsLeftCountsAsDead(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("this system shows no states of processes")
	}
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if onlyDead(cmd.Process.Pid) {
		t.Error("a living process counts as dead")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Nobody waits for it yet, so it stays in the list of processes.
	for deadline := time.Now().Add(10 * time.Second); !onlyDead(cmd.Process.Pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a killed process that nobody reaps does not count as dead")
		}
	}
	_ = cmd.Wait() // it was killed
}
