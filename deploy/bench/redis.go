package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// info reads one field of Redis's INFO.
func (b *bench) info(ctx context.Context, section, field string) (string, error) {
	text, err := b.redis.Info(ctx, section).Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			return value, nil
		}
	}
	return "", nil
}

// scriptCalls is how many scripts Redis has run.
func (b *bench) scriptCalls(ctx context.Context) (int64, error) {
	text, err := b.info(ctx, "commandstats", "cmdstat_evalsha")
	if err != nil || text == "" {
		return 0, err
	}
	calls, _, _ := strings.Cut(strings.TrimPrefix(text, "calls="), ",")
	return strconv.ParseInt(calls, 10, 64)
}

// infoNumber is a field of INFO that is a number.
func (b *bench) infoNumber(ctx context.Context, section, field string) (float64, error) {
	text, err := b.info(ctx, section, field)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("INFO %s has no number %s: %w", section, field, err)
	}
	return v, nil
}

func splitAddress(address string) (host, port string, err error) { return net.SplitHostPort(address) }
