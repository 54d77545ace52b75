package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"

	"sluice/doctor"
)

// ownRedis starts a Redis for one test alone, with settings of its own, and returns its address.
func ownRedis(t *testing.T, args ...string) string {
	t.Helper()
	return ownRedisOf(t, args)
}

// ownRedisOf starts one whose first arguments, as the file of its settings, come before all others.
func ownRedisOf(t *testing.T, first []string, more ...string) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not on this machine; the services of these tests run in containers")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	_ = listener.Close()
	args := []string{"--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir()}
	launch(t, "redis", exec.Command(path, append(append(first, args...), more...)...))
	address := "127.0.0.1:" + port
	rdb := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
	defer rdb.Close()
	eventually(t, "the test's own redis answers", func() bool { return rdb.Ping(t.Context()).Err() == nil })
	return address
}

// examine runs the doctor and returns what it found, and its exit code.
func examine(t *testing.T, flags ...string) (code int, list []doctor.Finding) {
	t.Helper()
	code, stdout, stderr := command(t, append([]string{"doctor", "--json"}, flags...)...)
	var report struct{ Findings []doctor.Finding }
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	return code, report.Findings
}

func TestTheDoctorNamesEachWrongSetting(t *testing.T) {
	t.Parallel()
	g := newGround(t, "mysql")
	succeed(t, append([]string{"migrate"}, g.flags[6:8]...)...)

	own := ownRedis(t, "--appendonly", "no", "--maxmemory-policy", "allkeys-lru", "--maxmemory", "64mb", "--timeout", "20", "--maxclients", "50")
	rdb := redis.NewClient(&redis.Options{Addr: own})
	defer rdb.Close()
	for _, command := range [][]any{
		{"SET", "of-somebody-else", "x"}, {"KEYS", "*"},
		{"EVAL", "local t, n = redis.call('TIME'), 0; repeat n = redis.call('TIME') until (n[1] - t[1]) * 1e6 + n[2] - t[2] > 20000", 0},
		{"SADD", "sluice:sales", "huge"}, {"SETRANGE", "sluice:{huge}:leaves", 50 << 20, "x"},
	} {
		if err := rdb.Do(t.Context(), command...).Err(); err != nil && err != redis.Nil {
			t.Fatal(err)
		}
	}

	conn, err := amqp.Dial(g.flags[3])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare(g.flags[5]+"sluice.orders", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}

	for _, statement := range []string{
		"ALTER TABLE orders MODIFY user_id VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL",
		"ALTER TABLE payments ENGINE = MyISAM",
		"DELETE FROM goose_db_version WHERE version_id = (SELECT * FROM (SELECT MAX(version_id) FROM goose_db_version) AS newest)",
	} {
		if _, err := g.rows.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}

	flags := append([]string{"--redis-url", "redis://" + own}, g.flags[2:8]...)
	code, list := examine(t, append(flags, "--secret", "short", "--admin-token", "admin", "--origins", "https://*.example,shop.example", "--trusted-proxies", "0.0.0.0/0",
		"--auth", "guest", "--limit-user", "0", "--outbox-limit", "0", "--ops-listen", ":9090", "--drain", "1s", "--redis-pool", "64")...)
	if code != exitFailed {
		t.Errorf("it exits with %d, want %d", code, exitFailed)
	}
	for _, want := range []struct {
		part, about, found string
		level              doctor.Level
	}{
		{"settings", "secret", "5 bytes", doctor.Danger},
		{"settings", "admin token", "5 bytes", doctor.Danger},
		{"settings", "origins", "https://*.example", doctor.Danger},
		{"settings", "origins", "shop.example", doctor.Danger},
		{"settings", "trusted proxies", "everybody", doctor.Danger},
		{"settings", "guests", "anybody", doctor.Advice},
		{"settings", "payments", "mark it paid", doctor.Advice},
		{"settings", "limits", "--limit-user", doctor.Advice},
		{"settings", "outbox", "--outbox-limit", doctor.Advice},
		{"settings", "operations", "elsewhere", doctor.Advice},
		{"settings", "drain", "1s", doctor.Advice},
		{"redis", "append-only file", "off", doctor.Danger},
		{"redis", "eviction", "allkeys-lru", doctor.Danger},
		{"redis", "memory", "of 64 MB", doctor.Danger},
		{"redis", "replicas", "none", doctor.Advice},
		{"redis", "connections", "of 50", doctor.Danger},
		{"redis", "connections", "20 s", doctor.Advice},
		{"redis", "slow calls", "EVAL", doctor.Advice},
		{"redis", "commands", "KEYS", doctor.Advice},
		{"redis", "other keys", "1 is not of sluice", doctor.Advice},
		{"broker", "queue " + g.flags[5] + "sluice.orders", "x-", doctor.Danger},
		{"database", "collation", "orders.user_id, payments is MyISAM", doctor.Danger},
		{"database", "tables", "of version", doctor.Advice},
	} {
		if !names(list, want.part, want.about, want.found, want.level) {
			t.Errorf("no finding of %s says %s: …%s… (%s)", want.part, want.about, want.found, want.level)
		}
	}
	if t.Failed() {
		t.Log(write(list))
	}
}

func TestTheDoctorHasNothingAgainstWhatIsWellSetUp(t *testing.T) {
	t.Parallel()
	g := newGround(t, "postgres")
	succeed(t, append([]string{"migrate"}, g.flags[6:8]...)...)
	own := ownRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	flags := append([]string{"--redis-url", "redis://" + own}, g.flags[2:8]...)
	code, list := examine(t, append(flags, "--secret", strings.Repeat("s", 32), "--admin-token", strings.Repeat("a", 32),
		"--origins", "https://shop.example", "--trusted-proxies", "10.0.0.0/8", "--auth", "jwt", "--webhook-secret", strings.Repeat("w", 32))...)
	if want := map[bool]int{true: exitFailed, false: exitOK}[doctor.Worst(list) == doctor.Danger]; code != want {
		t.Errorf("it exits with %d, want %d", code, want)
	}
	for _, f := range list {
		// These are of the machines that tests run on.
		if f.Level != doctor.Sound && f.About != "descriptors" && f.About != "replicas" && f.About != "durability" && f.About != "slow calls" {
			t.Errorf("it has something against %s", write([]doctor.Finding{f}))
		}
	}
	if _, err := rowsOf(g, "SELECT COUNT(*) FROM orders"); err != nil {
		t.Error(err)
	}
}

func TestTheDoctorSaysWhatItCannotReachAndNoPassword(t *testing.T) {
	t.Parallel()
	closed := closedAddress(t)
	code, list := examine(t, "--redis-url", "redis://:hidden-word@"+closed, "--amqp-url", "amqp://u:hidden-word@"+closed,
		"--database-url", "mysql://u:hidden-word@"+closed+"/sluice", "--secret", strings.Repeat("s", 32))
	if code != exitFailed {
		t.Errorf("it exits with %d", code)
	}
	for _, part := range []string{"redis", "broker", "database"} {
		if !names(list, part, "reachable", "", doctor.Danger) {
			t.Errorf("it does not say that %s is away", part)
		}
	}
	if text := write(list); strings.Contains(text, "hidden-word") {
		t.Errorf("it shows a password:\n%s", text)
	}
}

func TestTheDoctorReadsTheKeysOfAProviderAsANodeDoes(t *testing.T) {
	t.Parallel()
	published := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/jwks.json" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(publishedKey))
	}))
	t.Cleanup(published.Close)
	good, bad := filepath.Join(t.TempDir(), "jwks.json"), filepath.Join(t.TempDir(), "bad.json")
	for path, text := range map[string]string{good: publishedKey, bad: "keys: none"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	away := "http://" + closedAddress(t)
	for _, c := range []struct {
		url, part, about, found string
		level                   doctor.Level
	}{
		{good, "identity provider", "keys", "1 key", doctor.Sound},
		{"file://" + good, "identity provider", "keys", "1 key", doctor.Sound},
		{published.URL + "/jwks.json", "identity provider", "keys", "1 key", doctor.Sound},
		{published.URL + "/nowhere", "identity provider", "keys", "it answers 404", doctor.Danger},
		{away + "/hush-hush", "identity provider", "keys", "refused", doctor.Danger},
		{"http://id.invalid/jwks.json", "identity provider", "way", "http://id.invalid over plain HTTP", doctor.Danger},
		{good + "x", "settings", "start", "no such file", doctor.Danger},
		{bad, "settings", "start", "no JSON object", doctor.Danger},
		{"file://jwks.json", "settings", "start", "file:///", doctor.Danger},
		{"https://u:hush-hush@id.example/", "settings", "start", "leave it out", doctor.Danger},
	} {
		_, list := examine(t, "--jwks-url", c.url, "--jwt-audience", "shop")
		if !names(list, c.part, c.about, c.found, c.level) || names(list, "settings", "audience", "", doctor.Advice) {
			t.Errorf("of %s it does not say …%s… (%s):\n%s", c.url, c.found, c.level, write(list))
		}
		if strings.Contains(write(list), "hush-hush") {
			t.Errorf("it repeats what may be a secret:\n%s", write(list))
		}
		// A node must start with it, or not, as the doctor said.
		_, starts := serveFlags{JWKSURL: c.url}.keys(nil, nil)
		if (starts == nil) == names(list, "settings", "start", "--jwks-url", doctor.Danger) {
			t.Errorf("of %s a node says %v, and the doctor\n%s", c.url, starts, write(list))
		}
	}
	if _, list := examine(t, "--jwks-url", good); !names(list, "settings", "audience", "--jwt-audience", doctor.Advice) {
		t.Errorf("nothing is said of tokens of other apps:\n%s", write(list))
	}
}

// publishedKey is the document of a provider with one key, that of RFC 8037.
const publishedKey = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`

func TestTheDoctorNamesAllForWhichANodeDoesNotStartAndLooksAtTheRest(t *testing.T) {
	t.Parallel()
	g := newGround(t, "mysql")
	own := ownRedis(t, "--appendonly", "no")
	base := []string{"--redis-url", "redis://" + own, "--secret", strings.Repeat("s", 32)}
	broker := g.flags[2:6]

	code, list := examine(t, append(slices.Concat(base, broker), "--webhook-secret", strings.Repeat("w", 15), "--redis-pool", "1",
		"--tls-cert", "none.pem", "--auth", "cookie", "--limit-node", "2000000/s", "--conns-seat", "0",
		"--listen", "127.0.0.1:99999", "--admin-listen", "nowhere", "--drain=-5s", "--archive-after=-1h", "--order-batch", "0", "--admin-token-file", filepath.Join(t.TempDir(), "none"))...)
	want := []struct {
		part, about, found string
		level              doctor.Level
	}{
		{"settings", "start", "--amqp-url needs --database-url", doctor.Danger},
		{"settings", "start", "--redis-pool", doctor.Danger},
		{"settings", "start", "--tls-cert and --tls-key", doctor.Danger},
		{"settings", "start", `--auth "cookie"`, doctor.Danger},
		{"settings", "start", "--admin-token-file", doctor.Danger},
		{"settings", "start", "--limit-node", doctor.Danger},
		{"settings", "start", "--conns-seat", doctor.Danger},
		{"settings", "start", "--listen: \"127.0.0.1:99999\" is not an address", doctor.Danger},
		{"settings", "start", "--admin-listen", doctor.Danger},
		{"settings", "start", "--drain", doctor.Danger},
		{"settings", "start", "--archive-after", doctor.Danger},
		{"settings", "start", "--order-batch", doctor.Danger},
		{"settings", "webhook secret", "15 bytes", doctor.Danger},
		{"redis", "append-only file", "off", doctor.Danger},
		{"broker", "version", "RabbitMQ", doctor.Sound},
	}
	for _, w := range want {
		if !names(list, w.part, w.about, w.found, w.level) {
			t.Errorf("no finding of %s says %s: …%s… (%s)", w.part, w.about, w.found, w.level)
		}
	}
	if code != exitFailed || t.Failed() {
		t.Errorf("it exits with %d:\n%s", code, write(list))
	}

	code, list = examine(t, slices.Concat(broker, g.flags[6:8])...)
	if code != exitFailed || !names(list, "settings", "start", "--amqp-url needs --redis-url", doctor.Danger) || !names(list, "broker", "version", "RabbitMQ", doctor.Sound) ||
		!names(list, "database", "role", "takes writes", doctor.Sound) {
		t.Errorf("without --redis-url:\n%s", write(list))
	}

	_, list = examine(t, append(base, "--ops-listen", "127.0.0.1:7001", "--listen", "127.0.0.1:7001")...)
	if !names(list, "settings", "start", "--listen and --ops-listen are the same", doctor.Danger) {
		t.Errorf("with one address for two:\n%s", write(list))
	}

	closed := closedAddress(t)
	_, list = examine(t, append(base, "--amqp-url", "amqp://u:hidden-word@"+closed+","+setting(t, "SLUICE_TEST_AMQP"))...)
	if !names(list, "broker", "nodes", closed+" cannot be used (connection refused)", doctor.Advice) || !names(list, "broker", "version", "RabbitMQ", doctor.Sound) ||
		strings.Contains(write(list), "hidden-word") {
		t.Errorf("with one node of two:\n%s", write(list))
	}

	_, list = examine(t, append(base, "--no-worker", "--otlp-url", "nowhere")...)
	if !names(list, "settings", "start", "--no-worker needs", doctor.Danger) || !names(list, "settings", "start", "--otlp-url", doctor.Danger) {
		t.Errorf("without anybody who writes orders:\n%s", write(list))
	}

	_, list = examine(t, append(base, "--log-format", "json", "--archive-after", "24h", "--otlp-url", "http://127.0.0.1:4318")...)
	if names(list, "settings", "start", "", doctor.Danger) || !names(list, "settings", "broker", "--amqp-url", doctor.Advice) || !names(list, "settings", "database", "--database-url", doctor.Advice) {
		t.Errorf("with a Redis alone:\n%s", write(list))
	}
}

// closedAddress is one where nobody listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	return listener.Addr().String()
}

func TestTheDoctorKnowsAReplicaByItsRole(t *testing.T) {
	t.Parallel()
	master := ownRedis(t)
	host, port, _ := net.SplitHostPort(master)
	replica := ownRedis(t, "--replicaof", host+" "+port)
	_, list := examine(t, "--redis-url", "redis://"+replica, "--secret", strings.Repeat("s", 32))
	if !names(list, "redis", "role", "replica", doctor.Danger) {
		t.Errorf("nothing is said of the role:\n%s", write(list))
	}
	eventually(t, "the master knows its replica", func() bool {
		_, list := examine(t, "--redis-url", "redis://"+master, "--secret", strings.Repeat("s", 32))
		return names(list, "redis", "replicas", "waits for none", doctor.Advice)
	})
}

// names says whether there is such a finding.
func names(list []doctor.Finding, part, about, found string, level doctor.Level) bool {
	for _, f := range list {
		if f.Part == part && f.About == about && f.Level == level && strings.Contains(f.Found, found) {
			return f.Level == doctor.Sound || f.Do != "" && f.Why != "" || f.About == "tables"
		}
	}
	return false
}

func write(list []doctor.Finding) string {
	var text strings.Builder
	for _, f := range list {
		fmt.Fprintf(&text, "%s %s %s: %s\n", f.Level, f.Part, f.About, f.Found)
	}
	return text.String()
}

// rowsOf counts what a query says.
func rowsOf(g *ground, query string) (n int64, err error) {
	err = g.rows.QueryRowContext(g.t.Context(), query).Scan(&n)
	return n, err
}
