package audit

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/guard"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/audit/view"
)

// gauges collects present values. The series of a single audit exist as long as the audit.
type gauges struct {
	opt     *Options
	use     useDesk
	guard   *guard.Guard
	keeper  *keep.Keeper
	pace    *pace
	budgets *metering
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	descAudits     = desc("dpwatch_audits", "Audits, by state.", "state")
	descOpen       = desc("dpwatch_open_violations", "Queries with a violation that is not accepted, including the records of evicted audits.")
	descAccepted   = desc("dpwatch_accepted_violations", "Queries with a violation that an operator has accepted.")
	descWatched    = desc("dpwatch_watched_audits", "Audits without a violation whose queries are still replayed at a low rate, to find changes.")
	descControls   = prometheus.NewDesc("dpwatch_control_audits_total", "Decided control audits, of D0 against its twin, by result: alarm (a false one), no_alarm or inconclusive. Each counts once for each version of the copies; those of earlier processes are included.", []string{"result"}, nil)
	descAlarmRate  = desc("dpwatch_false_alarm_rate_upper_bound", "Upper bound, with confidence 0.95 however often it is read, of the rate of false alarms on identical data: of dpwatch_control_audits_total that are no_alarm or alarm.")
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
	descCovered    = desc("dpwatch_dp_queries_audited_ratio", "Share of dpwatch_dp_queries whose audit has or had trials; absent before the first.")
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
		descAudits, descOpen, descAccepted, descWatched, descControls, descAlarmRate, descUsed, descPerHour, descShort, descExceeded, descSpentRatio, descOldest, descUntried, descShadow, descLastTrial, descBytes, descBudget, descQueries, descCovered,
		descLedger, descRecords, descUnsaved, descUnrecorded, descSpooled,
		descLower, descClaimed, descDelta, descSpeedUp, descHoistTable,
	} {
		out <- d
	}
}

// Collect sends the present values. It is called in a goroutine of the registry.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	var all []prometheus.Metric
	_ = g.guard.Contain("collect metrics", func() error { all = g.collect(); return nil })
	for _, m := range all { // sending happens without the lock
		out <- m
	}
}

func (g *gauges) collect() []prometheus.Metric {
	var f desk.Figures
	g.use(func(d *desk.Desk) { f = d.Overview.Figures() })
	held := g.keeper.State()
	var all metricList
	known := held == nil || held.Restored // a series that is not known yet is absent: 0 would end the alerts of Prometheus
	if known {
		g.audits(&all, &f)
	}
	g.databases(&all, &f, held)
	g.ofBudgets(&all)
	all.gauge(descBytes, float64(f.Bytes))
	all.gauge(descBudget, float64(g.opt.Memory))
	for _, s := range f.Series {
		all.gauge(descLower, s.Lower, s.ID)
		all.gauge(descClaimed, s.Claimed, s.ID)
		if s.Audit {
			all.gauge(descDelta, s.Delta, s.ID)
			all.gauge(descSpeedUp, s.SpeedUp, s.ID)
			all.gauge(descHoistTable, float64(s.Tables), s.ID)
		}
	}
	return all
}

// audits adds what is known of all audits once those of earlier processes are restored.
func (g *gauges) audits(all *metricList, f *desk.Figures) {
	now := g.opt.Now()
	age := func(d *prometheus.Desc, since time.Time) {
		if since.IsZero() {
			since = now
		}
		all.gauge(d, max(0, now.Sub(since).Seconds()))
	}
	all.gauge(descWatched, float64(f.Watched))
	for result, n := range map[string]int{"alarm": f.FalseAlarms.Alarms, "no_alarm": f.FalseAlarms.Audits - f.FalseAlarms.Alarms, "inconclusive": f.FalseAlarms.Inconclusive} {
		*all = append(*all, prometheus.MustNewConstMetric(descControls, prometheus.CounterValue, float64(n), result))
	}
	all.gauge(descAlarmRate, f.FalseAlarms.RateUpper)
	for _, s := range view.States() {
		all.gauge(descAudits, float64(f.States[s]), string(s))
	}
	all.gauge(descOpen, float64(f.Violations-f.Accepted))
	all.gauge(descAccepted, float64(f.Accepted))
	age(descOldest, f.Oldest)
	age(descUntried, f.Untried)
	all.gauge(descQueries, f.Queries)
	if f.Share != nil {
		all.gauge(descCovered, *f.Share)
	}
}

// databases adds the state of the shadow database and of the ledger; l is nil without a ledger.
func (g *gauges) databases(all *metricList, f *desk.Figures, l *view.LedgerState) {
	if !g.opt.Observe {
		all.gauge(descShadow, oneIf(f.ShadowUp))
	}
	if !f.LastTrial.IsZero() {
		all.gauge(descLastTrial, float64(f.LastTrial.UnixNano())/1e9)
	}
	if l == nil {
		return
	}
	all.gauge(descLedger, oneIf((l.Restored || l.Holder != nil) && l.Trouble == ""))
	all.gauge(descRecords, oneIf(l.Holder != nil))
	all.gauge(descUnsaved, float64(l.Unsaved))
	all.gauge(descUnrecorded, float64(l.Lost))
	all.gauge(descSpooled, float64(l.Spooled))
}

// ofBudgets adds the privacy budgets and that of replays.
func (g *gauges) ofBudgets(all *metricList) {
	for _, b := range g.budgets.state() {
		all.gauge(descExceeded, float64(b.Exceeded), b.Name)
		all.gauge(descSpentRatio, b.Spent, b.Name)
	}
	b := g.pace.state()
	if b == nil {
		return
	}
	for unit, used := range map[string]float64{"trials": float64(b.Trials), "database_seconds": b.Seconds} {
		*all = append(*all, prometheus.MustNewConstMetric(descUsed, prometheus.CounterValue, used, unit))
	}
	all.gauge(descPerHour, float64(b.TrialsPerHour), "trials")
	all.gauge(descPerHour, b.SecondsPerHour, "database_seconds")
	all.gauge(descShort, float64(b.Waiting))
}

type metricList []prometheus.Metric

func (l *metricList) gauge(d *prometheus.Desc, v float64, labels ...string) {
	*l = append(*l, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...))
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
