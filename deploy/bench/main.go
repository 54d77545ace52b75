package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"
)

// stdio is what a command reads and prints.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

type cli struct {
	Run     runCmd     `cmd:"" default:"withargs" help:"Measure, and write docs/performance.md."`
	Peers   peersCmd   `cmd:"" hidden:""`
	Contend contendCmd `cmd:"" hidden:""`
}

func main() {
	std := &stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr}
	if err := kong.Parse(new(cli), kong.UsageOnError(), kong.Vars{"figures": figureNames()}).Run(std); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// runCmd measures.
type runCmd struct {
	Size   string   `enum:"full,tiny" default:"full" help:"full, or tiny: every path once, for no figures worth reading."`
	Only   []string `placeholder:"FIGURE" help:"Figures to measure; the others keep what was measured before. There are: ${figures}."`
	Rounds int      `help:"How often each contender has its turn; 3."`
	Crowd  int      `help:"Shoppers of the scenario; 300000."`
	Root   string   `default:"." help:"Folder of the project."`
	Report bool     `default:"true" negatable:"" help:"Write docs/performance.md and its pictures."`
}

// bench is one run.
type bench struct {
	size
	dir    string // of this run
	cache  string // of what is built once
	root   string
	self   string // this program
	sluice string
	redis  *redis.Client
	mysql  *sql.DB
	pg     *sql.DB

	redisURL, amqpURL, mysqlURL, postgresURL string

	out       io.Writer
	processes []*process
	started   int
	worlds    int
	sources   int
	begun     time.Time
}

// figureNames are the names of all figures, for people.
func figureNames() string {
	var names []string
	for _, f := range figures() {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// Run measures the figures asked for, one after the other.
func (c *runCmd) Run(std *stdio) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	for _, name := range c.Only {
		if !slices.ContainsFunc(figures(), func(f figure) bool { return f.name == name }) {
			return fmt.Errorf("--only %s: there is no such figure; there are %s", name, figureNames())
		}
	}
	b, err := c.prepare(ctx, std)
	if err != nil {
		return err
	}
	defer b.close()
	book, err := readBook(c.Root)
	if err != nil {
		return err
	}
	for _, f := range figures() {
		if len(c.Only) > 0 && !slices.Contains(c.Only, f.name) || c.Size == "tiny" && f.big {
			continue
		}
		b.say("%s: %s", f.name, f.title)
		begun := time.Now()
		r, err := f.measure(b, ctx)
		b.killAll()
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		r.Name, r.Title, r.Commit, r.Machine = f.name, f.title, b.commit(ctx), b.machine(ctx).name()
		r.Took, r.At = time.Since(begun).Seconds(), begun.UTC()
		fmt.Fprint(std.out, r.table())
		if c.Size == "tiny" {
			continue // nothing was measured that is worth a verdict, or keeping
		}
		for _, p := range r.Promises {
			fmt.Fprintf(std.out, "%s: %s\n", map[bool]string{true: "kept", false: "NOT KEPT"}[p.Kept], p.Text)
		}
		book.put(r)
		if c.Report {
			if err := book.write(ctx, b); err != nil { // after each figure: a run may be cut short
				return err
			}
		}
	}
	return nil
}

func (c *runCmd) prepare(ctx context.Context, std *stdio) (*bench, error) {
	b := &bench{size: sizes()[c.Size], root: c.Root, out: std.err, begun: time.Now()}
	if c.Rounds > 0 {
		b.rounds = c.Rounds
	}
	if c.Crowd > 0 {
		b.crowd = c.Crowd
	}
	var err error
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.root, err = filepath.Abs(c.Root); err != nil {
		return nil, err
	}
	b.cache = filepath.Join(b.root, "bin", "bench")
	if err := os.MkdirAll(b.cache, 0o755); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "sluice-bench-"); err != nil {
		return nil, err
	}
	b.sluice = filepath.Join(b.root, "bin", "sluice")
	for variable, to := range map[string]*string{
		"SLUICE_TEST_REDIS": &b.redisURL, "SLUICE_TEST_AMQP": &b.amqpURL, "SLUICE_TEST_MYSQL": &b.mysqlURL, "SLUICE_TEST_POSTGRES": &b.postgresURL,
	} {
		if *to = os.Getenv(variable); *to == "" {
			return nil, fmt.Errorf("%s is not set; run the bench with: make bench", variable)
		}
	}
	if err := allowFiles(); err != nil {
		return nil, err
	}
	return b, b.connect()
}

// allowFiles raises the limit of open files for this process and those that it starts.
func allowFiles() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.out, "%6.0f s  %s\n", time.Since(b.begun).Seconds(), fmt.Sprintf(format, args...))
}

// run runs a program to its end and returns what it printed.
func (b *bench) run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = b.dir
	var failure strings.Builder
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", filepath.Base(program), args[0], err, strings.TrimSpace(failure.String()))
	}
	return string(out), nil
}

// killAll ends all processes that still run.
func (b *bench) killAll() {
	for _, p := range b.processes {
		p.kill()
	}
	b.processes = nil
}

func (b *bench) close() {
	b.killAll()
	b.dropDatabases()
	_ = errors.Join(b.redis.Close(), b.mysql.Close(), b.pg.Close(), os.RemoveAll(b.dir))
}
