package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

// tell gives a command like "freeze redis" to whoever runs the services; see deploy/services.
func tell(command string) error {
	socket := os.Getenv("SLUICE_TEST_CONTROL")
	if socket == "" {
		return errors.New("SLUICE_TEST_CONTROL is not set: the services must run as processes of their own, with: make stack PROVOKE=1")
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := fmt.Fprintln(conn, command); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(answer, "ok") {
		return fmt.Errorf("%s: %s", command, strings.TrimSpace(answer))
	}
	return nil
}
