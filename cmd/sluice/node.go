package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"sluice/hub"
	"sluice/queue"
	"sluice/server"
	"sluice/trace"
	"sluice/web"
	"sluice/worker"
)

// workerFlags are the settings of the workers.
type workerFlags struct {
	OrderBatch  int `default:"500" help:"Orders written in one transaction at most."`
	RelayWindow int `default:"1000" help:"Orders of a sale that may be on their way to the broker at once."`

	ArchiveAfter    time.Duration `default:"24h" help:"How long after its end a sale of which nothing is left to do is archived by itself; 0 is only by sluice sale archive."`
	PurgeUsersAfter time.Duration `default:"0" placeholder:"DURATION" help:"How long after it was archived the users of a sale's orders are replaced by pseudonyms for good, like 2160h; 0 is only by sluice sale archive --purge-users."`

	PauseOnImbalance bool `default:"true" negatable:"" help:"Pause a sale whose books do not add up in the regular audit."`
}

// outOfRange are the errors of figures with which no worker works.
func (f workerFlags) outOfRange() (refused []error) {
	if f.OrderBatch < 1 || f.RelayWindow < 1 {
		refused = append(refused, usagef("--order-batch and --relay-window must be 1 or more"))
	}
	if f.ArchiveAfter < 0 || f.PurgeUsersAfter < 0 {
		refused = append(refused, usagef("--archive-after and --purge-users-after must be 0 or more; 0 is never by itself"))
	}
	return refused
}

// node is a running process of Sluice: the server, the workers, or both. Tests and the demo run one in-process.
type node struct {
	name     string
	log      *slog.Logger
	registry *prometheus.Registry
	backends *backends
	tracer   *trace.Tracer  // nil = nothing is followed
	server   *server.Server // nil on a node that only works
	hub      *hub.Hub
	gate     *server.Gate
	stop     context.CancelFunc
	running  sync.WaitGroup
	failed   chan error

	// URL is where the server listens, and Admin the token of its admin API.
	URL   string
	Admin string
	// Secret signs tokens that this node accepts.
	Secret []byte

	certificate      *certificate // nil without TLS
	http, admin, ops *http.Server
	drain            time.Duration
}

// newNode opens what a node stands on, by flags that were read. The caller closes it.
func newNode(ctx context.Context, f backendFlags, traces traceFlags, log *slog.Logger) (*node, error) {
	n := &node{name: nodeName(), log: log, registry: prometheus.NewRegistry(), failed: make(chan error, 3)}
	n.log = log.With("node", n.name)
	n.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var err error
	if n.tracer, err = traces.tracer(n.name, n.log); err != nil {
		return nil, err
	}
	n.backends, err = openBackends(ctx, f, n.name, n.log, n.registry, n.tracer)
	if err != nil {
		n.flush()
	}
	return n, err
}

// nodeName tells this process from every other one, also from an earlier one on the same host.
func nodeName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "node"
	}
	return host + "-" + randomHex(3)
}

// randomHex is n random bytes, in hex.
func randomHex(n int) string {
	random := make([]byte, n)
	_, _ = rand.Read(random) // never fails
	return hex.EncodeToString(random)
}

// start runs fn until the node closes.
func (n *node) start(ctx context.Context, fn func(context.Context)) {
	n.running.Go(func() { fn(ctx) })
}

// work starts the relays and writers, the sweeper of holds, the regular audit and the archivist. It returns at once.
func (n *node) work(ctx context.Context, f workerFlags, notifier *worker.Notifier) {
	w := worker.New(worker.Options{
		Queue: n.backends.queue, Store: n.backends.store, Broker: n.backends.broker(), Notifier: notifier,
		Logger: n.log, Registerer: n.registry, Tracer: n.tracer, Node: n.name, Batch: f.OrderBatch, RelayWindow: f.RelayWindow,
	})
	n.start(ctx, w.Run)
	auditor := worker.NewAuditor(n.backends.queue, n.backends.store, n.backends.broker())
	n.start(ctx, worker.NewInspector(n.backends.queue, auditor, n.name, f.PauseOnImbalance, n.log, n.registry).Run)
	n.start(ctx, worker.NewArchivist(n.backends.queue, n.backends.store, n.backends.broker(), worker.ArchivistOptions{
		Node: n.name, ArchiveAfter: f.ArchiveAfter, PurgeAfter: f.PurgeUsersAfter,
	}, n.log).Run)
	n.start(ctx, worker.NewSweeper(n.backends.queue, n.backends.store, n.log, n.registry, n.tracer).Run)
}

// restore starts what brings sales back to Redis.
func (n *node) restore(ctx context.Context) {
	r := worker.NewRestorer(n.backends.queue, n.backends.store, n.backends.broker(), n.name, n.log, n.registry)
	n.start(ctx, r.Run)
}

// serve starts the server. It returns when it listens.
func (n *node) serve(ctx context.Context, f serverSettings, notifier *worker.Notifier) error {
	n.Admin, n.Secret, n.drain = f.admin, f.secrets[0], f.Drain
	n.hub = hub.New(hub.Options{Logger: n.log, Registerer: n.registry, ConnsPerKey: f.ConnsSeat})
	keys, err := f.keys(n.log, n.registry)
	if err != nil {
		return err
	}
	opts := server.Options{
		Queue: n.backends.queue, Orders: n.backends.store, Sales: n.backends.store, Hub: n.hub, Node: n.name,
		Cashier:   worker.NewCashier(n.backends.queue, n.backends.store, n.log),
		Archivist: worker.NewArchivist(n.backends.queue, n.backends.store, n.backends.broker(), worker.ArchivistOptions{Node: n.name}, n.log),
		Auditor:   auditor{worker.NewAuditor(n.backends.queue, n.backends.store, n.backends.broker())},
		Settings:  f.live(n.backends.flags), Auth: f.auth, Keys: keys, Issuer: f.JWTIssuer, Audiences: f.JWTAudience, Leeway: f.JWTLeeway,
		PassIssuer: f.PassIssuer, Origins: f.Origins, TrustedProxies: f.TrustedProxies,
		AuditLog: auditLog{n.backends.store}, Draws: n.backends.store, Broker: n.backends.broker(),
		AdminApart: f.AdminListen != "", Secure: f.TLSCert != "",
		Version: build(), BrokerUI: f.BrokerUIURL,
		Web: web.Handler(web.Options{FrameAncestors: f.FrameAncestors}), Ready: n.backends.ready,
		Away:   n.backends.away,
		Logger: n.log, Tracer: n.tracer, Registerer: n.registry, Gatherer: n.registry,
	}
	opts.Forget = func(ctx context.Context, order queue.Order) (queue.Order, error) {
		return n.backends.store.Reject(ctx, order, worker.RejectedLost)
	}
	if notifier != nil {
		opts.AwaitRow = func(ctx context.Context, order queue.Order) error { return awaitRow(ctx, notifier, order) }
	}
	if n.server, err = server.New(opts); err != nil {
		return err
	}
	n.start(ctx, n.server.Run)
	if f.TLSCert != "" {
		if n.certificate, err = openCertificate(f.TLSCert, f.TLSKey, n.log); err != nil {
			return err
		}
	}
	if err := n.serveShoppers(f); err != nil {
		return err
	}
	if err := n.serveOperators(f.AdminListen); err != nil {
		return err
	}
	return n.serveOps(f.OpsListen, n.server.Ops())
}

// serveShoppers starts the listener of shoppers, behind a gate.
func (n *node) serveShoppers(f serverSettings) error {
	most, err := n.most(f.ConnsNode)
	if err != nil {
		return err
	}
	n.gate, err = server.NewGate(server.GateOptions{Most: most, PerAddress: f.ConnsAddress, Trusted: f.TrustedProxies})
	if err != nil {
		return err
	}
	listener, err := listenAt("listen", f.Listen)
	if err != nil {
		return err
	}
	n.log.Info("room", "connections", most)
	n.http = server.NewHTTPServer(f.Listen, n.server.Handler())
	n.URL = n.listen(n.http, n.gate.Listen(listener), n.certificate)
	return nil
}

// most is how many connections the node takes, where so many were asked for; 0 = as many as it can.
func (n *node) most(asked int) (int, error) {
	if asked > 0 {
		return asked, nil
	}
	files, err := filesAllowed()
	if err != nil {
		return 0, err
	}
	return room(files, memoryAllowed(), n.backends.flags.RedisPool+n.backends.flags.DatabaseConns, n.certificate != nil), nil
}

// serveOperators starts the listener of operators; "" has them come with the shoppers. It has no gate: it is on an address that
// shoppers do not reach.
func (n *node) serveOperators(address string) error {
	if address == "" {
		return nil
	}
	listener, err := listenAt("admin-listen", address)
	if err != nil {
		return err
	}
	n.admin = server.NewHTTPServer(address, n.server.Operators())
	n.log.Info("operators", "url", n.listen(n.admin, listener, n.certificate))
	return nil
}

// serveOps starts the listener of health, metrics and profiles; "" is none.
func (n *node) serveOps(address string, handler http.Handler) error {
	if address == "" {
		return nil
	}
	listener, err := listenAt("ops-listen", address)
	if err != nil {
		return err
	}
	n.ops = server.NewHTTPServer(address, handler)
	n.log.Info("operations", "url", n.listen(n.ops, listener, nil))
	return nil
}

// listen starts to serve, with TLS where there is a certificate, and returns the URL.
func (n *node) listen(s *http.Server, listener net.Listener, cert *certificate) string {
	url := "http://" + reachable(listener.Addr())
	if cert != nil {
		url = "https://" + reachable(listener.Addr())
		s.TLSConfig = cert.config()
	}
	n.running.Go(func() {
		var err error
		if cert != nil {
			err = s.ServeTLS(listener, "", "")
		} else {
			err = s.Serve(listener)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			n.failed <- fmt.Errorf("serve on %s: %w", listener.Addr(), err)
		}
	})
	return url
}

// reachable is an address that a browser on this machine can open.
func reachable(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// close ends the node in order: it takes nobody new, tells its shoppers to move, spread over the drain window, finishes
// what is under way, and then lets go of everything.
func (n *node) close() {
	if n.server != nil {
		n.server.SetReady(false)
		ctx, cancel := context.WithTimeout(context.Background(), n.drain+5*time.Second)
		if err := n.hub.Drain(ctx, n.drain, server.Moving); err != nil {
			n.log.Warn("some shoppers did not move in time and were cut off", "error", err)
		}
		cancel()
	}
	for _, s := range []*http.Server{n.http, n.admin, n.ops} {
		if s != nil {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			if err := s.Shutdown(ctx); err != nil {
				_ = s.Close()
			}
			cancel()
		}
	}
	if n.stop != nil {
		n.stop()
	}
	if n.hub != nil {
		_ = n.hub.Close()
	}
	n.running.Wait()
	n.flush()
	n.backends.close()
	n.log.Info("ended")
}

// wait blocks until ctx ends or a listener fails. What reloads the settings may be nil.
func (n *node) wait(ctx context.Context, r *reloader) error {
	var asked chan os.Signal
	if r != nil {
		asked = r.asked
	}
	done := make(chan struct{}, 1)
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-n.failed:
			return err
		case <-asked:
			asked = nil
			go func() { // a file may hang, and then the node must end all the same
				r.reload()
				done <- struct{}{}
			}()
		case <-done:
			asked = r.asked
		}
	}
}

// awaitRow waits until an order is committed, where Redis does not outlive the process: a shopper is told of an order
// there only once it cannot be lost.
func awaitRow(ctx context.Context, notifier *worker.Notifier, order queue.Order) error {
	row, err := notifier.Wait(ctx, order.ID)
	if err != nil {
		return err
	}
	if row.Status == queue.Rejected {
		return &queue.Error{Code: queue.Unavailable, Message: "the order could not be written and nothing was taken; try again"}
	}
	return nil
}

// auditor makes the report of package worker an answer of package server, which does not know its type.
type auditor struct{ *worker.Auditor }

// Audit implements [server.Auditor].
func (a auditor) Audit(ctx context.Context, sale string) (any, error) {
	return a.Auditor.Audit(ctx, sale)
}

// auditLog keeps the changes of package server in the store, which does not know its type.
type auditLog struct{ store *worker.Store }

// Log implements [server.AuditLog].
func (l auditLog) Log(ctx context.Context, c server.Change) error {
	return l.store.LogChange(ctx, worker.Change{
		At: c.At, Who: c.Who + " from " + c.Address, Action: c.Action, Sale: c.Sale, Before: c.Before, After: c.After,
	})
}

// Entries implements [server.AuditLog].
func (l auditLog) Entries(ctx context.Context, sale string, before int64, limit int) ([]server.LogEntry, error) {
	changes, err := l.store.Changes(ctx, sale, before, limit)
	entries := make([]server.LogEntry, len(changes))
	for i, change := range changes {
		entries[i] = server.LogEntry(change)
	}
	return entries, err
}

// keptSecret reads a secret of an embedded installation, or makes one and keeps it.
func keptSecret(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if err == nil && strings.TrimSpace(string(data)) != "" {
		return strings.TrimSpace(string(data)), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	secret := randomHex(server.GoodSecret)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make --data-dir: %w", err)
	}
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keep a secret: %w", err)
	}
	return secret, nil
}
