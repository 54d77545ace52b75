package worker

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are what the worker counts.
type metrics struct {
	outbox      *prometheus.GaugeVec
	relayLag    prometheus.Histogram
	confirms    *prometheus.CounterVec
	written     *prometheus.CounterVec
	writeTime   prometheus.Histogram
	orderLag    prometheus.Histogram
	deadLetters prometheus.Gauge
}

// newMetrics registers the metrics. registerer may be nil.
func newMetrics(registerer prometheus.Registerer) *metrics {
	factory := promauto.With(registerer)
	// From half a millisecond, a batch on a fast disk, to half a minute, an outage that was survived.
	seconds := prometheus.ExponentialBuckets(0.0005, 2, 17)
	return &metrics{
		outbox: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_outbox_length",
			Help: "Orders in the outbox of a sale that the broker has not answered for yet.",
		}, []string{"sale"}),
		relayLag: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_relay_lag_seconds", Buckets: seconds,
			Help: "Time from a grab until the broker has answered for its order.",
		}),
		confirms: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_publish_confirms_total",
			Help: "Orders published, by what the broker answered: ack, nack, returned or unknown.",
		}, []string{"result"}),
		written: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_orders_written_total",
			Help: "Orders that reached the writer, by what became of them: confirmed, rejected, known (written before) or dead.",
		}, []string{"result"}),
		writeTime: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_order_write_seconds", Buckets: seconds,
			Help: "Time of one transaction that writes a batch of orders.",
		}),
		orderLag: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_order_lag_seconds", Buckets: seconds,
			Help: "Time from a grab until the row of its order is committed.",
		}),
		deadLetters: factory.NewGauge(prometheus.GaugeOpts{
			Name: "sluice_dead_letters",
			Help: "Messages that could not be written and wait for an operator.",
		}),
	}
}

// sinceGrab is the time in seconds since a moment by the clock of Redis. The clocks of two machines differ a little,
// so it may come out below 0.
func sinceGrab(at int64) float64 {
	return max(0, float64(now()-at)/1000)
}
