package hub

import (
	"strconv"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what the hub counts about its sessions.
type metrics struct {
	connections prometheus.Gauge
	sessions    prometheus.Counter
	closes      *prometheus.CounterVec
	broadcast   prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		connections: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sluice_connections",
			Help: "WebSocket sessions open now.",
		}),
		sessions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_sessions_total",
			Help: "WebSocket sessions accepted.",
		}),
		closes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_closes_total",
			Help: "WebSocket sessions ended, by close code; 1006 is an end without one.",
		}, []string{"code"}),
		broadcast: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "sluice_broadcast_seconds",
			Help:    "Time to hand one frame to all sessions of a group.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9),
		}),
	}
	if reg != nil {
		reg.MustRegister(m.connections, m.sessions, m.closes, m.broadcast)
	}
	return m
}

func (m *metrics) opened() {
	m.connections.Inc()
	m.sessions.Inc()
}

// closed counts the end of a session. Codes above the registered ones are counted by number only when they are ours:
// a peer may send any of 2,000 and would make as many time series.
func (m *metrics) closed(code int, byPeer bool) {
	label := strconv.Itoa(code)
	if byPeer && code > websocket.CloseTLSHandshake {
		label = "other"
	}
	m.connections.Dec()
	m.closes.WithLabelValues(label).Inc()
}
