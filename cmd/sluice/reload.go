package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"
)

// live are the flags that a running node takes other values of. Whatever else changes waits for a restart.
var live = []string{
	"log-level",
	"limit-user", "limit-address", "limit-node", "outbox-limit",
	"conns-seat", "conns-address", "conns-node",
	"secret", "secret-file", "admin-token", "admin-token-file",
	"webhook-secret", "webhook-secret-file", "challenge-secret", "challenge-secret-file",
}

// commandLine is what a command was called with, and how to read that again.
type commandLine struct {
	parsed   *kong.Context
	shadowed []string // settings that the file of --config has in vain
	again    func() (next *cli, parsed *kong.Context, err error)
}

// flagsOf are the flags of a command with their values, wherever these came from. The value of a --…-file is what it names and
// what is in that: files of secrets are written anew under the same name.
func flagsOf(parsed *kong.Context) map[string]string {
	flags := map[string]string{}
	for _, flag := range parsed.Flags() {
		value := fmt.Sprint(flag.Target.Interface())
		if strings.HasSuffix(flag.Name, "-file") && isFile(value) {
			data, _ := os.ReadFile(value) // whoever wants to use it finds out what is wrong with it
			value += "\n" + string(data)
		}
		flags[flag.Name] = value
	}
	return flags
}

// isFile says whether something can be read more than once: a pipe cannot.
func isFile(path string) bool {
	about, err := os.Stat(path)
	return err == nil && about.Mode().IsRegular()
}

// prepare makes ready to put in force what may change of a node: all of it, by a function that cannot fail, or nothing.
type prepare func(next *cli) (change func(), err error)

// reloader reads the settings of a node again at each SIGHUP. Its methods must not be called at the same time.
type reloader struct {
	asked   chan os.Signal
	log     *slog.Logger
	line    *commandLine
	flags   map[string]string // those in force
	prepare prepare
	reloads *prometheus.CounterVec
	worked  prometheus.Gauge
}

// newReloader catches the signal from now on, and no sooner than stop does it end the process again: one that comes while the
// node starts waits, and one that comes while it ends changes nothing.
func newReloader(line *commandLine) *reloader {
	r := &reloader{
		asked: make(chan os.Signal, 1), // one that is waiting is as good as two
		line:  line, flags: flagsOf(line.parsed),
	}
	signal.Notify(r.asked, syscall.SIGHUP)
	return r
}

// begin has the reloader say what it does to a node, and do it.
func (r *reloader) begin(registerer prometheus.Registerer, log *slog.Logger, prepare prepare) {
	r.log, r.prepare = log, prepare
	r.reloads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_config_reloads_total", Help: "Times that the settings were read again while the node ran.",
	}, []string{"result"})
	r.worked = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sluice_config_last_reload_successful", Help: "0 when the settings were read again last and refused, so that those of before are in force; 1 otherwise.",
	})
	registerer.MustRegister(r.reloads, r.worked)
	r.worked.Set(1)
	r.warnOfShadowed()
}

// stop leaves the signal to whoever else wants it.
func (r *reloader) stop() { signal.Stop(r.asked) }

// reload reads everything again that the node was started with, its files too, and puts in force what may change. When anything
// of it is wrong, nothing changes, also what a restart would have taken. It blocks on files only.
func (r *reloader) reload() {
	if path := configPath(r.line.parsed); path != "" && !isFile(path) {
		r.refuse(fmt.Errorf("--config %s is no file that can be read again", path))
		return
	}
	next, parsed, err := r.line.again()
	if err != nil {
		r.refuse(err)
		return
	}
	change, err := r.prepare(next)
	if err != nil {
		r.refuse(err)
		return
	}
	change()
	var changed, late []string
	for name, value := range flagsOf(parsed) {
		switch {
		case value == r.flags[name]:
		case slices.Contains(live, name):
			changed = append(changed, name)
			r.flags[name] = value
		default:
			late = append(late, name) // and it is named again each time, as long as it waits
		}
	}
	slices.Sort(changed)
	r.log.Info("the settings were read again", "changed", strings.Join(changed, " "))
	if len(late) > 0 {
		slices.Sort(late)
		r.log.Warn("some settings differ from those in force, and take a restart", "settings", strings.Join(late, " "))
	}
	r.warnOfShadowed()
	r.reloads.WithLabelValues("ok").Inc()
	r.worked.Set(1)
}

// warnOfShadowed says what of the file is not looked at: whoever exchanges a secret there would wait in vain.
func (r *reloader) warnOfShadowed() {
	if len(r.line.shadowed) > 0 {
		r.log.Warn("some settings of the file of --config are not used: the command line or the environment has them, and goes first",
			"settings", strings.Join(r.line.shadowed, " "))
	}
}

func (r *reloader) refuse(err error) {
	r.log.Error("the settings were read again and are refused; those of before stay in force", "error", err)
	r.reloads.WithLabelValues("refused").Inc()
	r.worked.Set(0)
}
