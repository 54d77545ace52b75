package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/queue"
	"sluice/words"
)

// oldestRedis is what the scripts are written for.
const oldestRedis = "7.0"

const (
	// mostOffset is how far clocks may be apart. Deadlines are by Redis's clock; what a shopper's page is told of, and how
	// long tokens hold, by the node's.
	mostOffset = time.Second
	// slowNetwork is a way to Redis that makes batches of a tenth of a second late.
	slowNetwork = 5 * time.Millisecond
	// bigKey takes long to be copied, deleted or sent to a replica. The seats of a million shoppers take 80 MB.
	bigKey = 512 << 20
	// fullMemory is the part of its limit above which a Redis is about to refuse writes.
	fullMemory = 0.8
)

// Redis judges a Redis, or each master of a cluster. conns is how many connections a node makes to each at most.
func Redis(all []queue.RedisFacts, conns int) []Finding {
	var list []Finding
	for _, facts := range all {
		part := "redis"
		if len(all) > 1 {
			part += " " + facts.Address
		}
		list = append(list, oneRedis(part, facts, conns)...)
	}
	return list
}

func oneRedis(part string, facts queue.RedisFacts, conns int) []Finding {
	f := &findings{part: part}
	if facts.Apart {
		f.warn("cluster", "it is a node of a cluster, and the others are not named", "name another one, like redis://one:6379?addr=two:6379",
			"most sales would be on nodes that are not asked")
	}
	f.redisVersion(facts)
	f.redisRole(facts)
	f.redisDisk(facts)
	f.redisMemory(facts)
	f.redisLoad(facts)
	f.redisClients(facts, conns)
	f.clock(facts.Offset, facts.RoundTrip, "turns, holds and openings are by the clock of Redis, so they would come early or late")
	if len(facts.Untold) > 0 {
		f.advise("insight", "it does not answer "+strings.Join(facts.Untold, ", "),
			"look at appendfsync, min-replicas-to-write and its slow log in the console of whoever runs it", "what it does not tell is not judged here")
	}
	return f.list
}

func (f *findings) redisVersion(facts queue.RedisFacts) {
	if facts.Scripts != nil {
		f.warn("scripts", facts.Scripts.Error(), "allow EVAL, EVALSHA, SCRIPT and INFO to the user of --redis-url", "every grab is a script")
	} else {
		f.sound("scripts", "all of them run")
	}
	if older(facts.Version, oldestRedis) {
		f.warn("version", "Redis "+facts.Version, "use Redis "+oldestRedis+" or later", "the scripts use what older ones do not have")
	} else {
		f.sound("version", "Redis %s", facts.Version)
	}
}

func (f *findings) redisRole(facts queue.RedisFacts) {
	switch {
	case facts.Role != "master":
		f.warn("role", "it is a replica", "point --redis-url at the master", "a replica takes no writes, and would lose those that it took")
	case facts.Replicas == 0:
		f.advise("replicas", "it has none", "add one, and have it promoted when the master is lost",
			"while this one is away nothing is sold; what it has lost is rebuilt from the database, except places in line and orders not yet written")
	case facts.MinReplicas == 0 && !slices.Contains(facts.Untold, "CONFIG"):
		f.advise("replicas", fmt.Sprintf("it has %s, and waits for none", words.Count(facts.Replicas, "replica")), "set min-replicas-to-write 1 and min-replicas-max-lag 10",
			"a master that is cut off goes on selling, and what it sold is lost when it comes back as a replica")
	default:
		f.sound("replicas", "%d, of which %d must be there", facts.Replicas, facts.MinReplicas)
	}
}

func (f *findings) redisDisk(facts queue.RedisFacts) {
	switch {
	case !facts.AOF:
		f.warn("append-only file", "it is off", "set appendonly yes and appendfsync always", "after a crash, places in line and orders that are not rows yet are gone")
	case facts.Fsync == "always":
		f.sound("append-only file", "every write is on the disk before it is answered")
	case facts.Fsync == "":
		f.advise("append-only file", "it is on; how often it reaches the disk is not told", "see that appendfsync is always", "with everysec a crash takes the last second")
	case facts.Fsync == "no":
		f.warn("append-only file", "appendfsync is no", "set appendfsync always", "a crash takes what the system has not written yet, up to half a minute of orders")
	default:
		f.advise("append-only file", "appendfsync is "+facts.Fsync, "set appendfsync always; grabs are gathered, so it costs little", "a crash takes the last second of places and orders")
	}
	if facts.WriteFails != "" {
		f.warn("disk", "it could not write "+facts.WriteFails, "make room on its disk, then look at its log", "it refuses writes, or loses them at its end")
	}
}

func (f *findings) redisMemory(facts queue.RedisFacts) {
	if facts.Policy != "noeviction" {
		f.warn("eviction", "maxmemory-policy is "+facts.Policy, "set maxmemory-policy noeviction", "under pressure it would throw away stock, winners or seats")
	} else {
		f.sound("eviction", "nothing is thrown away to make room")
	}
	if facts.MaxMemory > 0 && float64(facts.UsedMemory) > fullMemory*float64(facts.MaxMemory) {
		f.warn("memory", fmt.Sprintf("%s of %s are used", bytes(facts.UsedMemory), bytes(facts.MaxMemory)), "raise maxmemory, or archive sales that are over",
			"when it is full, nobody can join or grab")
	}
	if len(facts.Keys) > 0 && facts.Keys[0].Bytes > bigKey {
		f.advise("large keys", fmt.Sprintf("%s takes %s", facts.Keys[0].Key, bytes(facts.Keys[0].Bytes)), "split the sale, or archive it when it is over",
			"what touches the key as a whole, such as a move to another node, holds up everybody")
	}
	if facts.Foreign > 0 {
		f.advise("other keys", fmt.Sprintf("of %s looked at %s not of sluice", words.Count(facts.Looked, "key"), words.Plural(facts.Foreign, "is", "are")), "give sluice a Redis of its own",
			"whatever else runs there holds up grabs, and fills the memory")
	}
}

func (f *findings) redisLoad(facts queue.RedisFacts) {
	if len(facts.Slow) > 0 {
		slowest := slices.MaxFunc(facts.Slow, func(a, b queue.SlowCall) int { return int(a.Took - b.Took) })
		var commands []string
		for _, call := range facts.Slow {
			if !slices.Contains(commands, call.Command) {
				commands = append(commands, call.Command)
			}
		}
		f.advise("slow calls", fmt.Sprintf("%d of its log took 10 ms or more (%s), the longest %s at %s", len(facts.Slow), strings.Join(commands, ", "),
			words.Duration(slowest.Took.Round(time.Millisecond)), slowest.At.UTC().Format(time.RFC3339)),
			"find who sends them, or what else takes the machine's time; SLOWLOG RESET empties the log", "everybody waits as long")
	}
	for _, command := range slices.Sorted(maps.Keys(facts.Blunt)) {
		f.advise("commands", fmt.Sprintf("%s was called %s since it started", strings.ToUpper(command), words.Count(facts.Blunt[command], "time")),
			"find who sends it, and take it away from them with an ACL", "it stops everything while it runs, or empties it")
	}
	if facts.RoundTrip > slowNetwork {
		f.advise("network", "an answer takes "+words.Duration(facts.RoundTrip.Round(100*time.Microsecond)), "run the nodes beside Redis, in the same zone",
			"each grab waits for at least one")
	} else {
		f.sound("network", "an answer takes %s", words.Duration(facts.RoundTrip.Round(10*time.Microsecond)))
	}
}

func (f *findings) redisClients(facts queue.RedisFacts, conns int) {
	if facts.MaxClients > 0 && facts.Clients+int64(conns) > facts.MaxClients {
		f.warn("connections", fmt.Sprintf("%d of %d taken, and a node makes up to %d", facts.Clients, facts.MaxClients, conns),
			"raise maxclients, or lower --redis-pool", "a node that cannot connect serves nobody")
	}
	if facts.IdleTimeout > 0 && facts.IdleTimeout < 60 {
		f.advise("connections", fmt.Sprintf("it drops clients that are silent for %d s", facts.IdleTimeout), "set timeout 0", "calls fail on connections that are gone, at the start of a rush")
	}
}

// clock judges how far another clock is from ours.
func (f *findings) clock(offset, roundTrip time.Duration, why string) {
	if off := offset.Abs(); off > mostOffset+roundTrip {
		side := "ahead of"
		if offset < 0 {
			side = "behind"
		}
		f.warn("clock", fmt.Sprintf("it is %s %s this machine's", words.Duration(off.Round(time.Millisecond)), side), "synchronise all machines by NTP", why)
		return
	}
	f.sound("clock", "it agrees with this machine's within %s", words.Duration(max(offset.Abs(), roundTrip).Round(time.Millisecond)+time.Millisecond))
}

// older says whether a version like 6.2.14 is before another.
func older(version, than string) bool {
	a, b := numbers(version), numbers(than)
	return slices.Compare(a[:min(len(a), len(b))], b) < 0
}

// numbers are the leading numbers of a version.
func numbers(version string) []int {
	var list []int
	for part := range strings.FieldsFuncSeq(version, func(r rune) bool { return r == '.' || r == '-' || r == '+' || r == '~' }) {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		list = append(list, n)
	}
	return list
}

// bytes writes a size for people.
func bytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.0f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d KB", n>>10)
}
