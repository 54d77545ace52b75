package main

import (
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	// ownFiles are descriptors for what is no shopper, besides the pools: the broker, operators, files, and connections that are
	// to hear that there is no room.
	ownFiles = 512
	// connMemory is what a connection may take at most, with everything that stands behind it, in bytes; TLS keeps buffers of
	// its own. A waiting shopper takes less than half of it.
	connMemory    = 20 << 10
	connMemoryTLS = 50 << 10
	// fewestConns are let in by however small a machine.
	fewestConns = 64
)

// room is how many connections a node of this process may have at once, by the descriptors and the memory that it is allowed:
// pools are the descriptors of its other connections, and half of the memory is for what else a node does.
func room(files, memory uint64, pools int, secure bool) int {
	each := uint64(connMemory)
	if secure {
		each = connMemoryTLS
	}
	taken := uint64(ownFiles + pools)
	free := files - min(files, taken)
	return int(min(max(min(free, memory/2/each), fewestConns), math.MaxInt32))
}

// memoryAllowed is how many bytes this process may use: the least of what Go was told, the control group allows and the machine
// has. MaxInt64 where nothing says.
func memoryAllowed() uint64 {
	return memoryUnder("/", debug.SetMemoryLimit(-1))
}

// memoryUnder is memoryAllowed of the file system at root.
func memoryUnder(root string, told int64) uint64 {
	allowed := uint64(max(told, 0))
	for _, file := range limitFiles(root) {
		if data, err := os.ReadFile(filepath.Join(root, file)); err == nil {
			// "max" is no number, and no limit.
			if n, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64); err == nil {
				allowed = min(allowed, n)
			}
		}
	}
	data, _ := os.ReadFile(filepath.Join(root, "proc/meminfo")) // elsewhere than in Linux there is none
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			if kb, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64); err == nil {
				allowed = min(allowed, kb<<10)
			}
		}
	}
	return allowed
}

// limitFiles are the files that may hold a limit of the control group of this process, or of one that it is in. In a container
// that is the topmost that there is to be seen; of a service of systemd it is some way down.
func limitFiles(root string) []string {
	files := []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"}
	data, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup")) // elsewhere than in Linux there is none
	for line := range strings.Lines(string(data)) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		kinds, group, _ := strings.Cut(rest, ":")
		dir, name := "sys/fs/cgroup", "memory.max"
		switch {
		case kinds == "memory":
			dir, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		case id != "0" || kinds != "":
			continue
		}
		for group = path.Clean("/" + group); group != "/"; group = path.Dir(group) {
			files = append(files, path.Join(dir, group, name))
		}
	}
	return files
}
