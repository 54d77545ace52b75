package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// program is something to be found on this machine, and the Debian package that brings it.
type program struct {
	name    string
	pack    string
	aliases []string // other names it goes by
	folders []string // where it may lie outside of PATH; patterns, the last match wins, so the newest version does
}

func programs() []program {
	postgres := []string{"/usr/lib/postgresql/*/bin"}
	return []program{
		{name: "redis-server", pack: "redis-server"},
		{name: "redis-cli", pack: "redis-tools"},
		// Debian's wrapper in /usr/sbin insists on its own user, folder and log; the program itself does not.
		{name: "rabbitmq-server", pack: "rabbitmq-server", folders: []string{"/usr/lib/rabbitmq/bin"}},
		{name: "rabbitmqctl", pack: "rabbitmq-server", folders: []string{"/usr/lib/rabbitmq/bin"}},
		{name: "epmd", pack: "rabbitmq-server"},
		// The PATH of an ordinary user does not go to where Debian has it.
		{name: "mariadbd", pack: "mariadb-server", folders: []string{"/usr/sbin"}},
		{name: "mariadb-install-db", pack: "mariadb-server"},
		{name: "postgres", pack: "postgresql", folders: postgres},
		{name: "initdb", pack: "postgresql", folders: postgres},
		{name: "chromium", pack: "chromium", aliases: []string{"chromium-browser", "google-chrome"}},
		{name: "node", pack: "nodejs"},
		{name: "npm", pack: "npm"},
		// Not on the PATH of an ordinary user either.
		{name: "nginx", pack: "nginx", folders: []string{"/usr/sbin"}},
		{name: "luacheck", pack: "lua-check"},
		{name: "wrk", pack: "wrk"},
		{name: "redis-benchmark", pack: "redis-tools"},
		{name: "prometheus", pack: "prometheus"},
		{name: "promtool", pack: "prometheus"},
		{name: "make", pack: "make"},
		// The package gcc only recommends the headers of the C library; g++ depends on them.
		{name: "gcc", pack: "g++"},
	}
}

func programNames() []string {
	var names []string
	for _, p := range programs() {
		names = append(names, p.name)
	}
	return names
}

// host is this machine: which programs it has, and how it gets more.
type host struct {
	progress io.Writer
	// lookup returns where a program lies; it is a field so that tests can say what is missing.
	lookup func(program) (string, bool)
	// asRoot returns what to put before a command that needs root, or an error that says there is no way.
	asRoot func(context.Context) ([]string, error)
}

func newHost(progress io.Writer) *host {
	return &host{progress: progress, lookup: lookProgram, asRoot: rootPrefix}
}

func lookProgram(p program) (string, bool) {
	for _, folder := range p.folders {
		found, _ := filepath.Glob(filepath.Join(folder, p.name))
		for _, path := range slices.Backward(found) {
			if path, err := exec.LookPath(path); err == nil {
				return path, true
			}
		}
	}
	for _, name := range append([]string{p.name}, p.aliases...) {
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
}

// find returns where the program of that name lies.
func (h *host) find(name string) (string, bool) {
	i := slices.IndexFunc(programs(), func(p program) bool { return p.name == name })
	if i < 0 {
		return "", false
	}
	return h.lookup(programs()[i])
}

// missing returns the packages that bring those of the named programs which are not here, each once.
func (h *host) missing(names []string) []string {
	var packages []string
	for _, p := range programs() {
		if !slices.Contains(names, p.name) {
			continue
		}
		if _, ok := h.lookup(p); !ok && !slices.Contains(packages, p.pack) {
			packages = append(packages, p.pack)
		}
	}
	return packages
}

// install gets the named programs that are not here yet. It fails if one of them is not here afterwards.
func (h *host) install(ctx context.Context, names []string) error {
	if len(h.missing(names)) == 0 {
		return nil
	}
	prefix, err := h.asRoot(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", sayMissing(h.missing(names)), err)
	}
	// Two runs at once would fail at apt's lock of its lists, for which it does not wait.
	unlock, err := lockFile(filepath.Join(os.TempDir(), fmt.Sprintf("sluice-packages-%d.lock", os.Getuid())))
	if err != nil {
		return err
	}
	defer unlock()
	packages := h.missing(names)
	if len(packages) == 0 {
		return nil
	}

	begun := time.Now()
	fmt.Fprintf(h.progress, "services: installing %s\n", strings.Join(packages, " "))
	// Run level 1 keeps the packages from starting their services.
	apt := append(prefix, "env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1", "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300")
	for _, args := range [][]string{{"update"}, append([]string{"install", "-y", "--no-install-recommends"}, packages...)} {
		args = append(slices.Clone(apt), args...)
		out, err := combinedOutput(ctx, exec.Command(args[0], args[1:]...))
		if err != nil {
			return fmt.Errorf("%s: %s: %w\n%s", sayMissing(packages), strings.Join(args, " "), err, lastLines(out, 20))
		}
	}
	if left := h.missing(names); len(left) > 0 {
		return fmt.Errorf("%s, and installing it did not bring the program", sayMissing(left))
	}
	fmt.Fprintf(h.progress, "services: installed in %.1f s\n", time.Since(begun).Seconds())
	return nil
}

// sayMissing tells a person what is missing and how to get it.
func sayMissing(packages []string) string {
	list := strings.Join(packages, " ")
	return fmt.Sprintf("missing: %s (on Debian: apt-get install %s)", list, list)
}

// rootPrefix looks for a way to become root that asks for no password.
func rootPrefix(ctx context.Context) ([]string, error) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, fmt.Errorf("this machine has neither apt-get nor a Docker engine that answers")
	}
	if os.Getuid() == 0 {
		return nil, nil
	}
	if err := exec.CommandContext(ctx, "sudo", "-n", "true").Run(); err != nil {
		return nil, fmt.Errorf("installing it here takes root, or a sudo without password")
	}
	return []string{"sudo", "-n"}, nil
}

// lockFile waits until this process alone holds the lock that the file stands for.
func lockFile(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of package installations: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("waiting for another installation of packages: %w", err)
	}
	return func() { file.Close() }, nil
}
