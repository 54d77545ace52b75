package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed compose.yaml
var composeFile []byte

// engine is a project of Docker Compose that holds the services of one run.
type engine struct {
	docker  string // the program
	file    string
	project string
}

// dockerAnswers reports whether a Docker engine and its Compose can be used here.
func dockerAnswers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return exec.CommandContext(ctx, "docker", "info").Run() == nil &&
		exec.CommandContext(ctx, "docker", "compose", "version").Run() == nil
}

// newEngine writes the compose file into the run's folder, whose name, unlike any other run's, names the project.
func newEngine(dir string) (*engine, error) {
	e := &engine{docker: "docker", file: filepath.Join(dir, "compose.yaml"), project: filepath.Base(dir)}
	return e, os.WriteFile(e.file, composeFile, 0o600)
}

// up makes and starts the containers of the named services, after fetching images that are not here.
func (e *engine) up(ctx context.Context, services []string) error {
	_, err := e.compose(ctx, append([]string{"up", "--detach", "--quiet-pull", "--no-color"}, services...)...)
	return err
}

// address returns where a container's port is published.
func (e *engine) address(ctx context.Context, service string, inside int) (string, error) {
	out, err := e.compose(ctx, "port", service, fmt.Sprint(inside))
	return strings.TrimSpace(out), err
}

// logs returns the end of what a container printed.
func (e *engine) logs(ctx context.Context, service string) string {
	out, _ := e.compose(ctx, "logs", "--no-color", "--tail", "20", service)
	return out
}

// down removes the project's containers, networks and volumes. It does not depend on the run's context, which has
// ended when this is called.
func (e *engine) down() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := e.compose(ctx, "down", "--volumes", "--timeout", "0")
	return err
}

func (e *engine) compose(ctx context.Context, args ...string) (string, error) {
	args = append([]string{"compose", "--project-name", e.project, "--file", e.file}, args...)
	out, err := combinedOutput(ctx, exec.Command(e.docker, args...))
	if err != nil {
		return string(out), fmt.Errorf("docker %s: %w\n%s", strings.Join(args, " "), err, lastLines(out, 20))
	}
	return string(out), nil
}
