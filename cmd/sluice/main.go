// Command sluice is the whole of Sluice in one binary: the server, its workers, and the tools that drive and test them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9/logging"
)

func main() {
	// The library would write lines of its own beside ours; what went wrong it returns as well.
	logging.Disable()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for an orderly end. Letting go of the signals then makes a second one end the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// The exit codes, the same for every command.
const (
	exitOK     = 0
	exitFailed = 1 // the thing asked for failed, or does not hold
	exitUsage  = 2 // the command line cannot be understood
)

// stdio is where a command reads and writes, so that tests can run commands in-process.
type stdio struct {
	in  io.Reader
	out io.Writer // results
	err io.Writer // progress and errors
}

// cli is the command line. Each command is a struct with its flags, a Run method and a Help with an example.
type cli struct {
	Demo    demoCmd    `cmd:"" help:"Hold a whole sale in this process, with a crowd and a page to watch."`
	Serve   serveCmd   `cmd:"" help:"Serve shoppers and operators."`
	Worker  workerCmd  `cmd:"" help:"Write orders into the database."`
	Migrate migrateCmd `cmd:"" help:"Bring the tables of the database up to date."`
	Token   tokenCmd   `cmd:"" help:"Mint user tokens for testing."`
	Sale    saleCmd    `cmd:"" help:"Apply, look at and drive sales."`
	Dead    deadCmd    `cmd:"" help:"Look after orders that could not be written."`
	Audit   auditCmd   `cmd:"" help:"Check that nothing is oversold, lost or sold twice."`
	Verify  verifyCmd  `cmd:"" help:"Check the draw of a lottery from public data alone."`
	Doctor  doctorCmd  `cmd:"" help:"Check what an installation stands on, and say what to change."`
	Crowd   crowdCmd   `cmd:"" help:"Send a crowd of shoppers to a sale and check that each was told the truth."`

	Config      string           `placeholder:"FILE" help:"File with flags by their names, as YAML: limit-user: 20/s. The command line and the environment go first."`
	ShowVersion versionCmd       `cmd:"" name:"version" help:"Print the version, the commit and the Go that this program was built from."`
	Version     kong.VersionFlag `help:"Print the version in one line and exit." env:"-"`
}

// usageError is a mistake in the command line that kong cannot see by itself.
type usageError struct{ message string }

// Error is the sentence.
func (e *usageError) Error() string { return e.message }

// usagef makes a usageError.
func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// run runs one command line to its end and returns the exit code. It blocks as long as the command does; a cancelled
// ctx ends every command.
func run(ctx context.Context, args []string, std stdio) int {
	if len(args) == 0 {
		args = []string{"--help"}
	}
	for i, arg := range args {
		// kong would quietly put a replacement character in, and a user id would be another one. It may be a secret.
		if !utf8.ValidString(arg) {
			return report(std, usagef("argument %d is not UTF-8", i+1))
		}
	}
	var commands cli
	line := &commandLine{}
	line.again = func() (next *cli, parsed *kong.Context, err error) {
		next = &cli{}
		parsed, _, err = parse(ctx, args, std, line, next)
		return next, parsed, err
	}
	parsed, exit, err := parse(ctx, args, std, line, &commands)
	switch {
	case exit >= 0:
		return exit
	case err != nil:
		return report(std, err)
	}
	line.parsed = parsed
	return report(std, parsed.Run())
}

// parse reads a command line, with the environment and the file of --config, into commands. exit is 0 or more when that was all
// that was asked for, as by --help. line is for commands that want to read it again.
func parse(ctx context.Context, args []string, std stdio, line *commandLine, commands *cli) (parsed *kong.Context, exit int, err error) {
	exit = -1
	file := &configFile{}
	parser, err := kong.New(commands, append(plainValues(),
		kong.Name("sluice"),
		kong.Description("A front end for flash sales: a waiting room, an atomic grab and an order pipeline."),
		kong.Vars{"version": "sluice " + build()},
		kong.DefaultEnvars("SLUICE"),
		kong.Resolvers(file),
		kong.Writers(std.out, std.err),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(&std),
		kong.Bind(line),
		// kong calls this after it printed help or the version and then goes on; what it says afterwards has no meaning.
		kong.Exit(func(code int) {
			if exit < 0 {
				exit = code
			}
		}),
	)...)
	if err != nil {
		return nil, exit, fmt.Errorf("build the command line: %w", err)
	}
	parsed, err = parser.Parse(args)
	if err != nil {
		return nil, exit, usageOf(err)
	}
	line.shadowed = file.shadowed(parsed)
	return parsed, exit, nil
}

// usageOf turns what kong found wrong into a sentence that says where help is.
func usageOf(err error) error {
	command := "sluice"
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		if node := parse.Context.Selected(); node != nil {
			command = "sluice " + node.Path()
		}
	}
	said := strings.Replace(err.Error(), " (from envar ", " (from the variable ", 1)
	return usagef("%s (see %s --help)", said, strings.TrimSpace(command))
}

// report prints err as one sentence and returns the exit code that goes with it.
func report(std stdio, err error) int {
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(std.err, "sluice: %v\n", err)
	var usage *usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}
