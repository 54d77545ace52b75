package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"sluice/doctor"
	"sluice/queue"
	"sluice/server"
	"sluice/worker"
)

// doctorPatience is how long all that is asked may take together.
const doctorPatience = 15 * time.Second

// errUnsound ends `sluice doctor` where something would lose data.
var errUnsound = errors.New("what is marked with ✗ has to be put right before a sale")

// doctorCmd is `sluice doctor`.
type doctorCmd struct {
	nodeFlags
	JSON bool `name:"json" help:"Print one JSON object."`
	All  bool `help:"Print what is sound too."`
}

// Help is shown below the flags.
func (*doctorCmd) Help() string {
	return `Takes the flags and variables of sluice serve, asks Redis, RabbitMQ, the database, the identity provider and this machine about themselves, and says what to change. It changes nothing. It exits with 1 where data can be lost, somebody can get in who must not, or a node would not work.

Example:

    sluice doctor --redis-url redis://127.0.0.1 --amqp-url amqp://127.0.0.1 --database-url mysql://root@127.0.0.1/sluice --secret-file secret --admin-token-file admin`
}

// Run asks, judges and prints.
func (c *doctorCmd) Run(ctx context.Context, std *stdio, line *commandLine) error {
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	stands, refused := c.backendFlags.resolve()
	settings := c.settings(ctx, stands, refused)
	settings.Shadowed = line.shadowed
	keys := c.examineKeys(ctx, &settings)
	list := append(settings.Judge(), keys...)
	files, err := filesAllowed()
	if err != nil {
		return err
	}
	list = append(list, doctor.Machine(doctor.MachineFacts{Files: files})...)
	// All at once: one that is silent takes no time from the others.
	parts := make([][]doctor.Finding, 3)
	var asked sync.WaitGroup
	for i, examine := range []func(context.Context, backendFlags) []doctor.Finding{examineRedis, examineBroker, examineDatabase} {
		asked.Go(func() { parts[i] = examine(ctx, stands) })
	}
	asked.Wait()
	list = append(list, slices.Concat(parts...)...)
	if c.JSON {
		err = json.NewEncoder(std.out).Encode(struct {
			Worst    doctor.Level     `json:"worst"`
			Findings []doctor.Finding `json:"findings"`
		}{doctor.Worst(list), list})
	} else {
		err = printFindings(std.out, list, c.All)
	}
	if err == nil && doctor.Worst(list) == doctor.Danger {
		err = errUnsound
	}
	return err
}

// settings reads what is judged of the settings, without making up what was not given. refused is what no node starts with
// of what it stands on.
func (c *doctorCmd) settings(ctx context.Context, stands backendFlags, refused []error) doctor.Settings {
	redis, broker, database := c.given()
	given, more := c.serveFlags.resolve()
	refused = append(refused, more...)
	refused = append(refused, c.outOfRange()...)
	if err := c.idle(); err != nil {
		refused = append(refused, err)
	}
	if tracer, err := c.tracer("doctor", slog.New(slog.DiscardHandler)); err != nil {
		refused = append(refused, err)
	} else {
		tracer.Close(ctx) // it has followed nothing
	}
	if c.TLSCert != "" && c.TLSKey != "" {
		if _, err := openCertificate(c.TLSCert, c.TLSKey, slog.New(slog.DiscardHandler)); err != nil {
			refused = append(refused, err)
		}
	}
	return doctor.Settings{
		Refused: refused, Embedded: !redis, Broker: broker, Database: database,
		Secrets: given.secrets, AdminToken: given.admin, Webhooks: given.webhook, Challenge: given.challenge,
		Auth: c.Auth, Provider: c.JWKSURL != "", Audiences: c.JWTAudience, Origins: c.Origins, TrustedProxies: c.TrustedProxies,
		OpsListen: c.OpsListen, UserLimit: stands.LimitUser.On(), OutboxLimit: stands.OutboxLimit, Drain: c.Drain,
	}
}

// examineKeys reads the keys of an identity provider as a node would. What no node starts with it adds to the settings.
func (c *doctorCmd) examineKeys(ctx context.Context, settings *doctor.Settings) []doctor.Finding {
	if c.JWKSURL == "" {
		return nil
	}
	facts, err := server.InspectKeys(ctx, c.JWKSURL)
	if err != nil {
		settings.Refused = append(settings.Refused, keysError(err))
		return nil
	}
	return doctor.Keys(facts)
}

// examineRedis asks Redis; an embedded one is judged by the settings.
func examineRedis(ctx context.Context, stands backendFlags) []doctor.Finding {
	if stands.RedisURL == "" {
		return nil
	}
	client, err := queue.Connect(stands.RedisURL, 2)
	if err != nil {
		return []doctor.Finding{doctor.Away("redis", err)}
	}
	defer client.Close()
	facts, err := queue.Inspect(ctx, client)
	if err != nil {
		return []doctor.Finding{doctor.Away("redis", queue.AwayRedis(stands.RedisURL, err))}
	}
	return doctor.Redis(facts, stands.RedisPool)
}

func examineBroker(ctx context.Context, stands backendFlags) []doctor.Finding {
	if stands.AMQPURL == "" {
		return nil
	}
	broker, err := worker.NewAMQP(stands.AMQPURL, worker.AMQPOptions{Logger: slog.New(slog.DiscardHandler), Node: nodeName(), Prefix: stands.AMQPPrefix})
	if err != nil {
		return []doctor.Finding{doctor.Away("broker", err)}
	}
	defer broker.Close()
	facts, err := broker.Inspect(ctx)
	if err != nil {
		return []doctor.Finding{doctor.Away("broker", err)}
	}
	return doctor.Broker(facts)
}

func examineDatabase(ctx context.Context, stands backendFlags) []doctor.Finding {
	if stands.DatabaseURL == "" {
		return nil // it is a file of this process, which makes it
	}
	store, err := worker.OpenStore(ctx, stands.DatabaseURL, worker.StoreOptions{Conns: 2})
	if err != nil {
		return []doctor.Finding{doctor.Away("database", err)}
	}
	defer store.Close()
	facts, err := store.Inspect(ctx)
	if err != nil {
		return []doctor.Finding{doctor.Away("database", err)}
	}
	return doctor.Database(facts, stands.DatabaseConns)
}

// printFindings writes what was found for people, part by part.
func printFindings(out io.Writer, list []doctor.Finding, all bool) error {
	marks := map[doctor.Level]string{doctor.Sound: "✓", doctor.Advice: "!", doctor.Danger: "✗"}
	count := map[doctor.Level]int{}
	part := ""
	for _, f := range list {
		count[f.Level]++
		if f.Level == doctor.Sound && !all {
			continue
		}
		if f.Part != part {
			part = f.Part
			fmt.Fprintf(out, "%s\n", part)
		}
		fmt.Fprintf(out, "  %s %s: %s\n", marks[f.Level], f.About, f.Found)
		if f.Why != "" {
			fmt.Fprintf(out, "      why: %s\n", f.Why)
		}
		if f.Do != "" {
			fmt.Fprintf(out, "      do:  %s\n", f.Do)
		}
	}
	_, err := fmt.Fprintf(out, "%d sound, %d could be better (!), %d must be put right (✗)\n",
		count[doctor.Sound], count[doctor.Advice], count[doctor.Danger])
	return err
}
