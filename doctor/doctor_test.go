package doctor

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/queue"
	"sluice/server"
	"sluice/worker"
)

// well are the facts of a Redis against which there is nothing to say.
func well() queue.RedisFacts {
	return queue.RedisFacts{
		Version: "7.4.1", Role: "master", Policy: "noeviction", AOF: true, Fsync: "always", Replicas: 1, MinReplicas: 1,
		MaxClients: 10000, RoundTrip: time.Millisecond,
	}
}

func TestNothingIsSaidAgainstARedisThatIsWellSetUp(t *testing.T) {
	t.Parallel()
	for _, f := range Redis([]queue.RedisFacts{well()}, 64) {
		if f.Level != Sound {
			t.Errorf("%+v", f)
		}
	}
}

func TestEachFaultOfARedisHasItsFinding(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		about string
		level Level
		spoil func(*queue.RedisFacts)
	}{
		{"scripts", Danger, func(f *queue.RedisFacts) { f.Scripts = errors.New("NOPERM") }},
		{"version", Danger, func(f *queue.RedisFacts) { f.Version = "6.2.14" }},
		{"role", Danger, func(f *queue.RedisFacts) { f.Role = "slave" }},
		{"replicas", Advice, func(f *queue.RedisFacts) { f.Replicas = 0 }},
		{"replicas", Advice, func(f *queue.RedisFacts) { f.MinReplicas = 0 }},
		{"append-only file", Danger, func(f *queue.RedisFacts) { f.AOF = false }},
		{"append-only file", Danger, func(f *queue.RedisFacts) { f.Fsync = "no" }},
		{"append-only file", Advice, func(f *queue.RedisFacts) { f.Fsync = "everysec" }},
		{"append-only file", Advice, func(f *queue.RedisFacts) { f.Fsync = "" }},
		{"disk", Danger, func(f *queue.RedisFacts) { f.WriteFails = "the append-only file" }},
		{"eviction", Danger, func(f *queue.RedisFacts) { f.Policy = "allkeys-lru" }},
		{"memory", Danger, func(f *queue.RedisFacts) { f.MaxMemory, f.UsedMemory = 100, 81 }},
		{"large keys", Advice, func(f *queue.RedisFacts) { f.Keys = []queue.KeyMemory{{Key: "sluice:{a}:seats", Bytes: 1 << 30}} }},
		{"other keys", Advice, func(f *queue.RedisFacts) { f.Foreign, f.Looked = 1, 2 }},
		{"slow calls", Advice, func(f *queue.RedisFacts) { f.Slow = []queue.SlowCall{{Command: "EVAL", Took: time.Second}} }},
		{"commands", Advice, func(f *queue.RedisFacts) { f.Blunt = map[string]int64{"keys": 1} }},
		{"network", Advice, func(f *queue.RedisFacts) { f.RoundTrip = 20 * time.Millisecond }},
		{"connections", Danger, func(f *queue.RedisFacts) { f.Clients = 9990 }},
		{"connections", Advice, func(f *queue.RedisFacts) { f.IdleTimeout = 10 }},
		{"clock", Danger, func(f *queue.RedisFacts) { f.Offset = -3 * time.Second }},
		{"cluster", Danger, func(f *queue.RedisFacts) { f.Apart = true }},
		{"insight", Advice, func(f *queue.RedisFacts) { f.Untold = []string{"CONFIG"} }},
	} {
		facts := well()
		c.spoil(&facts)
		list := Redis([]queue.RedisFacts{facts}, 64)
		if only(list) != c.about || Worst(list) != c.level {
			t.Errorf("%s (%s): found %q, the worst %s", c.about, c.level, only(list), Worst(list))
		}
	}
}

func TestEachFaultOfABrokerAndADatabaseHasItsFinding(t *testing.T) {
	t.Parallel()
	broker := func(spoil func(*worker.BrokerFacts)) []Finding {
		f := worker.BrokerFacts{Product: "RabbitMQ", Version: "4.1.0", Queues: []worker.QueueFacts{{Name: "sluice.dead", Dead: true, There: true}, {Name: "sluice.orders"}}}
		spoil(&f)
		return Broker(f)
	}
	database := func(spoil func(*worker.DatabaseFacts)) []Finding {
		f := worker.DatabaseFacts{Dialect: "mysql", Version: "8.4", MaxConns: 500, Known: 3, Applied: 3, LogGuarded: true}
		spoil(&f)
		return Database(f, 16)
	}
	for _, c := range []struct {
		about string
		level Level
		list  []Finding
	}{
		{"", Sound, broker(func(*worker.BrokerFacts) {})},
		{"version", Danger, broker(func(f *worker.BrokerFacts) { f.Version = "3.9.29" })},
		{"alarm", Danger, broker(func(f *worker.BrokerFacts) { f.Blocked = "low on disk" })},
		{"nodes", Advice, broker(func(f *worker.BrokerFacts) { f.Away = []error{&queue.Away{What: "RabbitMQ", Do: "start it"}} })},
		{"dead letters", Advice, broker(func(f *worker.BrokerFacts) { f.Queues[0].Messages = 1 })},
		{"queue sluice.orders", Danger, broker(func(f *worker.BrokerFacts) { f.Queues[1].Differs = "PRECONDITION_FAILED" })},
		{"", Sound, database(func(*worker.DatabaseFacts) {})},
		{"role", Danger, database(func(f *worker.DatabaseFacts) { f.ReadOnly = true })},
		{"durability", Danger, database(func(f *worker.DatabaseFacts) {
			f.Careless = []worker.Setting{{Name: "fsync", Value: "off", Want: "on"}}
		})},
		{"collation", Danger, database(func(f *worker.DatabaseFacts) { f.Padded = []string{"orders.user_id"} })},
		{"tables", Advice, database(func(f *worker.DatabaseFacts) { f.Applied = 0 })},
		{"tables", Advice, database(func(f *worker.DatabaseFacts) { f.Applied = 2 })},
		{"tables", Danger, database(func(f *worker.DatabaseFacts) { f.Applied = 4 })},
		{"audit log", Advice, database(func(f *worker.DatabaseFacts) { f.LogGuarded = false })},
		{"connections", Danger, database(func(f *worker.DatabaseFacts) { f.MaxConns = 17 })},
		{"clock", Danger, database(func(f *worker.DatabaseFacts) { f.Offset = time.Minute })},
		{"descriptors", Advice, Machine(MachineFacts{Files: 1024})},
		{"", Sound, Machine(MachineFacts{Files: 262144})},
	} {
		if only(c.list) != c.about || Worst(c.list) != c.level {
			t.Errorf("%s (%s): found %q, the worst %s", c.about, c.level, only(c.list), Worst(c.list))
		}
	}
}

// sound are the settings of a node against which there is nothing to say.
func sound() Settings {
	return Settings{
		Broker: true, Database: true, Secrets: [][]byte{long('s')}, AdminToken: string(long('a')), Webhooks: [][]byte{long('w')}, Challenge: string(long('c')),
		Auth: []string{"jwt"}, Provider: true, Audiences: []string{"shop"}, Origins: []string{"https://shop.example"}, TrustedProxies: []string{"10.0.0.0/8"},
		OpsListen: "127.0.0.1:9090", UserLimit: true, OutboxLimit: 1, Drain: 15 * time.Second,
	}
}

func long(letter byte) []byte { return bytesOf(letter, 32) }

func bytesOf(letter byte, n int) []byte { return []byte(strings.Repeat(string(letter), n)) }

func TestEachFaultOfTheSettingsHasItsFinding(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		about string
		level Level
		found string
		spoil func(*Settings)
	}{
		{"", Sound, "", func(*Settings) {}},
		{"", Sound, "", func(s *Settings) { s.Challenge, s.Provider, s.Audiences = "", false, nil }},
		{"start, start", Danger, "--a needs --b", func(s *Settings) { s.Refused = []error{errors.New("--a needs --b"), errors.New("--c is no number")} }},
		{"redis", Danger, "inside this process", func(s *Settings) { s.Embedded, s.Broker, s.Database = true, false, false }},
		{"broker", Advice, "no --amqp-url", func(s *Settings) { s.Broker = false }},
		{"broker, database", Advice, "no --amqp-url", func(s *Settings) { s.Broker, s.Database = false, false }},
		{"audience", Advice, "no --jwt-audience", func(s *Settings) { s.Audiences = nil }},
		{"secret", Danger, "there is none", func(s *Settings) { s.Secrets = nil }},
		{"secret", Danger, "the 2. has 15 bytes", func(s *Settings) { s.Secrets = append(s.Secrets, bytesOf('s', 15)) }},
		{"secret", Advice, "the first has 16 bytes", func(s *Settings) { s.Secrets = [][]byte{bytesOf('s', 16)} }},
		{"webhook secret", Danger, "the first has 1 byte", func(s *Settings) { s.Webhooks = [][]byte{{'w'}, long('w')} }},
		{"webhook secret", Danger, "the first has 15 bytes", func(s *Settings) { s.Webhooks = [][]byte{bytesOf('w', 15)} }},
		{"webhook secret", Advice, "the 2. has 31 bytes", func(s *Settings) { s.Webhooks = [][]byte{long('w'), bytesOf('w', 31)} }},
		{"challenge secret", Danger, "it has 15 bytes", func(s *Settings) { s.Challenge = string(bytesOf('c', 15)) }},
		{"admin token", Danger, "it has 15 bytes", func(s *Settings) { s.AdminToken = string(bytesOf('a', 15)) }},
		{"admin token", Advice, "there is none", func(s *Settings) { s.AdminToken = "" }},
		{"payments", Advice, "mark it paid", func(s *Settings) { s.Webhooks = nil }},
		{"drain", Advice, "--drain is 1s", func(s *Settings) { s.Drain = time.Second }},
	} {
		s := sound()
		c.spoil(&s)
		list := s.Judge()
		if only(list) != c.about || Worst(list) != c.level || c.found != "" && !strings.Contains(foundOf(list), c.found) {
			t.Errorf("%s (%s): found %q, the worst %s: %s", c.about, c.level, only(list), Worst(list), foundOf(list))
		}
	}
}

func TestEachFaultOfAProvidersKeysHasItsFinding(t *testing.T) {
	t.Parallel()
	const good = `{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`
	const oct = `{"kty":"oct","k":"c2VjcmV0"}`
	for name, c := range map[string]struct {
		about  string
		level  Level
		found  string
		answer http.HandlerFunc
	}{
		"keys":        {"", Sound, "", says(`{"keys":[` + good + `]}`)},
		"no keys":     {"keys", Danger, "no key that signs", says(`{"keys":[` + oct + `]}`)},
		"a page":      {"keys", Danger, "no JSON", says("<html>sign in</html>")},
		"no document": {"keys", Danger, "it answers 404", http.NotFound},
		"one of use":  {"keys", Advice, "key 2: it is a symmetric key", says(`{"keys":[` + good + `,` + oct + `]}`)},
	} {
		site := httptest.NewServer(c.answer)
		t.Cleanup(site.Close)
		facts, err := server.InspectKeys(t.Context(), site.URL+"/jwks.json")
		if err != nil {
			t.Fatal(err)
		}
		list := Keys(facts)
		if only(list) != c.about || Worst(list) != c.level || !strings.Contains(foundOf(list), c.found) {
			t.Errorf("%s: found %q, the worst %s: %s", name, only(list), Worst(list), foundOf(list))
		}
		facts.Plain = true // of another machine, which no test has
		if list := Keys(facts); Worst(list) != Danger || !strings.HasPrefix(only(list), "way") || !strings.Contains(foundOf(list), "plain HTTP") {
			t.Errorf("%s, over plain HTTP: found %q", name, only(list))
		}
	}
}

// says answers with a document.
func says(document string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(document)) }
}

// foundOf is what is not sound in a list, in words.
func foundOf(list []Finding) string {
	var found []string
	for _, f := range list {
		if f.Level != Sound {
			found = append(found, f.Found)
		}
	}
	return strings.Join(found, "; ")
}

func TestOneOfSomethingIsNamedAsOne(t *testing.T) {
	t.Parallel()
	facts := well()
	facts.MinReplicas, facts.Foreign, facts.Looked, facts.Blunt = 0, 1, 1, map[string]int64{"keys": 1}
	list := slices.Concat(
		Redis([]queue.RedisFacts{facts}, 1),
		Broker(worker.BrokerFacts{Version: "4.1.0", Queues: []worker.QueueFacts{
			{Name: "sluice.dead", Dead: true, There: true, Messages: 1}, {Name: "sluice.orders", There: true, Messages: 1, Consumers: 1},
		}}),
		Keys(server.KeyFacts{Keys: 1}),
		Settings{Secrets: [][]byte{{'s'}}}.Judge(),
	)
	plural := regexp.MustCompile(`\b1 [a-z]+s\b`)
	for _, f := range list {
		if found := plural.FindString(f.Found); found != "" && found != "1 is" {
			t.Errorf("%s: %s", f.About, f.Found)
		}
	}
	for _, want := range []string{"1 replica,", "1 key looked at 1 is not", "1 time ", "1 order could", "1 message, 1 consumer", "1 key to", "1 byte"} {
		if !slices.ContainsFunc(list, func(f Finding) bool { return strings.Contains(f.Found+" ", want) }) {
			t.Errorf("nothing says %q", want)
		}
	}
}

// only names what is not sound in a list, each of it once.
func only(list []Finding) string {
	var abouts []string
	for _, f := range list {
		if f.Level != Sound {
			abouts = append(abouts, f.About)
		}
	}
	return strings.Join(abouts, ", ")
}
