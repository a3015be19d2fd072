// Package alert tells people about findings: a log line and metrics.
//
// It owns the shape of an alert and where it goes. It does not decide what is a violation (package analysis
// does) nor when to look (package audit does). In: a Finding. Out: one zap line a finding, and counters.
// A Finding holds no SQL literals and shows no values of rows unless the operator asked for them.
package alert

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Finding is one violation, in words and figures.
type Finding struct {
	ID         string // of the audit: the first 12 hex digits of its key
	Group      string // pg_query fingerprint: the same statement with other constants shares it
	Summary    string // the statement without its literals
	User       string
	Database   string
	Neighbour  string // the D1 schema
	Route      string // the engine, where there are several
	Epsilon    float64
	Delta      float64
	Source     string // where the claim was found
	Lower      float64
	Estimate   float64 // NaN where there is none
	Confidence float64
	// Deterministic: the answers never vary and differ between the worlds. No epsilon follows from that: Lower and Estimate mean nothing.
	Deterministic bool
	Event         Event
	Reason        string
	TrialsD0      int
	TrialsD1      int
	Odds          float64 // the attacker's posterior odds after the event; NaN where there are none
	SQL           string  // with literals; empty unless allowed
}

// Event is what tells the two datasets apart, in words and for programs; see analysis.Event. The zero Event is none.
type Event struct {
	Description withheld.Text
	Partition   withheld.Text
	Kind        string
	Column      string
	Tail        string
	Direction   string
	D0, D1      float64 // its estimated probability in each world
}

// fields are an Event's own; texts that are empty are left out.
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

// kind returns epsilon, or deterministic where no epsilon follows.
func (f Finding) kind() string {
	if f.Deterministic {
		return "deterministic"
	}
	return "epsilon"
}

// Sender takes findings.
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
		zap.String("dp.neighbour", f.Neighbour),
		zap.Float64("dp.epsilon.claimed", f.Epsilon),
		zap.Float64("dp.delta", f.Delta),
		zap.String("dp.claim.source", f.Source),
		zap.String("dp.finding.kind", f.kind()),
		zap.Int("dp.trials.d0", f.TrialsD0),
		zap.Int("dp.trials.d1", f.TrialsD1),
	}
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
	if f.Reason != "" {
		fields = append(fields, zap.String("dp.reason", f.Reason))
	}
	if f.SQL != "" {
		fields = append(fields, zap.String("db.query.text", f.SQL))
	}
	s.log.Error("privacy violation", fields...)
	s.sent.WithLabelValues("log").Inc()
}
