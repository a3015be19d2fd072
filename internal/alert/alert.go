// Package alert reports findings: as a log line and as metrics.
//
// It owns the format and the receivers of an alert. Package analysis decides what is a violation, package audit when to
// check. In: a Finding. Out: one zap log entry per finding, and counters. A Finding holds no SQL literals and no values
// of rows unless the operator allowed them.
package alert

import (
	"cmp"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Finding is one violation, or what another Kind says.
type Finding struct {
	Kind        finding.Kind
	Status      finding.Status  // Accepted or Resolved: it ends an alert; otherwise it is Open
	Found       time.Time       // a violation was found; zero = now
	Change      *finding.Change // the last change of the engine that concerns the query; nil = none is known
	Function    string          // that differs, as schema.name
	Budget      Budget          // that is exceeded
	Application string          // of an unclaimed read, or of a client of the query
	EngineEpoch string          // version of the engine when a violation was first seen; "" = not known
	Component   string          // of AuditorUnhealthy: what is away
	Condition   string          // of CoverageLow and AuditorUnhealthy: what it is, in one constant line
	ID          string          // of the audit: the first 12 hex digits of its key
	Group       string          // pg_query fingerprint, shared by statements that differ only in constants
	Summary     string          // the statement without its literals
	User        string
	Database    string
	Neighbour   string // the D1 schema
	Route       string // the engine, if several are configured
	Epsilon     float64
	Delta       float64
	Curve       curve.Curve // of which (Epsilon, Delta) is the point of the bound; "" = the claim is no curve
	Source      string      // source of the claim
	Lower       float64     // NaN for Deterministic; of a resolved violation, its former bound
	Estimate    float64     // NaN if there is none
	Confidence  float64
	Event       Event
	Line        withheld.Text // the finding in one line; empty for none
	Reason      string
	TrialsD0    int
	TrialsD1    int
	Resolving   int     // pairs of trials without evidence that resolve a violation after a repair; 0 = not known
	Odds        float64 // the attacker's posterior odds after the event; NaN if there are none
	SQL         string  // with literals; empty unless allowed
}

// over reports whether the finding ends an alert.
func (f *Finding) over() bool { return f.Status == finding.Accepted || f.Status == finding.Resolved }

// severity returns the severity of the finding.
func (f *Finding) severity(scale finding.Scale) finding.Severity {
	if s := f.Kind.Severity(); s != "" {
		return s
	}
	return scale.Severity(f.Epsilon, f.Lower, f.Estimate)
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

// Sender sends findings to the log.
type Sender struct {
	scale finding.Scale
	log   *zap.Logger
	sent  *prometheus.CounterVec
}

// New returns a Sender that logs to log and counts in reg. scale gives the severity of violations.
func New(scale finding.Scale, log *zap.Logger, reg prometheus.Registerer) (*Sender, error) {
	sent := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "dpwatch_alerts_sent_total", Help: "Alerts sent, by receiver.",
	}, []string{"receiver"})
	if err := reg.Register(sent); err != nil {
		return nil, err
	}
	return &Sender{scale: scale, log: log, sent: sent}, nil
}

// Send sends one finding to the log, unless package audit logs it.
func (s *Sender) Send(f Finding) {
	if f.Kind == finding.Unconfirmed {
		return
	}
	text, fields := f.entry()
	fields = append([]zap.Field{zap.String("dp.finding.severity", string(f.severity(s.scale))), zap.String("dp.finding.kind", string(f.Kind))}, fields...)
	if f.over() {
		s.log.Info(text, fields...)
	} else {
		s.log.Error(text, fields...)
	}
	s.sent.WithLabelValues("log").Inc()
}

// entry returns the message and the fields of the log entry.
func (f *Finding) entry() (text string, fields []zap.Field) {
	query := []zap.Field{
		zap.String("dp.finding.id", f.ID),
		zap.String("db.query.summary", f.Summary),
		zap.String("db.query.fingerprint", f.Group),
		zap.String("db.namespace", f.Database),
		zap.String("db.user", f.User),
	}
	switch f.Kind {
	case finding.CoverageLow, finding.AuditorUnhealthy:
		text = f.Condition
		if f.over() {
			text = "over: " + text
		}
		return text, []zap.Field{zap.String("dp.component", f.Component), zap.String("dp.reason", f.Reason)}
	case finding.BudgetExceeded:
		return "a privacy budget is exceeded: by its own claims, the engine has given away more than it promises", f.Budget.fields()
	case finding.UnclaimedRead:
		return "a client reads a protected table without a claim and without a DP function", append(query, zap.String("db.application", f.Application))
	case finding.CopiesDiffer:
		return "the answers to a query differ between two copies of the same data: what looks like a leak may belong to the copy, so there is no verdict", append(query, zap.String("dp.reason", f.Reason))
	case finding.SessionEnds:
		return "the engine ends the session of a query on one of two neighbouring datasets alone, which shows on which one it ran; the query is not run again", append(query, zap.String("dp.neighbour", f.Neighbour), zap.String("dp.reason", f.Reason))
	case finding.EngineDrift:
		if f.over() {
			return "the shadow database runs the same function as production again, or no audited query calls it any more", []zap.Field{zap.String("dp.function", f.Function)}
		}
		return "the shadow database runs another function than production: audits of queries that call it are inconclusive", append(query, zap.String("dp.function", f.Function))
	}
	text = "privacy violation"
	if f.over() {
		text += " " + string(f.Status)
	}
	return text, append(query, f.violation()...)
}

// violation returns the log fields of a violation alone.
func (f *Finding) violation() []zap.Field {
	fields := []zap.Field{
		zap.String("dp.finding.status", string(cmp.Or(f.Status, finding.Open))),
		zap.String("dp.neighbour", f.Neighbour),
		zap.Float64("dp.epsilon.claimed", f.Epsilon),
		zap.Float64("dp.delta", f.Delta),
		zap.String("dp.claim.source", f.Source),
		zap.Int("dp.trials.d0", f.TrialsD0),
		zap.Int("dp.trials.d1", f.TrialsD1),
	}
	fields = append(fields, f.Event.fields()...)
	if f.Kind != finding.Deterministic {
		fields = append(fields, zap.Float64("dp.epsilon.lower_bound", f.Lower), zap.Float64("dp.confidence", f.Confidence))
		for name, v := range map[string]float64{"dp.epsilon.estimate": f.Estimate, "dp.attacker.posterior_odds": f.Odds} {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				fields = append(fields, zap.Float64(name, v))
			}
		}
	}
	for _, t := range []struct{ name, value string }{
		{"dp.route", f.Route}, {"dp.claim.curve", string(f.Curve)}, {"dp.finding.line", f.Line.String()}, {"dp.reason", f.Reason}, {"db.query.text", f.SQL},
	} {
		if t.value != "" {
			fields = append(fields, zap.String(t.name, t.value))
		}
	}
	if c := f.Change; c != nil {
		fields = append(fields, zap.Time("dp.engine.changed", c.At), zap.Strings("dp.engine.functions", c.Functions))
	}
	return fields
}
