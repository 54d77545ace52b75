package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sluice/doctor"
	"sluice/server"
)

// secretOf is one of the secrets of these tests, which are long enough not to be complained of.
func secretOf(name string) string { return strings.Repeat(name, 32) }

// governed is a site whose settings come from a file.
type governed struct {
	*site
	dir     string
	reloads int
}

func govern(t *testing.T, settings string) *governed {
	t.Helper()
	g := &governed{dir: t.TempDir()}
	g.site = &site{process: &process{t: t}}
	g.write("secret", e2eSecret)
	g.write("admin", secretOf("o"))
	g.write("config", settings+g.files())
	g.site = openWith(t, g.variables(), "127.0.0.1:0", "--data-dir", g.dir)
	return g
}

// variables are those of a process whose secrets are in the file of settings only.
func (g *governed) variables() []string {
	return []string{"SLUICE_SECRET=", "SLUICE_ADMIN_TOKEN=", "SLUICE_CONFIG=" + g.path("config")}
}

// files are the lines about the files of secrets.
func (g *governed) files() string {
	return fmt.Sprintf("secret-file: %s\nadmin-token-file: %s\n", g.path("secret"), g.path("admin"))
}

func (g *governed) path(name string) string { return filepath.Join(g.dir, name) }

func (g *governed) write(name, text string) {
	g.t.Helper()
	if err := os.WriteFile(g.path(name), []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// reload has the settings read again and waits until that is done. It returns what the log says of it.
func (g *governed) reload() string {
	g.t.Helper()
	if err := g.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		g.t.Fatal(err)
	}
	g.reloads++
	// As many as that, this one at the end, with the rest of its line.
	log := g.says(fmt.Sprintf(`((?:(?s:.*?)msg="the settings were read again[^\n]*\n){%d})`, g.reloads))
	return log[strings.LastIndex(strings.TrimSpace(log), "\n")+1:]
}

// by is the status of a request by a token of ann that a secret signed.
func (g *governed) by(secret string) int {
	g.t.Helper()
	return g.ask(http.MethodGet, "/orders", g.token(secret), "").status
}

// token is one of ann that a secret signed.
func (g *governed) token(secret string) string {
	g.t.Helper()
	token, err := server.MintJWT([]byte(secret), "ann", time.Now().Add(time.Hour))
	if err != nil {
		g.t.Fatal(err)
	}
	return token
}

func TestSecretsAreChangedWhileANodeRuns(t *testing.T) {
	t.Parallel()
	g := govern(t, "limit-user: '0'\n")
	check := func(when string, a, b, o, p int) {
		t.Helper()
		want(t, "the status by the first secret, "+when, g.by(e2eSecret), a)
		want(t, "the status by the second secret, "+when, g.by(secretOf("b")), b)
		want(t, "the status by the first admin token, "+when, g.ask(http.MethodGet, "/admin/about", secretOf("o"), "").status, o)
		want(t, "the status by the second admin token, "+when, g.ask(http.MethodGet, "/admin/about", secretOf("p"), "").status, p)
	}
	check("at first", 200, 401, 200, 401)

	g.write("secret", secretOf("b")+"\n"+e2eSecret+"\n")
	g.write("admin", secretOf("p"))
	if log := g.reload(); !strings.Contains(log, `changed="admin-token-file secret-file"`) {
		t.Errorf("the log says %s", log)
	}
	check("with both", 200, 200, 401, 200)

	g.write("secret", secretOf("b"))
	g.reload()
	check("with the second", 401, 200, 401, 200)

	// What serve would refuse changes nothing, also not what is right.
	g.write("config", "order-batch: 0\nlimit-user: 1/1h\n"+g.files())
	if log := g.reload(); !strings.Contains(log, "level=ERROR") || !strings.Contains(log, "--order-batch") {
		t.Errorf("the log says %s", log)
	}
	g.write("secret", "")
	g.write("config", "limit-user: 1/1h\n"+g.files())
	if log := g.reload(); !strings.Contains(log, "level=ERROR") || !strings.Contains(log, "is empty") {
		t.Errorf("the log says %s", log)
	}
	check("after a refusal", 401, 200, 401, 200)
	if metrics := g.metrics(); !strings.Contains(metrics, `sluice_config_reloads_total{result="refused"} 2`) ||
		!strings.Contains(metrics, `sluice_config_reloads_total{result="ok"} 2`) || !strings.Contains(metrics, "sluice_config_last_reload_successful 0") {
		t.Error("the metrics do not say what was done")
	}
	if log := g.err.String(); strings.Contains(log, e2eSecret) || strings.Contains(log, secretOf("p")) {
		t.Errorf("a secret is in the log:\n%s", log)
	}
}

func TestAShopperKeepsThePlaceWhenTheSecretIsReplaced(t *testing.T) {
	t.Parallel()
	g := govern(t, "")
	sale := freshID()
	succeed(t, "sale", "apply", saleFile(t, sale, 5, passSale), "--url", g.url, "--admin-token", secretOf("o"))
	hello := func(secret string, seat any) (welcome object, closed int) {
		t.Helper()
		ws := g.dial(sale, nil)
		if err := ws.WriteJSON(object{"type": "hello", "token": g.token(secret), "seat": seat}); err != nil {
			t.Fatal(err)
		}
		_ = ws.SetReadDeadline(time.Now().Add(longest))
		err := ws.ReadJSON(&welcome)
		if end := (*websocket.CloseError)(nil); errors.As(err, &end) {
			return nil, end.Code
		}
		return welcome, 0
	}
	first, _ := hello(e2eSecret, "")
	g.write("secret", secretOf("b"))
	g.reload()
	if _, closed := hello(e2eSecret, ""); closed != 4401 {
		t.Errorf("with a token of before: closed with %d", closed)
	}
	if _, closed := hello(secretOf("b"), first["seat"]); closed != 4401 {
		t.Errorf("with the seat of before: closed with %d", closed)
	}
	again, _ := hello(secretOf("b"), "")
	if first["number"] == nil || again["number"] != first["number"] || again["seat"] == first["seat"] {
		t.Errorf("without a seat: %v, before %v", again, first)
	}
}

func TestNoDoorIsOpenedByWhatIsMissingWhileANodeRuns(t *testing.T) {
	t.Parallel()
	webhook := "webhook-secret: " + secretOf("w") + "\n"
	g := govern(t, webhook)
	secret, admin := fmt.Sprintf("secret-file: %s\n", g.path("secret")), fmt.Sprintf("admin-token-file: %s\n", g.path("admin"))
	for missing, settings := range map[string]string{
		"--webhook-secret": secret + admin, "--secret": webhook + admin, "--admin-token": webhook + secret,
	} {
		g.write("config", settings)
		if log := g.reload(); !strings.Contains(log, "level=ERROR") || !strings.Contains(log, "no "+missing+" is given any more") {
			t.Errorf("without %s the log says %s", missing, log)
		}
	}
	if _, err := os.Stat(g.path("admin-token")); err == nil {
		t.Error("a reload made an admin token")
	}
	want(t, "the status by the secret of before", g.by(e2eSecret), 200)
	want(t, "the status of an event signed by the secret of before", g.event(secretOf("w"), `{}`), http.StatusUnprocessableEntity)
	want(t, "the status of an event that nobody signed", g.event("nobody", `{}`), http.StatusUnauthorized)
}

func TestAnInstallationKeepsItsOwnSecretsWhileItRuns(t *testing.T) {
	t.Parallel()
	g := &governed{dir: t.TempDir(), site: &site{process: &process{t: t}}}
	g.write("config", "log-level: info\n")
	g.site = openWith(t, g.variables(), "127.0.0.1:0", "--data-dir", g.dir)
	own, err := os.ReadFile(g.path("secret"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(g.path("secret")); err != nil {
		t.Fatal(err)
	}
	g.write("config", "log-level: debug\n")
	if log := g.reload(); !strings.Contains(log, "changed=log-level") {
		t.Errorf("the log says %s", log)
	}
	want(t, "the status by its own secret", g.by(strings.TrimSpace(string(own))), 200)
	if _, err := os.Stat(g.path("secret")); err == nil {
		t.Error("a reload made a secret")
	}
	g.write("config", fmt.Sprintf("secret: %s\n", e2eSecret))
	g.reload()
	want(t, "the status by a secret that is given now", g.by(e2eSecret), 200)
}

func TestANodeThatEndsIsNotCutOffByAReload(t *testing.T) {
	t.Parallel()
	g := govern(t, "drain: 2s\n")
	sale := freshID()
	succeed(t, "sale", "apply", saleFile(t, sale, 5, running), "--url", g.url, "--admin-token", secretOf("o"))
	ws := g.connect(sale, "ann")
	until(t, ws, "welcome", "")
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until(t, ws, "moving", "")
	if err := g.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	want(t, "the exit code", g.wait(), exitOK)
}

func TestANodeEndsWhileAFileOfItsSettingsHangs(t *testing.T) {
	t.Parallel()
	g := govern(t, "drain: 0s\n")
	if err := os.Remove(g.path("secret")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(g.path("secret"), 0o600); err != nil { // which nobody writes to
		t.Fatal(err)
	}
	if err := g.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	var pipe *os.File
	eventually(t, "the file is waited for", func() bool { // only then a pipe can be opened for writing at once
		var err error
		pipe, err = os.OpenFile(g.path("secret"), os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	})
	defer pipe.Close()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	want(t, "the exit code", g.wait(), exitOK)
}

func TestWhatAFileHasInVainIsSaid(t *testing.T) {
	t.Parallel()
	g := &governed{dir: t.TempDir(), site: &site{process: &process{t: t}}}
	g.write("secret", secretOf("b"))
	g.write("config", "log-level: debug\nsecret-file: "+g.path("secret")+"\n")
	g.site = openWith(t, []string{"SLUICE_CONFIG=" + g.path("config")}, "127.0.0.1:0", "--data-dir", g.dir) // SLUICE_SECRET is there
	g.says(`(level=WARN msg="some settings of the file of --config are not used.*settings=secret-file)`)
	g.reload()
	g.says(`((?s)are not used.*settings=secret-file.*are not used.*settings=secret-file)`)
	want(t, "the status by the secret of the environment", g.by(e2eSecret), 200)

	code, list := examine(t, "--config", g.path("config"), "--log-level", "info")
	if !names(list, "settings", "config", "--config has log-level", doctor.Advice) {
		t.Errorf("the doctor exits with %d:\n%s", code, write(list))
	}
}

func TestANewSecretThatCanBeGuessedIsNotPutInForce(t *testing.T) {
	t.Parallel()
	g := govern(t, "")
	g.write("secret", "short")
	if log := g.reload(); !strings.Contains(log, "level=ERROR") || !strings.Contains(log, "a new --secret has 5 bytes") {
		t.Errorf("the log says %s", log)
	}
	want(t, "the status by the secret of before", g.by(e2eSecret), 200)
}

func TestASettingThatCannotBeReadAgainIsNoDefault(t *testing.T) {
	t.Parallel()
	g := govern(t, "limit-user: 1/1h\n")
	if err := os.Remove(g.path("config")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(g.path("config"), 0o700); err != nil {
		t.Fatal(err)
	}
	if log := g.reload(); !strings.Contains(log, "level=ERROR") || !strings.Contains(log, "no file that can be read again") {
		t.Errorf("the log says %s", log)
	}
}

func TestANodeThatStartsIsNotCutOffByAReload(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // a Redis that never answers
	if err != nil {
		t.Fatal(err)
	}
	p := begin(t, "worker", "--redis-url", "redis://"+silent.Addr().String(), "--amqp-url", "amqp://"+silent.Addr().String(),
		"--database-url", "mysql://nobody@"+silent.Addr().String()+"/none")
	_ = silent.(*net.TCPListener).SetDeadline(time.Now().Add(longest))
	conn, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Close(), silent.Close()
	want(t, "the exit code", p.wait(), exitFailed)
}

func TestLimitsAndTheLogAreChangedWhileANodeRuns(t *testing.T) {
	t.Parallel()
	g := govern(t, "limit-user: 2/1h\nconns-seat: 1\n")
	sale := freshID()
	succeed(t, "sale", "apply", saleFile(t, sale, 5, running), "--url", g.url, "--admin-token", secretOf("o"))
	for _, status := range []int{200, 200, 429} {
		want(t, "the status at a limit of two", g.by(e2eSecret), status)
	}
	tabs := func(more, most int) {
		t.Helper()
		for range more {
			want(t, "the first frame", next(t, g.connect(sale, "tab"))["type"], any("welcome"))
		}
		if _, code := g.hears(sale, "tab"); code != 4409 {
			t.Errorf("beyond %d tabs: closed with %d", most, code)
		}
	}
	tabs(1, 1)
	if log := g.err.String(); strings.Contains(log, "level=DEBUG") {
		t.Error("more is logged than was asked for")
	}

	g.write("config", "limit-user: 4/1h\nconns-seat: 2\nlog-level: debug\norigins: [https://shop.example]\n"+g.files())
	if log := g.reload(); !strings.Contains(log, `changed="conns-seat limit-user log-level"`) {
		t.Errorf("the log says %s", log)
	}
	g.says(`(take a restart" .*settings=origins)`)
	tabs(1, 2)
	for _, status := range []int{200, 200, 429} {
		want(t, "the status at a limit of four", g.by(e2eSecret), status)
	}
	g.says(`(level=DEBUG)`)

	g.write("config", "limit-user: '0'\nlimit-node: 3/1h\nlog-level: debug\n"+g.files())
	g.reload()
	for _, status := range []int{200, 200, 200, 429} {
		want(t, "the status at a limit of the node", g.by(e2eSecret), status)
	}
}

func TestAWorkerReadsItsSettingsAgain(t *testing.T) {
	t.Parallel()
	ground := newGround(t, "mysql")
	config := filepath.Join(t.TempDir(), "config")
	write := func(text string) {
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("log-level: info\n")
	w := begin(t, append([]string{"worker", "--ops-listen", "127.0.0.1:0", "--config", config}, ground.flags...)...)
	w.says(`(msg=working)`)
	write("log-level: debug\norder-batch: 10\n")
	if err := w.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	w.says(`msg="the settings were read again" .*changed=(log-level)`)
	w.says(`(take a restart" .*settings=order-batch)`)
}

func TestAFileOfSettingsStandsBehindTheCommandLine(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config")
	examined := func(text string, args ...string) (int, string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, err := command(t, append([]string{"doctor", "--all", "--config", file}, args...)...)
		return code, out + err
	}
	for text, wrong := range map[string]string{
		"limit-usr: 20/s":                    "no command has a flag --limit-usr",
		"config: other":                      "no command has a flag --config",
		"limit-user: 20/s\nlimit-user: 30/s": "line 2: limit-user is there twice",
		"limit-user":                         `lines like "limit-user: 20/s"`,
		"limit-user:":                        "line 1: limit-user: give a value",
		"secret: {a: b}":                     "line 1: secret: give a value",
		"\norigins: ['https://a.example,https://b']": "line 2: origins: a list must have plain values",
		"limit-user: many":                           "limit-user",
		"users: 5\nadmin-token: *hunter2":            "is no YAML: line 2 (",
		"users: 5\nadmin-token: @hunter2":            "is no YAML: line 2 (",
		"users: 5\n---\nlimit-user: 5/s":             "something behind a line of ---",
		"{secret:hunter2}":                           "line 1: write lines like",
		"conns-seat: many":                           "conns-seat",
	} {
		if code, said := examined(text); code != exitUsage || !strings.Contains(said, wrong) {
			t.Errorf("%q: %d %s", text, code, said)
		} else if strings.Contains(said, "hunter2") {
			t.Errorf("%q: what may be a secret is repeated: %s", text, said)
		}
	}
	if code, said := examined("", "--config", file+".none"); code != exitUsage || !strings.Contains(said, "read --config") {
		t.Errorf("a file that is not there: %d %s", code, said)
	}
	for _, text := range []string{"", "# nothing\n", "order-batch: 10\nusers: 5\n"} {
		if code, said := examined(text); code == exitUsage {
			t.Errorf("%q: %d %s", text, code, said)
		}
	}
	none := "--limit-user is 0"
	if _, said := examined("limit-user: 0"); !strings.Contains(said, none) {
		t.Errorf("what the file has is not taken: %s", said)
	}
	if _, said := examined("limit-user: 0", "--limit-user", "5/s"); strings.Contains(said, none) {
		t.Errorf("the file goes before the command line: %s", said)
	}
	if err := os.WriteFile(file, []byte("limit-user: 0"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, given := range []string{"", "5/s"} {
		p := beginWith(t, []string{"SLUICE_LIMIT_USER=" + given, "SLUICE_CONFIG=" + file}, "doctor", "--all")
		p.wait()
		if said := p.out.String(); strings.Contains(said, none) != (given == "") {
			t.Errorf("SLUICE_LIMIT_USER=%s: %s", given, said)
		}
	}
	if _, said := examined("origins: ['https://a.example', b.example]"); !strings.Contains(said, "origins: b.example") {
		t.Errorf("not all of a list is taken: %s", said)
	}

	// A value and a file with it are one setting.
	elsewhere := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(elsewhere, []byte(secretOf("e")), 0o600); err != nil {
		t.Fatal(err)
	}
	aside := func(config string, variables []string, args ...string) string {
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		p := beginWith(t, append([]string{"SLUICE_SECRET=", "SLUICE_CONFIG=" + file}, variables...), append([]string{"doctor", "--all"}, args...)...)
		p.wait()
		return p.out.String()
	}
	long := "secret: the first is long enough"
	for _, config := range []string{"secret-file: /nowhere", "secret: short"} {
		for _, given := range []struct{ variables, args []string }{
			{variables: []string{"SLUICE_SECRET=" + secretOf("v")}},
			{variables: []string{"SLUICE_SECRET_FILE=" + elsewhere}},
			{args: []string{"--secret", secretOf("c")}},
			{args: []string{"--secret-file", elsewhere}},
		} {
			if said := aside(config, given.variables, given.args...); !strings.Contains(said, long) {
				t.Errorf("%s beside %+v: %s", config, given, said)
			}
		}
	}
	if said := aside("secret-file: /nowhere\nsecret: short", nil); !strings.Contains(said, "or the file of --config): keep one") {
		t.Errorf("both in the file: %s", said)
	}
}
