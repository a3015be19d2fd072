// Package alert reports findings: as a log line and as metrics.
//
// It owns the format and the receivers of an alert. Package analysis decides what is a violation, package audit when to
// check. In: a Finding. Out: one zap log entry per finding, and counters. A Finding holds no SQL literals and no values of
// rows unless the operator allowed them.
package alert

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Kind is what a Finding reports.
type Kind string

// The kinds of findings.
const (
	Violation       Kind = ""                 // a violation
	Resolved        Kind = "resolved"         // a later engine does not have a violation any more: Lower is its former bound
	BudgetExceeded  Kind = "budget_exceeded"  // the answers to an analyst claim more than a budget of the configuration
	UnclaimedRead   Kind = "unclaimed_read"   // a client reads a protected table without a claim and without a DP function
	FunctionDiffers Kind = "function_differs" // production has another definition of a function than the shadow database

	Suspected        Kind = "suspected"         // trials show a violation, which fresh trials have not confirmed yet
	CoverageLow      Kind = "coverage_low"      // few of the distinct DP queries have an audit
	AuditorUnhealthy Kind = "auditor_unhealthy" // the ledger, the shadow database or the workers are away
)

// Finding is one violation, or what another Kind says.
type Finding struct {
	Kind        Kind
	Function    string // that differs, as schema.name
	Budget      Budget // that is exceeded
	Application string // of an unclaimed read, or of a client of the query
	EngineEpoch string // version of the engine when a violation was first seen; "" = not known
	Component   string // of AuditorUnhealthy: what is away
	Condition   string // of CoverageLow and AuditorUnhealthy: what it is, in one constant line
	Over        bool   // of Suspected, CoverageLow and AuditorUnhealthy: it is so no more
	ID          string // of the audit: the first 12 hex digits of its key
	Group       string // pg_query fingerprint, shared by statements that differ only in constants
	Summary     string // the statement without its literals
	User        string
	Database    string
	Neighbour   string // the D1 schema
	Route       string // the engine, if several are configured
	Epsilon     float64
	Delta       float64
	Source      string // source of the claim
	Lower       float64
	Estimate    float64 // NaN if there is none
	Confidence  float64
	// Deterministic means that the answers never vary and differ between D0 and D1. That gives no epsilon: Lower and
	// Estimate are then undefined.
	Deterministic bool
	Event         Event
	Line          withheld.Text // the finding in one line; empty for none
	Reason        string
	TrialsD0      int
	TrialsD1      int
	Odds          float64 // the attacker's posterior odds after the event; NaN if there are none
	SQL           string  // with literals; empty unless allowed
}

// Event is what distinguishes the two datasets, as text and for programs; see analysis.Event. The zero Event is none.
type Event struct {
	Description withheld.Text
	Partition   withheld.Text
	Kind        string
	Column      string
	Tail        string
	Direction   string
	D0, D1      float64 // its estimated probability on each dataset
}

// fields returns the log fields of an Event; empty texts are omitted.
func (e Event) fields() []zap.Field {
	fields := []zap.Field{zap.Stringer("dp.event", e.Description)}
	if e.Kind == "" {
		return fields
	}
	for _, text := range []struct{ name, value string }{
		{"dp.event.kind", e.Kind},
		{"dp.event.partition", e.Partition.String()},
		{"dp.event.column", e.Column},
		{"dp.event.tail", e.Tail},
		{"dp.event.direction", e.Direction},
	} {
		if text.value != "" {
			fields = append(fields, zap.String(text.name, text.value))
		}
	}
	return append(fields, zap.Float64("dp.event.probability_d0", e.D0), zap.Float64("dp.event.probability_d1", e.D1))
}

// kind returns "epsilon", "deterministic" if there is no epsilon, or another Kind.
func (f Finding) kind() string {
	switch {
	case f.Kind != Violation:
		return string(f.Kind)
	case f.Deterministic:
		return "deterministic"
	}
	return "epsilon"
}

// Sender sends findings to the receivers.
type Sender struct {
	log  *zap.Logger
	sent *prometheus.CounterVec
}

// New returns a Sender that logs to log and counts in reg.
func New(log *zap.Logger, reg prometheus.Registerer) (*Sender, error) {
	sent := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "dpwatch_alerts_sent_total", Help: "Alerts sent, by receiver.",
	}, []string{"receiver"})
	if err := reg.Register(sent); err != nil {
		return nil, err
	}
	return &Sender{log: log, sent: sent}, nil
}

// Send sends one finding to every receiver.
func (s *Sender) Send(f Finding) {
	fields := []zap.Field{
		zap.String("dp.finding.id", f.ID),
		zap.String("db.query.summary", f.Summary),
		zap.String("db.query.fingerprint", f.Group),
		zap.String("db.namespace", f.Database),
		zap.String("db.user", f.User),
	}
	if f.Kind == CoverageLow || f.Kind == AuditorUnhealthy {
		s.condition(f)
		s.sent.WithLabelValues("log").Inc()
		return
	}
	if f.Kind == Suspected {
		return // package audit logs it
	}
	if f.Kind == BudgetExceeded {
		s.log.Error("a privacy budget is exceeded: by its own claims, the engine has given away more than it promises", f.Budget.fields()...)
		s.sent.WithLabelValues("log").Inc()
		return
	}
	if f.Kind == UnclaimedRead {
		s.log.Error("a client reads a protected table without a claim and without a DP function",
			append(fields, zap.String("dp.finding.kind", f.kind()), zap.String("db.application", f.Application))...)
		s.sent.WithLabelValues("log").Inc()
		return
	}
	if f.Kind == FunctionDiffers {
		s.log.Error("the shadow database runs another function than production: audits of queries that call it are inconclusive",
			append(fields, zap.String("dp.finding.kind", f.kind()), zap.String("dp.function", f.Function))...)
		s.sent.WithLabelValues("log").Inc()
		return
	}
	fields = append(fields,
		zap.String("dp.neighbour", f.Neighbour),
		zap.Float64("dp.epsilon.claimed", f.Epsilon),
		zap.Float64("dp.delta", f.Delta),
		zap.String("dp.claim.source", f.Source),
		zap.String("dp.finding.kind", f.kind()),
		zap.Int("dp.trials.d0", f.TrialsD0),
		zap.Int("dp.trials.d1", f.TrialsD1),
	)
	fields = append(fields, f.Event.fields()...)
	if f.Deterministic {
		f.Estimate, f.Odds = math.NaN(), math.NaN()
	} else {
		fields = append(fields, zap.Float64("dp.epsilon.lower_bound", f.Lower), zap.Float64("dp.confidence", f.Confidence))
	}
	if f.Route != "" {
		fields = append(fields, zap.String("dp.route", f.Route))
	}
	for name, v := range map[string]float64{"dp.epsilon.estimate": f.Estimate, "dp.attacker.posterior_odds": f.Odds} {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			fields = append(fields, zap.Float64(name, v))
		}
	}
	if line := f.Line.String(); line != "" {
		fields = append(fields, zap.String("dp.finding.line", line))
	}
	if f.Reason != "" {
		fields = append(fields, zap.String("dp.reason", f.Reason))
	}
	if f.SQL != "" {
		fields = append(fields, zap.String("db.query.text", f.SQL))
	}
	if f.Kind == Resolved {
		s.log.Info("privacy violation resolved", fields...)
	} else {
		s.log.Error("privacy violation", fields...)
	}
	s.sent.WithLabelValues("log").Inc()
}
