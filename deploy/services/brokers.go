package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// brokerNodes is the least of which two are still a majority when one is lost.
const brokerNodes = 3

// brokersConf is what a cluster of three is to have beside rabbitConf: nodes that are without the majority stop, instead of
// going on by themselves; and one that falls silent is missed after 10 s, give or take a quarter, instead of after a minute.
const brokersConf = rabbitConf + `cluster_partition_handling = pause_minority
net_ticktime = 10
`

// startBrokers starts a RabbitMQ cluster, and returns the URLs of its nodes, separated by commas. Each node is a part of
// the site, called brokers-1 and so on, with the program ctl in its folder, which is rabbitmqctl for that node.
func startBrokers(ctx context.Context, s *site) (string, error) {
	mapper, err := startMapper(s)
	if err != nil {
		return "", err
	}
	s.main = nil // what can be killed is a node
	cookie := rand.Text()
	for i := range brokerNodes {
		node, err := s.part(fmt.Sprintf("%s-%d", s.name, i+1))
		if err != nil {
			return "", err
		}
		if _, err := node.file(".erlang.cookie", cookie); err != nil {
			return "", err
		}
		if err := node.writeCtl(brokerName(i), mapper); err != nil {
			return "", err
		}
	}

	addresses := make([]string, brokerNodes)
	group, started := errgroup.WithContext(ctx)
	for i, node := range s.parts {
		group.Go(func() error {
			var err error
			if addresses[i], err = startBroker(started, node, brokerName(i), brokersConf, mapper); err != nil {
				return fmt.Errorf("node %d: %w", i+1, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return "", err
	}
	// One after the other: a node that is joined tells the others, which must not be in the middle of it themselves.
	for i, node := range s.parts[1:] {
		for _, step := range [][]string{{"stop_app"}, {"join_cluster", brokerName(0)}, {"start_app"}} {
			if err := node.ctl(ctx, step...); err != nil {
				return "", fmt.Errorf("node %d: %w", i+2, err)
			}
		}
		if err := node.await(ctx, node.main, node.ask); err != nil {
			return "", fmt.Errorf("node %d: %w", i+2, err)
		}
	}
	return strings.Join(addresses, ","), nil
}

// brokerName is what the node with that index is called among Erlang nodes.
func brokerName(i int) string { return fmt.Sprintf("sluice-%d@localhost", i+1) }

// writeCtl writes the program ctl. A tool is an Erlang node itself for as long as it runs, and has a port of its own.
func (s *site) writeCtl(name string, mapper port) error {
	distribution, err := s.port()
	if err != nil {
		return err
	}
	number := strconv.Itoa(distribution.number)
	tool, err := s.command("rabbitmqctl")
	if err != nil {
		return err
	}
	settings := append(tool.Env, rabbitPlace(s, name, mapper)...)
	settings = append(settings, "RABBITMQ_CTL_DIST_PORT_MIN="+number, "RABBITMQ_CTL_DIST_PORT_MAX="+number, "RABBITMQ_CTL_ERL_ARGS="+rabbitDistribution)
	text := "#!/bin/sh\nexec env -i"
	for _, setting := range settings {
		text += " '" + setting + "'"
	}
	path, err := s.file("ctl", text+" '"+tool.Path+"' \"$@\"\n")
	if err != nil {
		return err
	}
	return os.Chmod(path, 0o700)
}

// ctl runs the program ctl.
func (s *site) ctl(ctx context.Context, args ...string) error {
	cmd := exec.Command(filepath.Join(s.dir, "ctl"), args...)
	cmd.Dir, cmd.SysProcAttr = s.dir, s.attributes()
	if out, err := combinedOutput(ctx, cmd); err != nil {
		return fmt.Errorf("rabbitmqctl %s: %w\n%s", strings.Join(args, " "), err, lastLines(out, 20))
	}
	return nil
}
