package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// arguments is what the command line asks for.
type arguments struct {
	only    []string // what to start, in the order of needs
	with    string   // docker, packages, or auto: docker where an engine answers
	install []string // programs to get, instead of starting anything
	command []string // what to run meanwhile; empty: stay until interrupted
}

var errHelp = flag.ErrHelp

// parse reads the command line; it writes help and complaints about flags to usage.
func parse(args []string, usage io.Writer) (arguments, error) {
	var only, install string
	asked := arguments{with: "auto"}
	flags := flag.NewFlagSet("services", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&only, "only", "", "start only `THESE`, separated by commas: "+strings.Join(needNames(), ", ")+"; without it all of them but brokers")
	flags.StringVar(&asked.with, "with", asked.with, "`HOW` services are started: docker, packages, or auto")
	flags.StringVar(&install, "install", "", "only install `THESE` programs, separated by commas: "+strings.Join(programNames(), ", "))
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(usage, "usage: go run ./deploy/services [flags] [-- command arguments…]")
			flags.SetOutput(usage)
			flags.PrintDefaults()
		}
		return arguments{}, err
	}
	asked.command = flags.Args()

	if !slices.Contains([]string{"auto", "docker", "packages"}, asked.with) {
		return arguments{}, fmt.Errorf("--with %s: it is docker, packages or auto", asked.with)
	}
	var err error
	if asked.only, err = chosen("--only", only, needNames()); err != nil {
		return arguments{}, err
	}
	if asked.only == nil {
		asked.only = usualNames()
	}
	if asked.install, err = chosen("--install", install, programNames()); err != nil {
		return arguments{}, err
	}
	if len(asked.install) > 0 && len(asked.command) > 0 {
		return arguments{}, errors.New("--install runs no command: leave out " + strings.Join(asked.command, " "))
	}
	return asked, nil
}

// chosen splits a list at its commas and puts it into the order of known; a name that is not known is an error.
func chosen(name, list string, known []string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	names := strings.Split(list, ",")
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("%s %s: there is no %q; known are %s", name, list, n, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(known), func(k string) bool { return !slices.Contains(names, k) }), nil
}
