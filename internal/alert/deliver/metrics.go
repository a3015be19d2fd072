package deliver

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/ledger"
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
	faults     *prometheus.CounterVec
	dropped    prometheus.Counter
}

// newMetrics registers the metrics; every series exists from the start.
func newMetrics(reg prometheus.Registerer, d *Dispatcher) (*metrics, error) {
	m := &metrics{
		messages:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dpwatch_alert_messages_total", Help: "Messages about alerts, by kind and status: one at the beginning, one for a higher severity, one at the end."}, []string{"kind", "status"}),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dpwatch_alert_deliveries_total", Help: "Attempts to send an alert to a receiver, by outcome; dead: sent without the ledger, and no attempt follows."}, []string{"receiver", "outcome"}),
		faults:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dpwatch_alert_ledger_faults_total", Help: "Errors of the ledger in the delivery of alerts, by operation; each is tried again."}, []string{"operation"}),
		dropped:    prometheus.NewCounter(prometheus.CounterOpts{Name: "dpwatch_alert_findings_dropped_total", Help: "Findings for which no alert was sent because too many came at once, or 5000 alerts fired."}),
	}
	for _, kind := range finding.Kinds() {
		m.messages.WithLabelValues(string(kind), alert.Firing)
		m.messages.WithLabelValues(string(kind), alert.Ended)
	}
	for _, operation := range operations() {
		m.faults.WithLabelValues(operation)
	}
	for i := range d.opt.Receivers {
		for _, outcome := range []string{outcomeDelivered, outcomeFailed, outcomeDead} {
			m.deliveries.WithLabelValues(d.opt.Receivers[i].Name, outcome)
		}
	}
	return m, errors.Join(reg.Register(m.messages), reg.Register(m.deliveries), reg.Register(m.faults), reg.Register(m.dropped), reg.Register(&collector{d}))
}

var (
	descFiring      = prometheus.NewDesc("dpwatch_alerts_firing", "Alerts that fire, by kind and severity; absent until those of earlier processes are read from the ledger.", []string{"kind", "severity"}, nil)
	descUndelivered = prometheus.NewDesc("dpwatch_alert_undelivered_messages", "Messages to a receiver that have not arrived, by state: pending, or failed after all attempts.", []string{"receiver", "state"}, nil)
	descOldest      = prometheus.NewDesc("dpwatch_alert_oldest_pending_message_seconds", "Age of the oldest message to a receiver that is pending; 0 if none is.", []string{"receiver"}, nil)
)

type collector struct{ d *Dispatcher }

func (c *collector) Describe(out chan<- *prometheus.Desc) {
	out <- descFiring
	out <- descUndelivered
	out <- descOldest
}

func (c *collector) Collect(out chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
	}
	type class struct {
		kind     finding.Kind
		severity finding.Severity
	}
	n := map[class]int{}
	for _, kind := range finding.Kinds() {
		severities := []finding.Severity{kind.Severity()}
		if severities[0] == "" {
			severities = finding.Severities()
		}
		for _, severity := range severities {
			n[class{kind, severity}] = 0
		}
	}
	c.d.mu.Lock()
	for _, m := range c.d.firing {
		n[class{m.Kind, m.Severity}]++
	}
	now, waiting := c.d.opt.Now(), c.d.undelivered
	c.d.mu.Unlock()
	if !c.d.known.Load() { // a series that is not known yet is absent: 0 would end the alerts of Prometheus
		clear(n)
	}
	for at, count := range n {
		gauge(descFiring, float64(count), string(at.kind), string(at.severity))
	}
	for i := range c.d.opt.Receivers {
		name := c.d.opt.Receivers[i].Name
		u := waiting[name]
		gauge(descUndelivered, float64(u.pending), name, ledger.DeliveryPending)
		gauge(descUndelivered, float64(u.failed), name, ledger.DeliveryFailed)
		gauge(descOldest, u.age(now).Seconds(), name)
	}
}
