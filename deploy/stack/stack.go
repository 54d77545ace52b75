package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // the database driver
)

// drain is over how long a node sends its shoppers elsewhere.
const drain = 5 * time.Second

// stack is the programs that run, and where.
type stack struct {
	dir, binary              string
	front, prometheus        string // addresses
	secret, admin            string
	nodes, workers           []*program
	ops                      map[*program]string // addresses of their operations listeners
	gate, watch              *program            // nginx and Prometheus
	started                  []*program
	database                 string
	rows                     *sql.DB
	redisURL, amqpURL, dbURL string
}

// start brings everything up and returns when all of it answers.
func start(ctx context.Context, dir string) (s *stack, err error) {
	s = &stack{dir: dir, binary: filepath.Join(dir, "sluice"), secret: random(), admin: random(), ops: map[*program]string{}}
	defer func() {
		if err != nil {
			s.end()
		}
	}()
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", s.binary, "./cmd/sluice")
	if out, err := build.CombinedOutput(); err != nil {
		return s, fmt.Errorf("build sluice: %w\n%s", err, out)
	}
	if err := s.makeDatabase(ctx); err != nil {
		return s, err
	}
	for range 2 {
		if err := s.add(&s.nodes, "serve", "--no-worker", "--drain", drain.String(), "--trusted-proxies", "127.0.0.1"); err != nil {
			return s, err
		}
		if err := s.add(&s.workers, "worker"); err != nil {
			return s, err
		}
	}
	for _, p := range append(s.nodes, s.workers...) {
		if err := s.launch(ctx, p); err != nil {
			return s, err
		}
	}
	if err := s.startNginx(ctx); err != nil {
		return s, err
	}
	return s, s.startPrometheus(ctx)
}

// makeDatabase makes one of its own on the server of SLUICE_TEST_MYSQL, and names in RabbitMQ of its own.
func (s *stack) makeDatabase(ctx context.Context) error {
	s.redisURL, s.amqpURL = os.Getenv("SLUICE_TEST_REDIS"), os.Getenv("SLUICE_TEST_AMQP")
	server, err := url.Parse(os.Getenv("SLUICE_TEST_MYSQL"))
	if err != nil || server.Host == "" || s.redisURL == "" || s.amqpURL == "" {
		return fmt.Errorf("SLUICE_TEST_REDIS, SLUICE_TEST_AMQP and SLUICE_TEST_MYSQL say where the services are: run it with make stack")
	}
	s.database = "sluice_stack_" + random()[:12]
	if s.rows, err = sql.Open("mysql", "root@tcp("+server.Host+")/"); err != nil {
		return err
	}
	if _, err := s.rows.ExecContext(ctx, "CREATE DATABASE "+s.database); err != nil {
		return fmt.Errorf("make a database: %w", err)
	}
	s.dbURL = "mysql://root@" + server.Host + "/" + s.database
	return nil
}

// prefix is what all names in RabbitMQ begin with.
func (s *stack) prefix() string { return s.database + "-" }

// add makes a process of sluice, which is not started yet.
func (s *stack) add(to *[]*program, role string, flags ...string) error {
	ops, err := freeAddress()
	if err != nil {
		return err
	}
	p := &program{name: fmt.Sprintf("%s-%d", role, len(*to)+1), path: s.binary, dir: s.dir}
	p.args = append([]string{role, "--ops-listen", ops, "--log-format", "json"}, flags...)
	if role == "serve" {
		listen, err := freeAddress()
		if err != nil {
			return err
		}
		p.args = append(p.args, "--listen", listen)
	}
	p.env = []string{
		"SLUICE_REDIS_URL=" + s.redisURL, "SLUICE_AMQP_URL=" + s.amqpURL, "SLUICE_AMQP_PREFIX=" + s.prefix(),
		"SLUICE_DATABASE_URL=" + s.dbURL, "SLUICE_SECRET=" + s.secret, "SLUICE_ADMIN_TOKEN=" + s.admin,
	}
	s.ops[p] = ops
	*to = append(*to, p)
	return nil
}

// launch starts a process and waits until it is ready.
func (s *stack) launch(ctx context.Context, p *program) error {
	if err := p.run(); err != nil {
		return err
	}
	s.started = append(s.started, p)
	return await(ctx, p.name, "http://"+s.ops[p]+"/readyz", p)
}

// startNginx puts nginx before the nodes, with the file that is shipped: only addresses and folders are those of here.
func (s *stack) startNginx(ctx context.Context) error {
	shipped, err := os.ReadFile("deploy/nginx/sluice.conf")
	if err != nil {
		return err
	}
	if s.front, err = freeAddress(); err != nil {
		return err
	}
	text := string(shipped)
	for old, new := range map[string]string{
		"server serve-1:8080": "server " + listenOf(s.nodes[0]), "server serve-2:8080": "server " + listenOf(s.nodes[1]),
		"listen 8080;": "listen " + s.front + ";", "/var/cache/nginx/sluice": filepath.Join(s.dir, "cache"),
	} {
		if !strings.Contains(text, old) {
			return fmt.Errorf("deploy/nginx/sluice.conf has no %q any more", old)
		}
		text = strings.ReplaceAll(text, old, new)
	}
	config := filepath.Join(s.dir, "nginx.conf")
	main := fmt.Sprintf("daemon off;\npid %[1]s/nginx.pid;\nerror_log %[1]s/nginx-error.log warn;\nworker_processes 2;\nworker_rlimit_nofile 20000;\n"+
		"events { worker_connections 16384; }\nhttp {\naccess_log off;\nclient_body_temp_path %[1]s/body;\nproxy_temp_path %[1]s/proxy;\n"+
		"fastcgi_temp_path %[1]s/f;\nuwsgi_temp_path %[1]s/u;\nscgi_temp_path %[1]s/s;\n%[2]s}\n", s.dir, text)
	if err := os.WriteFile(config, []byte(main), 0o644); err != nil {
		return err
	}
	path, err := look("nginx", "/usr/sbin/nginx")
	if err != nil {
		return err
	}
	s.gate = &program{name: "nginx", path: path, args: []string{"-c", config, "-p", s.dir}, dir: s.dir}
	if err := s.gate.run(); err != nil {
		return err
	}
	s.started = append(s.started, s.gate)
	return await(ctx, "nginx", "http://"+s.front+"/api/v1/sales", s.gate)
}

// startPrometheus starts Prometheus with the files that are shipped, and the processes of here as its targets.
func (s *stack) startPrometheus(ctx context.Context) error {
	dir := filepath.Join(s.dir, "prometheus")
	if err := os.MkdirAll(filepath.Join(dir, "targets"), 0o755); err != nil {
		return err
	}
	for _, name := range []string{"prometheus.yml", "alerts.yml"} {
		text, err := os.ReadFile(filepath.Join("deploy/prometheus", name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	if err := s.writeTargets(); err != nil {
		return err
	}
	var err error
	if s.prometheus, err = freeAddress(); err != nil {
		return err
	}
	path, err := look("prometheus", "/usr/bin/prometheus")
	if err != nil {
		return err
	}
	s.watch = &program{name: "prometheus", path: path, dir: s.dir, args: []string{
		"--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", s.prometheus,
	}}
	if err := s.watch.run(); err != nil {
		return err
	}
	s.started = append(s.started, s.watch)
	return await(ctx, "prometheus", "http://"+s.prometheus+"/-/ready", s.watch)
}

// writeTargets tells Prometheus of all nodes and workers; it looks for itself when that changes.
func (s *stack) writeTargets() error {
	type group struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	groups := []group{{Labels: map[string]string{"part": "serve"}}, {Labels: map[string]string{"part": "worker"}}}
	for i, part := range [][]*program{s.nodes, s.workers} {
		for _, p := range part {
			groups[i].Targets = append(groups[i].Targets, s.ops[p])
		}
	}
	text, err := json.Marshal(groups)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, "prometheus", "targets", "nodes.json"), text, 0o644)
}

// end stops everything, the front first, and removes the database.
func (s *stack) end() {
	ctx, cancel := context.WithTimeout(context.Background(), drain+30*time.Second)
	defer cancel()
	for i := len(s.started) - 1; i >= 0; i-- {
		if err := s.started[i].end(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "stack:", err)
		}
	}
	if s.rows != nil {
		_, _ = s.rows.ExecContext(ctx, "DROP DATABASE IF EXISTS "+s.database)
		_ = s.rows.Close()
	}
}

// listenOf is where a node listens.
func listenOf(p *program) string { return p.args[len(p.args)-1] }

func look(name, usual string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	if _, err := os.Stat(usual); err == nil {
		return usual, nil
	}
	return "", fmt.Errorf("%s is not there: make stack installs it", name)
}

func random() string {
	b := make([]byte, 24)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
