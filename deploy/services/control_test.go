package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// tell sends a line to a control socket and returns the answer.
func tell(t *testing.T, conn net.Conn, answers *bufio.Reader, line string) string {
	t.Helper()
	if _, err := fmt.Fprintln(conn, line); err != nil {
		t.Fatal(err)
	}
	answer, err := answers.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(answer)
}

func TestAServiceIsKilledAndStartedAgainWithItsData(t *testing.T) {
	t.Parallel()
	asked, err := parse([]string{"--only", "redis", "--with", "packages"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	set, err := startAll(t.Context(), asked, newHost(io.Discard), io.Discard)
	defer func() {
		if err := set.stop(); err != nil {
			t.Error(err)
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
	at := strings.TrimPrefix(set.environment[0], "SLUICE_TEST_REDIS=redis://")
	redis := func(command string) (string, error) {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		return tell(t, conn, bufio.NewReader(conn), command), nil
	}
	if got, err := redis("SET key 5"); err != nil || got != "+OK" {
		t.Fatalf("got %s, %v", got, err)
	}
	conn, err := net.Dial("unix", strings.TrimPrefix(set.environment[1], controlVariable+"="))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for _, step := range []struct{ line, answer string }{
		{"kill", "error say what to do to which service, like: kill redis"},
		{"kill postgres", "error no service postgres runs here as a process of its own"},
		{"break redis", `error there is no "break": use kill, start, freeze, thaw or dir`},
		{"start redis", "error redis runs already"},
		{"freeze redis", "ok"},
		{"thaw redis", "ok"},
		{"dir redis", "ok " + set.sites[0].dir},
		{"kill redis", "ok"},
	} {
		if got := tell(t, conn, answers, step.line); got != step.answer {
			t.Errorf("%s: got %q, want %q", step.line, got, step.answer)
		}
	}
	if _, err := redis("PING"); err == nil {
		t.Error("it answers although it was killed")
	}
	if got := tell(t, conn, answers, "start redis"); got != "ok" {
		t.Fatal(got)
	}
	if got, err := redis("INCR key"); err != nil || got != ":6" {
		t.Errorf("after it was started again: %s, %v", got, err)
	}
	// The run ends whatever state the services are in.
	if got := tell(t, conn, answers, "freeze redis"); got != "ok" {
		t.Error(got)
	}
}
