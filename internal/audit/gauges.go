package audit

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/view"
)

// gauges collects present values. The series of a single audit exist as long as the audit.
type gauges struct{ a *Auditor }

// maxSeries bounds the number of audits with series of their own, except violations, which always have series.
// /api/status lists all audits.
const maxSeries = 100

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	descAudits     = desc("dpwatch_audits", "Audits, by state.", "state")
	descOpen       = desc("dpwatch_open_violations", "Queries with a violation that is not accepted, including the records of evicted audits.")
	descAccepted   = desc("dpwatch_accepted_violations", "Queries with a violation that an operator has accepted.")
	descWatched    = desc("dpwatch_watched_audits", "Audits without a violation whose queries are still replayed at a low rate, to find changes.")
	descUsed       = desc("dpwatch_budget_used_total", "What replays used since the process began, by unit: trials, or database_seconds. Absent without audit.budget.", "unit")
	descPerHour    = desc("dpwatch_budget_per_hour", "What audit.budget allows per hour, by unit; 0 = no limit.", "unit")
	descShort      = desc("dpwatch_audits_waiting_for_budget", "Audits that wait because the budget of replays is used.")
	descExceeded   = desc("dpwatch_privacy_budget_exceeded_analysts", "Analysts whose answers exceed a budget of the configuration.", "budget")
	descSpentRatio = desc("dpwatch_privacy_budget_spent_ratio", "Share of a budget that the analyst with the largest share has received; at most 1000.", "budget")
	descOldest     = desc("dpwatch_oldest_waiting_audit_age_seconds", "Longest time that an audit has been waiting for its next turn; 0 if none waits.")
	descUntried    = desc("dpwatch_oldest_untried_audit_age_seconds", "Time since the admission of the oldest audit without a trial; 0 if there is none.")
	descShadow     = desc("dpwatch_shadow_up", "1 if the last use of the shadow database succeeded, else 0; absent with audit.observe.")
	descLastTrial  = desc("dpwatch_last_trial_timestamp_seconds", "Time of the latest trials of this process; absent before the first.")
	descBytes      = desc("dpwatch_audit_memory_bytes", "Estimated memory of all audits.")
	descBudget     = desc("dpwatch_audit_memory_limit_bytes", "Limit of dpwatch_audit_memory_bytes; 0 = no limit.")
	descQueries    = desc("dpwatch_dp_queries", "Distinct auditable DP queries so far; an estimate above a thousand.")
	descCovered    = desc("dpwatch_dp_queries_audited_ratio", "Share of dpwatch_dp_queries whose audit has or had trials.")
	descLedger     = desc("dpwatch_ledger_up", "1 if the last use of the ledger succeeded, else 0; absent if audits are kept in memory only.")
	descRecords    = desc("dpwatch_ledger_record_only", "1 if another process audits this engine with the same ledger and this one only records what it captures for it, else 0.")
	descUnsaved    = desc("dpwatch_ledger_unsaved_audits", "Audits whose latest state is not in the ledger yet.")
	descUnrecorded = desc("dpwatch_ledger_lost_observations", "Executions and skipped statements since the start that were not recorded because the ledger was away too long.")
	descSpooled    = desc("dpwatch_ledger_spool_bytes", "Size of the observations and captured queries that wait on disk for the ledger.")
	descLower      = desc("dpwatch_epsilon_lower_bound", "Certified lower bound on the privacy loss, for violations and up to a hundred other audits.", "query_id")
	descClaimed    = desc("dpwatch_epsilon_claimed", "Privacy loss that the engine claims.", "query_id")
	descDelta      = desc("dpwatch_delta_claimed", "Delta that the engine claims.", "query_id")
	descSpeedUp    = desc("dpwatch_hoisting_speed_up", "Time of an unmodified round divided by the time of a hoisted one; 1 if trials run the whole query.", "query_id")
	descHoistTable = desc("dpwatch_hoisting_tables", "Temporary tables that a replay session creates for a hoisted query; 0 if trials run the whole query.", "query_id")
)

// Describe sends every description.
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descAudits, descOpen, descAccepted, descWatched, descUsed, descPerHour, descShort, descExceeded, descSpentRatio, descOldest, descUntried, descShadow, descLastTrial, descBytes, descBudget, descQueries, descCovered,
		descLedger, descRecords, descUnsaved, descUnrecorded, descSpooled,
		descLower, descClaimed, descDelta, descSpeedUp, descHoistTable,
	} {
		out <- d
	}
}

// Collect sends the present values. It is called in a goroutine of the registry.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	var all []prometheus.Metric
	_ = g.a.contain("collect metrics", func() error { all = g.collect(); return nil })
	for _, m := range all { // sending happens without the lock
		out <- m
	}
}

func (g *gauges) collect() []prometheus.Metric {
	a := g.a
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []prometheus.Metric
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		all = append(all, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...))
	}
	now := a.opt.Now()
	var oldest, untried time.Time
	earlier := func(t *time.Time, since time.Time) {
		if t.IsZero() || since.Before(*t) {
			*t = since
		}
	}
	held := a.keeper.State()
	known := held == nil || held.Restored // a series that is not known yet is absent: 0 would end the alerts of Prometheus
	gaugeKnown := func(d *prometheus.Desc, v float64, labels ...string) {
		if known {
			gauge(d, v, labels...)
		}
	}
	age := func(d *prometheus.Desc, since time.Time) {
		if since.IsZero() {
			since = now
		}
		if known {
			gauge(d, max(0, now.Sub(since).Seconds()))
		}
	}
	states, violations, watched := map[view.State]int{}, len(a.records.order), 0
	for _, j := range a.order {
		states[j.state()]++
		if j.Watched {
			watched++
		}
		if j.violates() {
			violations++
		}
		if j.Phase() == schedule.Queued && !a.opt.Observe {
			if j.Background {
				continue // a repetition waits for its share
			}
			earlier(&oldest, j.Since())
			if j.Trials == 0 {
				earlier(&untried, j.Since())
			}
		}
	}
	gaugeKnown(descWatched, float64(watched))
	for _, s := range view.States() {
		gaugeKnown(descAudits, float64(states[s]), string(s))
	}
	accepted := a.acceptedViolations()
	gaugeKnown(descOpen, float64(violations-accepted))
	gaugeKnown(descAccepted, float64(accepted))
	for _, b := range a.budgets {
		gauge(descExceeded, float64(b.Exceeded), b.Name)
		gauge(descSpentRatio, b.Spent, b.Name)
	}
	age(descOldest, oldest)
	age(descUntried, untried)
	up := 0.0
	if a.shadowUp {
		up = 1
	}
	if !a.opt.Observe {
		gauge(descShadow, up)
	}
	if l := held; l != nil {
		up = 0
		if (l.Restored || l.Holder != nil) && l.Trouble == "" {
			up = 1
		}
		gauge(descLedger, up)
		only := 0.0
		if l.Holder != nil {
			only = 1
		}
		gauge(descRecords, only)
		gauge(descUnsaved, float64(l.Unsaved))
		gauge(descUnrecorded, float64(l.Lost))
		gauge(descSpooled, float64(l.Spooled))
	}
	if b := a.budgetState(); b != nil {
		for unit, used := range map[string]float64{"trials": float64(b.Trials), "database_seconds": b.Seconds} {
			all = append(all, prometheus.MustNewConstMetric(descUsed, prometheus.CounterValue, used, unit))
		}
		gauge(descPerHour, float64(b.TrialsPerHour), "trials")
		gauge(descPerHour, b.SecondsPerHour, "database_seconds")
		gauge(descShort, float64(b.Waiting))
	}
	if !a.lastTrial.IsZero() {
		gauge(descLastTrial, float64(a.lastTrial.UnixNano())/1e9)
	}
	gauge(descBytes, float64(a.roster.Bytes()))
	gauge(descBudget, float64(a.opt.Memory))
	n, share := a.covered()
	gaugeKnown(descQueries, n)
	gaugeKnown(descCovered, share)
	taken := map[string]bool{} // ids are truncated hashes, and two series with one name would make all metrics fail
	for _, c := range a.records.order {
		if taken[c.ID] {
			continue
		}
		taken[c.ID] = true
		gauge(descLower, float64(c.Lower), c.ID)
		gauge(descClaimed, float64(c.Claimed), c.ID)
	}
	for _, j := range a.withSeries() {
		if taken[j.id] {
			continue
		}
		taken[j.id] = true
		r := j.worst()
		if s := j.violation(); s != nil {
			r.EpsilonLower = s.Lower
		}
		gauge(descLower, float64(r.EpsilonLower), j.id)
		gauge(descClaimed, float64(r.Claimed.Epsilon), j.id)
		gauge(descDelta, r.Claimed.Delta, j.id)
		gain, tables := 1.0, 0
		if h := j.hoisting; h != nil && h.Hoisted {
			gain, tables = h.SpeedUp, h.Pieces
		}
		gauge(descSpeedUp, gain, j.id)
		gauge(descHoistTable, float64(tables), j.id)
	}
	return all
}

// withSeries returns the audits that have series of their own: all violations, and the first of the other audits that
// have begun.
func (d *desk) withSeries() []*job {
	var violations, others []*job
	for _, j := range d.order {
		switch {
		case j.violates() || j.worst().DetectedAt != nil:
			violations = append(violations, j)
		case j.Trials > 0 || j.Phase() == schedule.Decided:
			others = append(others, j)
		}
	}
	return append(violations, others[:min(len(others), max(0, maxSeries-len(violations)))]...)
}
