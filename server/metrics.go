package server

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"sluice/queue"
)

// metrics are what this package counts. Labels are ids of sales that exist and words of our own.
type metrics struct {
	grabs   *prometheus.CounterVec // by sale and result
	grabbed prometheus.Histogram   // seconds from the request to its result
	limited *prometheus.CounterVec // by what limit
	turned  prometheus.Histogram   // seconds from a turn being given to its frame
	tally   tally                  // the same counts once more, for operators
}

// newMetrics registers with registerer, or nowhere when it is nil.
func newMetrics(registerer prometheus.Registerer) *metrics {
	auto := promauto.With(registerer)
	return &metrics{
		grabs: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_grabs_total",
			Help: "Grabs by their result.",
		}, []string{"sale", "result"}),
		grabbed: auto.NewHistogram(prometheus.HistogramOpts{
			Name:    "sluice_grab_seconds",
			Help:    "Time from a grab to its result.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}),
		turned: auto.NewHistogram(prometheus.HistogramOpts{
			Name:    "sluice_turn_seconds",
			Help:    "Time from a turn being given, on whatever node, to its frame being written to a connection of the shopper.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .15, .25, .5, 1, 2.5},
		}),
		limited: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_limited_total",
			Help: "Requests refused because of a limit: of this node, or of a user or address over all nodes.",
		}, []string{"by"}),
	}
}

// grab counts one that had a result.
func (m *metrics) grab(sale string, result queue.Result) {
	m.grabs.WithLabelValues(sale, result.String()).Inc()
	m.tally.grab(sale, int(-result))
}

// grabFailed counts one that had none. Being limited is no failure.
func (m *metrics) grabFailed(sale string, err error) {
	code := queue.CodeOf(err)
	m.grabs.WithLabelValues(sale, string(code)).Inc()
	if code != queue.Limited {
		m.tally.grab(sale, failed)
	}
}

// refused counts a request that was refused by the limit of a user, of an address or of the node.
func (m *metrics) refused(by string) {
	m.limited.WithLabelValues(by).Inc()
	m.tally.refuse(by)
}
