package server

import "github.com/prometheus/client_golang/prometheus"

// collector reports each sale as the newest tick saw it, at the moment of the scrape. Every node reports the same truth,
// so dashboards take the maximum over nodes and not the sum.
type collector struct {
	sales Snapshots
	age   func() float64 // seconds since the oldest of this node's leases was renewed

	waiting, turns, served, admitted, stock, lease *prometheus.Desc
}

func newCollector(sales Snapshots, age func() float64) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("sluice_"+name, help, append([]string{"sale"}, labels...), nil)
	}
	return &collector{
		sales:    sales,
		age:      age,
		waiting:  desc("waiting", "Seats that wait to be called."),
		turns:    desc("turns_active", "Turns outstanding."),
		served:   desc("served", "The cursor: numbers up to here were called or passed."),
		admitted: desc("admitted_total", "Turns given."),
		stock:    desc("stock", "Units left.", "item"),
		lease: prometheus.NewDesc("sluice_node_lease_age_seconds",
			"Time since this node last told every sale that it lives; from 3 on its shoppers count as away.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.waiting, c.turns, c.served, c.admitted, c.stock, c.lease} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(c.lease, prometheus.GaugeValue, c.age())
	for _, s := range c.sales.All() {
		id := s.Sale.ID
		gauge := func(desc *prometheus.Desc, value int64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), append([]string{id}, labels...)...)
		}
		gauge(c.waiting, s.Waiting())
		gauge(c.turns, s.Turns)
		gauge(c.served, s.Served)
		ch <- prometheus.MustNewConstMetric(c.admitted, prometheus.CounterValue, float64(s.Granted), id)
		for item, left := range s.Items {
			gauge(c.stock, left, item)
		}
	}
}
