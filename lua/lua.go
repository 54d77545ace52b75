// Package lua holds the scripts that change a sale in Redis, each one atomic step. A script's header names its keys, its
// arguments and what it returns; rules.lua, window.lua and line.lua are put before each of them, so what several share stands once.
package lua

import "embed"

//go:embed *.lua
var files embed.FS

// Names are the scripts, without the parts that are put before them.
func Names() []string {
	return []string{"adopt", "apply", "balance", "bury", "control", "draw", "erase", "freeze", "grab", "join", "leave", "limit", "look", "presence", "ready", "release", "tick"}
}

// Source is the complete text of a script. For the embedded Redis, which has no run id, it is compiled with a constant
// one. It panics on a name that is not in Names: the text is part of the program.
func Source(name string, embedded bool) string {
	run := "server.lua"
	if embedded {
		run = "embedded.lua"
	}
	return text(run) + text("rules.lua") + text("window.lua") + text("line.lua") + text(name+".lua")
}

func text(file string) string {
	data, err := files.ReadFile(file)
	if err != nil {
		panic(err)
	}
	return string(data)
}
