package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// machine says what the figures were measured on.
type machine struct {
	Processor string   `json:"processor"`
	Cores     int      `json:"cores"`
	Memory    string   `json:"memory"`
	System    string   `json:"system"`
	Versions  []string `json:"versions"`
}

// name is what tells one machine from another in the tables.
func (m machine) name() string { return fmt.Sprintf("%s with %d cores", m.Processor, m.Cores) }

func (b *bench) machine(ctx context.Context) machine {
	m := machine{Processor: runtime.GOARCH, Cores: runtime.NumCPU(), System: runtime.GOOS}
	m.Versions = append(m.Versions, strings.Replace(runtime.Version(), "go", "Go ", 1))
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.Processor = strings.TrimSpace(value)
				break
			}
		}
	}
	m.Memory = number(memory("MemTotal:")/(1<<30)) + " GB"
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System = "Linux " + strings.TrimSpace(string(text))
	}
	if v, err := b.info(ctx, "server", "redis_version"); err == nil {
		m.Versions = append(m.Versions, "Redis "+v)
	}
	var v string
	if err := b.mysql.QueryRowContext(ctx, "SELECT VERSION()").Scan(&v); err == nil {
		m.Versions = append(m.Versions, "MariaDB "+v)
	}
	if err := b.pg.QueryRowContext(ctx, "SHOW server_version").Scan(&v); err == nil {
		m.Versions = append(m.Versions, "PostgreSQL "+v)
	}
	return m
}

// commit names the state of the tree that is measured. The figures of this run are no part of it.
func (b *bench) commit(ctx context.Context) string {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", b.root}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	name, err := git("rev-parse", "--short=10", "HEAD")
	if err != nil {
		return "unknown"
	}
	changed, err := git("status", "--porcelain", "--", ".", ":!docs/performance.json", ":!docs/performance.md", ":!docs/images/growth.svg")
	if err != nil || changed != "" {
		name += "-dirty"
	}
	return name
}

// memory reads a field of /proc/meminfo, in bytes; 0 = there is none.
func memory(field string) float64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				return 0
			}
			return kb * 1024
		}
	}
	return 0
}

// usedMemory is what of the machine's memory is in use, buffers of sockets included, in bytes.
func usedMemory() float64 { return memory("MemTotal:") - memory("MemAvailable:") }
