package deliver

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/internal/alert"
)

// Outcomes of deliveries.
const (
	outcomeDelivered = "delivered"
	outcomeFailed    = "failed" // one attempt
	outcomeDead      = "dead"   // without the ledger: no attempt follows
)

type metrics struct {
	messages   *prometheus.CounterVec
	deliveries *prometheus.CounterVec
	dropped    prometheus.Counter
}

// newMetrics registers the metrics; every series exists from the start.
func newMetrics(reg prometheus.Registerer, d *Dispatcher) (*metrics, error) {
	m := &metrics{
		messages:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dpwatch_alert_messages_total", Help: "Messages about alerts, by kind and status: one at the beginning, one for a higher severity, one at the end."}, []string{"kind", "status"}),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dpwatch_alert_deliveries_total", Help: "Attempts to send an alert to a receiver, by outcome; dead: sent without the ledger, and no attempt follows."}, []string{"receiver", "outcome"}),
		dropped:    prometheus.NewCounter(prometheus.CounterOpts{Name: "dpwatch_alert_findings_dropped_total", Help: "Findings for which no alert was sent because too many came at once, or 5000 alerts fired."}),
	}
	for _, kind := range alert.Kinds() {
		m.messages.WithLabelValues(kind, alert.Firing)
		m.messages.WithLabelValues(kind, alert.Ended)
	}
	for i := range d.opt.Receivers {
		for _, outcome := range []string{outcomeDelivered, outcomeFailed, outcomeDead} {
			m.deliveries.WithLabelValues(d.opt.Receivers[i].Name, outcome)
		}
	}
	return m, errors.Join(reg.Register(m.messages), reg.Register(m.deliveries), reg.Register(m.dropped), reg.Register(&collector{d}))
}

var descFiring = prometheus.NewDesc("dpwatch_alerts_firing", "Alerts that fire, by kind.", []string{"kind"}, nil)

type collector struct{ d *Dispatcher }

func (c *collector) Describe(out chan<- *prometheus.Desc) { out <- descFiring }

func (c *collector) Collect(out chan<- prometheus.Metric) {
	n := map[string]int{}
	c.d.mu.Lock()
	for _, m := range c.d.firing {
		n[m.Kind]++
	}
	c.d.mu.Unlock()
	for _, kind := range alert.Kinds() {
		out <- prometheus.MustNewConstMetric(descFiring, prometheus.GaugeValue, float64(n[kind]), kind)
	}
}
