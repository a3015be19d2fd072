package audit

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/replay"
)

// metrics are the auditor's counters; labels are bounded and never hold SQL, users or parameters. Type gauges collects
// present values.
type metrics struct {
	captured   prometheus.Counter
	recognized prometheus.Counter
	audited    prometheus.Counter
	skipped    *prometheus.CounterVec
	evicted    *prometheus.CounterVec
	lost       prometheus.Counter
	verdicts   *prometheus.CounterVec
	*replayMetrics

	confirmations *prometheus.CounterVec
	changes       prometheus.Counter
	resolved      prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, g *gauges) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		replayMetrics: newReplayMetrics(),
		captured:      counter("dpwatch_queries_captured_total", "Completed statements that reached the auditor."),
		recognized:    counter("dpwatch_dp_statements_total", "Captured statements of auditable DP queries."),
		audited:       counter("dpwatch_dp_statements_audited_total", "Captured statements of DP queries that had an audit, with or without trials; part of dpwatch_dp_statements_total."),
		skipped:       counters("dpwatch_queries_skipped_total", "Captured statements that were not audited, by reason.", "reason"),
		evicted:       counters("dpwatch_audits_evicted_total", "Audits evicted, by reason: place (for another query), memory, or recorded (a violation of which a record is kept).", "reason"),
		lost:          counter("dpwatch_violation_records_forgotten_total", "Reported violations whose records were dropped."),
		verdicts:      counters("dpwatch_verdicts_total", "Audits decided, by verdict.", "verdict"),

		changes:       counter("dpwatch_change_alarms_total", "Alarms of change detectors: an audit without a violation began again because new trials show more than the claim allows."),
		confirmations: counters("dpwatch_confirmations_total", "Completed confirmations of violations with fresh trials, by outcome.", "outcome"),
		resolved:      counter("dpwatch_violations_resolved_total", "Violations that a later version of the engine does not have any more."),
	}
	for _, c := range append(m.all(), m.captured, m.recognized, m.audited, m.skipped, m.evicted, m.lost, m.verdicts, m.confirmations, m.changes, m.resolved, g) {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	for counter, labels := range map[*prometheus.CounterVec][]string{ // every series exists from the start, with the value 0
		m.verdicts:      {string(analysis.Violation), string(analysis.NoEvidence), string(analysis.Inconclusive)},
		m.confirmations: desk.Confirmations(),
		m.skipped:       desk.SkipReasons(),
		m.evicted:       desk.EvictReasons(),
	} {
		for _, label := range labels {
			counter.WithLabelValues(label)
		}
	}
	return m, nil
}

// replayMetrics are the counters of an auditor and of a worker.
type replayMetrics struct {
	replays  *prometheus.CounterVec
	duration prometheus.Histogram
	faults   prometheus.Counter
}

func newReplayMetrics() *replayMetrics {
	m := &replayMetrics{
		replays: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dpwatch_replays_total", Help: "Executions on the neighbouring datasets, by side and outcome.",
		}, []string{"side", "outcome"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "dpwatch_replay_batch_duration_seconds", Help: "Duration of one batch of replays.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
		faults: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "dpwatch_replay_faults_total", Help: "Batches that could not be replayed because the shadow database was unavailable or did not fit the query.",
		}),
	}
	for _, side := range []string{"d0", "d1"} {
		for _, kind := range []string{"rows", "error", replay.Timeout, replay.TooLarge} {
			m.replays.WithLabelValues(side, kind)
		}
	}
	return m
}

func (m *replayMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.replays, m.duration, m.faults}
}

// batch counts the trials of a batch, without skipped worlds.
func (m *replayMetrics) batch(b replay.Batch, skipped []bool) {
	m.duration.Observe(b.Took.Seconds())
	for _, round := range b.All() {
		m.replays.WithLabelValues("d0", kind(round[0])).Inc()
		for i, o := range round[1:] {
			if skipped != nil && skipped[i+1] || b.Spared != nil && b.Spared[i+1] {
				continue
			}
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
