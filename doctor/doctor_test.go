package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sluice/queue"
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
