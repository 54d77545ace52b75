package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
)

// clusterMasters is the least that a Redis Cluster has; each has a replica.
const clusterMasters = 3

// startCluster starts a Redis Cluster. Its URL names all of its nodes.
func startCluster(ctx context.Context, s *site) (string, error) {
	var addresses []string
	for i := range 2 * clusterMasters {
		port, err := s.port()
		if err != nil {
			return "", err
		}
		number := strconv.Itoa(port.number)
		// The port at which nodes talk to one another is by itself 10,000 above, which may be beyond the last.
		bus, err := s.port()
		if err != nil {
			return "", err
		}
		cmd, err := s.command("redis-server", "--bind", "127.0.0.1", "--port", number, "--dir", s.dir, "--save", "",
			"--appendonly", "yes", "--appendfsync", "everysec", "--appenddirname", "aof-"+number, "--maxclients", "10000",
			"--cluster-enabled", "yes", "--cluster-config-file", "nodes-"+number+".conf", "--cluster-port", strconv.Itoa(bus.number),
			"--cluster-node-timeout", "2000")
		if err != nil {
			return "", err
		}
		p, err := s.start(cmd, syscall.SIGKILL)
		if err != nil {
			return "", err
		}
		at := port.address()
		if err := s.await(ctx, p, func(ctx context.Context) error { return redisAnswers(ctx, redisURL(at)) }); err != nil {
			return "", fmt.Errorf("node %d: %w", i+1, err)
		}
		addresses = append(addresses, at)
	}
	create := append([]string{"--cluster", "create"}, addresses...)
	if err := s.run(ctx, "redis-cli", append(create, "--cluster-replicas", "1", "--cluster-yes")...); err != nil {
		return "", err
	}
	return redisURL(addresses[0]) + "?addr=" + strings.Join(addresses[1:], "&addr="), nil
}
