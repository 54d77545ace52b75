package queue

import "github.com/prometheus/client_golang/prometheus"

// metrics are what the queue counts about its calls.
type metrics struct {
	batch prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "sluice_grab_batch_size",
			Help:    "Grabs that went to Redis in one call.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 9),
		}),
	}
	if reg != nil {
		reg.MustRegister(m.batch)
	}
	return m
}
