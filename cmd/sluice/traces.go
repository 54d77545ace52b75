package main

import (
	"context"
	"log/slog"
	"time"

	"sluice/trace"
)

// traceFlags say who is followed through the installation, and who is told.
type traceFlags struct {
	OTLPURL    string  `name:"otlp-url" env:"SLUICE_OTLP_URL" placeholder:"URL" help:"Where traces go: a collector that speaks OTLP over HTTP, like http://127.0.0.1:4318. Without it there are none."`
	OTLPSample float64 `name:"otlp-sample" env:"SLUICE_OTLP_SAMPLE" default:"0.01" placeholder:"SHARE" help:"The share of joins, grabs and payments that are followed, from 0 to 1, if not ${default}. What begins with one is followed to its end."`
}

// tracer makes what follows them; nil = nothing does. It does not connect.
func (f traceFlags) tracer(node string, log *slog.Logger) (*trace.Tracer, error) {
	if f.OTLPSample < 0 || f.OTLPSample > 1 || f.OTLPSample != f.OTLPSample {
		return nil, usagef("--otlp-sample: give a share from 0 to 1, like 0.01")
	}
	tracer, err := trace.New(trace.Options{URL: f.OTLPURL, Sample: f.OTLPSample, Node: node, Version: build(), Logger: log})
	if err != nil {
		return nil, usagef("--otlp-url: %v", err)
	}
	return tracer, nil
}

// flushTimeout is how long a process that ends waits for its last traces to be sent, at most.
const flushTimeout = 5 * time.Second

// flush sends the last traces within that time, and within the drain of a node that has one.
func (n *node) flush() {
	within := flushTimeout
	if n.server != nil {
		within = min(within, n.drain)
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	n.tracer.Close(ctx)
}
