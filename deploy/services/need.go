package main

import (
	"context"
	"fmt"
)

// need is something the tests need: a service that is started, or a program that only has to be there.
type need struct {
	name     string
	programs []string // what it takes on this machine where no Docker engine provides it
	variable string   // environment variable that tells the tests where it is; empty: they find it themselves
	service  bool     // provided by compose.yaml where a Docker engine answers
	named    bool     // started only for a run that names it: it is large, and most do without

	// start brings it up and returns the variable's value. It returns only when the thing really answers.
	start func(context.Context, *site) (string, error)
	// url and answers are start's two halves for a container, which only needs an address to be found and asked.
	url     func(address string) string
	answers func(ctx context.Context, url string) error
	inside  int // the port inside the container
}

// needs is everything there is, in the order of its lines and variables.
func needs() []need {
	return []need{
		{
			name: "redis", programs: []string{"redis-server"}, variable: "SLUICE_TEST_REDIS", service: true,
			start: startRedis, url: redisURL, answers: redisAnswers, inside: 6379,
		},
		{
			name: "rabbitmq", programs: []string{"rabbitmq-server", "epmd"}, variable: "SLUICE_TEST_AMQP", service: true,
			start: startRabbit, url: rabbitURL, answers: rabbitAnswers, inside: 5672,
		},
		{
			name: "mariadb", programs: []string{"mariadbd", "mariadb-install-db"}, variable: "SLUICE_TEST_MYSQL", service: true,
			start: startMariaDB, url: mariaURL, answers: mariaAnswers, inside: 3306,
		},
		{
			name: "postgres", programs: []string{"postgres", "initdb"}, variable: "SLUICE_TEST_POSTGRES", service: true,
			start: startPostgres, url: postgresURL, answers: postgresAnswers, inside: 5432,
		},
		// No container: its nodes tell clients their addresses, which would be those inside.
		{name: "cluster", programs: []string{"redis-server", "redis-cli"}, variable: "SLUICE_TEST_REDIS_CLUSTER", start: startCluster},
		// No container: the suite that wants it kills its nodes one by one, through the control socket.
		{
			name: "brokers", programs: []string{"rabbitmq-server", "rabbitmqctl", "epmd"}, variable: "SLUICE_TEST_AMQP_CLUSTER",
			named: true, start: startBrokers,
		},
		{name: "chromium", programs: []string{"chromium"}, variable: "SLUICE_TEST_CHROMIUM", start: present("chromium")},
		{name: "node", programs: []string{"node", "npm"}, start: present("node")},
		{name: "nginx", programs: []string{"nginx"}, start: present("nginx")},
		// Go's race detector takes a C compiler.
		{name: "gcc", programs: []string{"gcc"}, start: present("gcc")},
	}
}

// present starts nothing: the program is there once it is installed.
func present(program string) func(context.Context, *site) (string, error) {
	return func(_ context.Context, s *site) (string, error) {
		path, ok := s.host.find(program)
		if !ok {
			return "", fmt.Errorf("%s is not there", program)
		}
		return path, nil
	}
}

func needNames() []string {
	var names []string
	for _, n := range needs() {
		names = append(names, n.name)
	}
	return names
}

// usualNames are the needs of a run that names none.
func usualNames() []string {
	var names []string
	for _, n := range needs() {
		if !n.named {
			names = append(names, n.name)
		}
	}
	return names
}
