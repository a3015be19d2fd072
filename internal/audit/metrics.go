package audit

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/replay"
)

// metrics are the auditor's own; labels are bounded and never hold SQL, users or parameters.
type metrics struct {
	captured prometheus.Counter
	skipped  *prometheus.CounterVec
	replays  *prometheus.CounterVec
	duration prometheus.Histogram
	faults   prometheus.Counter
	verdicts *prometheus.CounterVec
	lower    *prometheus.GaugeVec
	estimate *prometheus.GaugeVec
	claimed  *prometheus.GaugeVec
	delta    *prometheus.GaugeVec
	hoisted  *prometheus.GaugeVec
	tables   *prometheus.GaugeVec
	mu       sync.Mutex // guards labelled
	labelled map[string]bool
}

// maxLabelled bounds how many audits have gauges of their own; /api/status has all of them.
const maxLabelled = 100

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauges := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"query_id"})
	}
	m := &metrics{
		captured: counter("dpwatch_queries_captured_total", "Completed statements that reached the auditor."),
		skipped:  counters("dpwatch_queries_skipped_total", "Captured statements that are not audited, by reason.", "reason"),
		replays:  counters("dpwatch_replays_total", "Executions on the neighbouring datasets, by side and outcome.", "side", "outcome"),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "dpwatch_replay_batch_duration_seconds", Help: "Duration of one batch of replays.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
		faults:   counter("dpwatch_replay_faults_total", "Batches that could not be replayed: the shadow database was away or not right."),
		verdicts: counters("dpwatch_verdicts_total", "Audits decided, by verdict.", "verdict"),
		lower:    gauges("dpwatch_epsilon_lower_bound", "Certified lower bound on the privacy loss, the first audits only."),
		estimate: gauges("dpwatch_epsilon_estimate", "Point estimate of the privacy loss, without a confidence statement."),
		claimed:  gauges("dpwatch_epsilon_claimed", "Privacy loss that the engine claims."),
		delta:    gauges("dpwatch_delta_claimed", "Delta that the engine claims."),
		hoisted:  gauges("dpwatch_hoisting_speed_up", "Time of an unmodified round over that of a hoisted one; 1 where trials run the whole query."),
		tables:   gauges("dpwatch_hoisting_tables", "Temporary tables that a replay session makes for a hoisted query; 0 where trials run the whole query."),
		labelled: map[string]bool{},
	}
	for _, c := range []prometheus.Collector{
		m.captured, m.skipped, m.replays, m.duration, m.faults, m.verdicts, m.lower, m.estimate, m.claimed, m.delta, m.hoisted, m.tables,
	} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	for _, v := range []analysis.Verdict{analysis.Violation, analysis.NoEvidence, analysis.Inconclusive} {
		m.verdicts.WithLabelValues(string(v))
	}
	return m, nil
}

func (m *metrics) batch(b replay.Batch) {
	m.duration.Observe(b.Took.Seconds())
	for _, round := range b.Rounds {
		m.replays.WithLabelValues("d0", kind(round[0])).Inc()
		for _, o := range round[1:] {
			m.replays.WithLabelValues("d1", kind(o)).Inc()
		}
	}
}

func kind(o outcome.Outcome) string {
	switch o.SQLState {
	case "":
		return "rows"
	case replay.Timeout, replay.TooLarge:
		return o.SQLState
	}
	return "error"
}

func (m *metrics) report(e Entry) { // called by several workers; the vectors are safe, labelled is not
	m.mu.Lock()
	known := m.labelled[e.ID] || len(m.labelled) < maxLabelled
	if known {
		m.labelled[e.ID] = true
	}
	m.mu.Unlock()
	if !known {
		return
	}
	m.lower.WithLabelValues(e.ID).Set(float64(e.Report.EpsilonLower))
	m.estimate.WithLabelValues(e.ID).Set(float64(e.Report.EpsilonEstimate))
	m.claimed.WithLabelValues(e.ID).Set(float64(e.Report.Claimed.Epsilon))
	m.delta.WithLabelValues(e.ID).Set(e.Report.Claimed.Delta)
	gain, tables := 1.0, 0
	if e.Hoisting != nil && e.Hoisting.Hoisted {
		gain, tables = e.Hoisting.SpeedUp, e.Hoisting.Pieces
	}
	m.hoisted.WithLabelValues(e.ID).Set(gain)
	m.tables.WithLabelValues(e.ID).Set(float64(tables))
}
