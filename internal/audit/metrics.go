package audit

import (
	"sync"
	"time"

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
		labelled: map[string]bool{},
	}
	for _, c := range []prometheus.Collector{
		m.captured, m.skipped, m.replays, m.duration, m.faults, m.verdicts, m.lower, m.estimate, m.claimed, m.delta,
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

func (m *metrics) batch(pairs []replay.Pair, took time.Duration) {
	m.duration.Observe(took.Seconds())
	for _, p := range pairs {
		m.replays.WithLabelValues("d0", kind(p.D0)).Inc()
		m.replays.WithLabelValues("d1", kind(p.D1)).Inc()
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
}
