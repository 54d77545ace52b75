package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/lua"
)

const (
	// slowCall is what a call that holds up everybody takes at least.
	slowCall = 10 * time.Millisecond
	// slowCalls is how many entries of the log of slow calls are read.
	slowCalls = 128
	// scanMost bounds how many keys are looked at for those of others.
	scanMost = 20_000
)

// RedisFacts are what a Redis says of itself, as far as it matters to a sale. What it does not tell (a managed service
// may refuse CONFIG and SLOWLOG) is in Untold.
type RedisFacts struct {
	Address   string
	Version   string
	Role      string        // "master" or "slave", in its own words
	Apart     bool          // it is a node of a cluster, and asked as if it were alone
	Scripts   error         // why the scripts cannot be used; nil = they can
	RoundTrip time.Duration // of a ping, the shortest of several
	Offset    time.Duration // its clock less ours, exact to half a RoundTrip

	Policy      string // maxmemory-policy
	MaxMemory   int64  // bytes; 0 = no limit
	UsedMemory  int64  // bytes
	AOF         bool
	Fsync       string // appendfsync; "" = not told
	WriteFails  string // what it says of the last write to its disk, where that failed
	Replicas    int
	MinReplicas int   // min-replicas-to-write
	IdleTimeout int64 // seconds after which it drops a client; 0 = never
	Clients     int64
	MaxClients  int64

	Slow    []SlowCall       // of the log of slow calls, those of slowCall and more, the newest first
	Blunt   map[string]int64 // calls of commands that stop everything while they run, since its start
	Keys    []KeyMemory      // the keys of sales, the largest first
	Foreign int64            // keys that are not of sluice, as far as was looked
	Looked  int64            // how many keys were looked at for that

	Untold []string // commands that it refused
}

// SlowCall is a call that held up everybody.
type SlowCall struct {
	Command string // its name alone: arguments may be of shoppers
	At      time.Time
	Took    time.Duration
}

// KeyMemory is a key and how much it takes.
type KeyMemory struct {
	Key   string
	Bytes int64
}

// blunt are commands whose cost grows with all keys, or that stop or empty a Redis.
func blunt() []string { return []string{"keys", "flushall", "flushdb", "monitor", "debug", "save"} }

// Inspect asks a Redis about itself, and of a cluster each master. It changes nothing but that the scripts are known there.
// It blocks on Redis for as long as ctx allows.
func Inspect(ctx context.Context, client redis.UniversalClient) ([]RedisFacts, error) {
	var all []RedisFacts
	var mu sync.Mutex
	look := func(ctx context.Context, node *redis.Client) error {
		facts, err := inspectNode(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, facts)
		return err
	}
	var err error
	switch client := client.(type) {
	case *redis.ClusterClient:
		err = client.ForEachMaster(ctx, look)
		for i := range all {
			all[i].Apart = false
		}
	case *redis.Client:
		err = look(ctx, client)
	}
	if err != nil {
		return all, fmt.Errorf("ask redis about itself: %w", err)
	}
	slices.SortFunc(all, func(a, b RedisFacts) int { return strings.Compare(a.Address, b.Address) })
	if err := all[0].ask("MEMORY", all[0].memory(ctx, client)); err != nil {
		return all, err
	}
	return all, nil
}

// inspectNode asks one server.
func inspectNode(ctx context.Context, client *redis.Client) (RedisFacts, error) {
	f := RedisFacts{Blunt: map[string]int64{}, Address: client.Options().Addr}
	if err := f.clock(ctx, client); err != nil {
		return f, err
	}
	info, err := client.Info(ctx, "everything").Result()
	if err != nil {
		return f, err
	}
	f.info(parseInfo(info))
	if err := errors.Join(
		f.ask("CONFIG", f.config(ctx, client)), f.ask("SLOWLOG", f.slow(ctx, client)), f.ask("SCAN", f.foreign(ctx, client)),
	); err != nil {
		return f, err
	}
	f.Scripts = inspectScripts(ctx, client) // last, so that none of it stands in the log of slow calls
	return f, nil
}

// ask notes what was refused, and returns what went wrong in another way.
func (f *RedisFacts) ask(command string, err error) error {
	var refused redis.Error
	if errors.As(err, &refused) {
		f.Untold = append(f.Untold, command)
		return nil
	}
	return err
}

// clock compares the clocks: the answer whose way was the shortest tells most.
func (f *RedisFacts) clock(ctx context.Context, client *redis.Client) error {
	for range 5 {
		sent := time.Now()
		there, err := client.Time(ctx).Result()
		if err != nil {
			return err
		}
		took := time.Since(sent)
		if f.RoundTrip == 0 || took < f.RoundTrip {
			f.RoundTrip, f.Offset = took, there.Sub(sent.Add(took/2))
		}
	}
	return nil
}

func (f *RedisFacts) info(info map[string]string) {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(info[name], 10, 64)
		return n
	}
	f.Version, f.Role, f.Apart = info["redis_version"], info["role"], info["cluster_enabled"] == "1"
	f.Policy, f.MaxMemory, f.UsedMemory = info["maxmemory_policy"], number("maxmemory"), number("used_memory")
	f.AOF, f.Replicas = info["aof_enabled"] == "1", int(number("connected_slaves"))
	f.Clients, f.MaxClients = number("connected_clients"), number("maxclients")
	for name, what := range map[string]string{
		"aof_last_write_status": "the append-only file", "aof_last_bgrewrite_status": "the rewriting of the append-only file",
		"rdb_last_bgsave_status": "the snapshot",
	} {
		if status := info[name]; status != "" && status != "ok" {
			f.WriteFails = what
		}
	}
	for _, command := range blunt() {
		for name, value := range info {
			if name != "cmdstat_"+command && !strings.HasPrefix(name, "cmdstat_"+command+"|") {
				continue
			}
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			if n, err := strconv.ParseInt(calls, 10, 64); err == nil && n > 0 {
				f.Blunt[command] += n
			}
		}
	}
}

// config reads settings that INFO does not tell.
func (f *RedisFacts) config(ctx context.Context, client *redis.Client) error {
	for name, to := range map[string]func(string){
		"appendfsync":           func(v string) { f.Fsync = v },
		"min-replicas-to-write": func(v string) { f.MinReplicas, _ = strconv.Atoi(v) },
		"timeout":               func(v string) { f.IdleTimeout, _ = strconv.ParseInt(v, 10, 64) },
	} {
		values, err := client.ConfigGet(ctx, name).Result()
		if err != nil {
			return err
		}
		to(values[name])
	}
	return nil
}

func (f *RedisFacts) slow(ctx context.Context, client *redis.Client) error {
	entries, err := client.SlowLogGet(ctx, slowCalls).Result()
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Duration >= slowCall && len(entry.Args) > 0 {
			f.Slow = append(f.Slow, SlowCall{Command: strings.ToUpper(entry.Args[0]), At: entry.Time, Took: entry.Duration})
		}
	}
	return nil
}

// memory asks how large the keys of the sales are.
func (f *RedisFacts) memory(ctx context.Context, client redis.UniversalClient) error {
	sales, err := client.SMembers(ctx, salesKey).Result()
	if err != nil {
		return err
	}
	for _, sale := range sales {
		for _, key := range keysOf(sale).all() {
			bytes, err := client.MemoryUsage(ctx, key).Result()
			if errors.Is(err, redis.Nil) {
				continue
			}
			if err != nil {
				return err
			}
			f.Keys = append(f.Keys, KeyMemory{Key: key, Bytes: bytes})
		}
	}
	slices.SortFunc(f.Keys, func(a, b KeyMemory) int { return int(b.Bytes - a.Bytes) })
	return nil
}

// foreign looks for keys of others, among so many that it takes no time.
func (f *RedisFacts) foreign(ctx context.Context, client *redis.Client) error {
	var cursor uint64
	for {
		keys, next, err := client.Scan(ctx, cursor, "", 1000).Result()
		if err != nil {
			return err
		}
		for _, key := range keys {
			f.Looked++
			if !strings.HasPrefix(key, "sluice:") {
				f.Foreign++
			}
		}
		if cursor = next; cursor == 0 || f.Looked >= scanMost {
			return nil
		}
	}
}

// inspectScripts loads every script, and calls INFO from inside of one, as all that write do.
func inspectScripts(ctx context.Context, client *redis.Client) error {
	for _, name := range lua.Names() {
		if err := client.ScriptLoad(ctx, lua.Source(name, false)).Err(); err != nil {
			return fmt.Errorf("load script %s: %w", name, err)
		}
	}
	if err := client.Eval(ctx, "return redis.call('INFO', 'server')", nil).Err(); err != nil {
		return fmt.Errorf("ask INFO in a script: %w", err)
	}
	return nil
}

// parseInfo reads the lines name:value of INFO.
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}
