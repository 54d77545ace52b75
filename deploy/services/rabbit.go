package main

import (
	"context"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func rabbitURL(address string) string { return "amqp://guest:guest@" + address }

// rabbitConf keeps the broker small. Alarms over a full disk or memory would stop publishers, and so fail tests that
// have nothing to do with it; a write-ahead log of the default size would fill half a gigabyte first.
const rabbitConf = `loopback_users = none
log.console = true
log.file = false
disk_free_limit.absolute = 50MB
vm_memory_high_watermark.relative = 0.8
raft.wal_max_size_bytes = 67108864
`

// startRabbit starts a RabbitMQ node with a port mapper of its own.
func startRabbit(ctx context.Context, s *site) (string, error) {
	mapper, err := startMapper(s)
	if err != nil {
		return "", err
	}
	return startBroker(ctx, s, "sluice@localhost", rabbitConf, mapper)
}

// startMapper starts the Erlang port mapper that a node would otherwise start as a daemon: shared with every Erlang
// program of the machine, and outside of any process group that could be stopped.
func startMapper(s *site) (port, error) {
	mapper, err := s.port()
	if err != nil {
		return port{}, err
	}
	cmd, err := s.command("epmd", "-address", "127.0.0.1", "-port", strconv.Itoa(mapper.number))
	if err != nil {
		return port{}, err
	}
	_, err = s.start(cmd, syscall.SIGKILL)
	return mapper, err
}

// startBroker starts the RabbitMQ node of that name, with the text of its rabbitmq.conf.
func startBroker(ctx context.Context, s *site, name, settings string, mapper port) (string, error) {
	node, err := s.port()
	if err != nil {
		return "", err
	}
	distribution, err := s.port()
	if err != nil {
		return "", err
	}
	conf, err := s.file("rabbitmq.conf", settings)
	if err != nil {
		return "", err
	}
	plugins, err := s.file("plugins", "[].\n")
	if err != nil {
		return "", err
	}
	cmd, err := s.command("rabbitmq-server")
	if err != nil {
		return "", err
	}
	cmd.Env = append(cmd.Env, rabbitPlace(s, name, mapper)...)
	cmd.Env = append(cmd.Env,
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT="+strconv.Itoa(node.number),
		"RABBITMQ_DIST_PORT="+strconv.Itoa(distribution.number),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+rabbitDistribution,
		"RABBITMQ_CONFIG_FILE="+conf,
		"RABBITMQ_ENABLED_PLUGINS_FILE="+plugins,
		"RABBITMQ_MNESIA_BASE="+filepath.Join(s.dir, "data"),
		"RABBITMQ_LOG_BASE="+filepath.Join(s.dir, "logs"),
		"RABBITMQ_PID_FILE="+filepath.Join(s.dir, "pid"),
	)
	p, err := s.start(cmd, syscall.SIGKILL)
	if err != nil {
		return "", err
	}
	at := rabbitURL(node.address())
	return at, s.await(ctx, p, func(ctx context.Context) error { return rabbitAnswers(ctx, at) })
}

// rabbitDistribution keeps what Erlang nodes say to one another on this machine.
const rabbitDistribution = "-kernel inet_dist_use_interface {127,0,0,1}"

// rabbitPlace tells a node, and a tool that speaks to it, its name and where names are mapped to ports. The file of
// settings that it names is not there, so that none of the machine's is read.
func rabbitPlace(s *site, name string, mapper port) []string {
	return []string{
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"ERL_EPMD_PORT=" + strconv.Itoa(mapper.number),
		"RABBITMQ_NODENAME=" + name,
		"RABBITMQ_CONF_ENV_FILE=" + filepath.Join(s.dir, "none"),
	}
}

// rabbitAnswers logs in, opens the default vhost and declares a queue: the listener may be up before they are.
func rabbitAnswers(ctx context.Context, at string) error {
	limit := 5 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		limit = time.Until(deadline)
	}
	conn, err := amqp.DialConfig(at+"/", amqp.Config{Dial: amqp.DefaultDial(limit)})
	if err != nil {
		return err
	}
	defer conn.Close()
	channel, err := conn.Channel()
	if err != nil {
		return err
	}
	_, err = channel.QueueDeclare("", false, true, true, false, nil)
	return err
}
