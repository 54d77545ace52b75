// Package control speaks to deploy/services, which runs the services that a suite breaks.
package control

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

// Control is the address of the socket at which deploy/services listens for commands.
type Control string

// Find returns the control of the services that this process was started with. It is an error when they cannot be
// controlled, as containers cannot.
func Find() (Control, error) {
	socket := os.Getenv("SLUICE_TEST_CONTROL")
	if socket == "" {
		return "", errors.New("SLUICE_TEST_CONTROL is not set: the services must run as processes of deploy/services")
	}
	return Control(socket), nil
}

// Tell gives a command like "freeze redis", waits until it is done, and returns what is said after "ok".
func (c Control) Tell(command string) (string, error) {
	conn, err := net.Dial("unix", string(c))
	if err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintln(conn, command); err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	line = strings.TrimSpace(line)
	if line != "ok" && !strings.HasPrefix(line, "ok ") {
		return "", fmt.Errorf("%s: %s", command, line)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "ok")), nil
}
