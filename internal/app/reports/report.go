package reports

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/findings"
	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/chart"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/plot"
	"github.com/dpwatch/dpwatch/internal/read"
	reports "github.com/dpwatch/dpwatch/internal/report"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Options are the flags of dpwatch report.
type Options struct {
	Config string
	ID     string // the beginning of an audit's id or key; "" = all audits
	// Since and Until bound the period; zero = ever and now. With a period, the report has the coverage and the
	// budgets.
	Since, Until time.Time
	Reveal       bool     // show the values of rows, and statements with their literals
	Formats      []string // of Formats
	Key          string   // path of the private key; "" = the manifest is not signed
	Dir          string   // that is made for the files
}

// Formats are the formats of reports.
func Formats() []string { return []string{"html", "json", "sarif"} }

// Report is the contents of a report. Its JSON form is a contract with scripts.
type Report struct {
	Created  time.Time          `json:"created"`
	Version  string             `json:"dpwatch_version"`
	Since    *time.Time         `json:"since"` // null = ever
	Until    time.Time          `json:"until"`
	Revealed bool               `json:"revealed"`
	Audits   []ReportAudit      `json:"audits"`
	Findings []read.Explanation `json:"findings"` // of the violations, or of the audit that was asked for
	// OtherEngines are audits in the ledger of engines that the configuration does not have; they are not in the
	// report.
	OtherEngines int                 `json:"audits_of_other_engines"`
	Errors       []ErrorRate         `json:"error_rates"`
	Accepted     []ledger.Acceptance `json:"accepted"`
	Reached      []ledger.Reached    `json:"verdicts_reached,omitempty"` // in the period
	Coverage     []records.Coverage  `json:"coverage,omitempty"`         // of each engine
	Budgets      []records.Budgets   `json:"budgets,omitempty"`          // of each engine, now

	config         string // path
	key            string // fingerprint of the public key; "" = the manifest is not signed
	one            bool   // audit
	sarif          bool   // is one of the formats
	plots          [][]chart.Figure
	postgresql     map[string]string
	configurations map[string]string // hashes
	configs        map[string]config.Config
}

// ReportAudit is a line of a report, and of its manifest.
type ReportAudit struct {
	reports.Audit
	Summary    string    `json:"summary"`
	Executions int64     `json:"executions"`
	LastSeen   time.Time `json:"last_seen"`
	Accepted   bool      `json:"accepted"`

	stored read.Audit        // without its evidence
	open   *read.Explanation // of an audit without a conclusion, with its evidence, for SARIF; nil = not read
}

// ErrorRate is what the false alarms of the audits in a ledger are bounded by.
type ErrorRate struct {
	Engine      string            `json:"engine"`
	Rule        string            `json:"error_rate"`   // audit.error_rate
	Alpha       float64           `json:"alpha"`        // 1 - audit.confidence
	Begun       int               `json:"begun"`        // processes of evidence in the ledger, ever
	Reported    int               `json:"reported"`     // of these, those that ended in a violation
	FalseAlarms *read.FalseAlarms `json:"false_alarms"` // measured on identical data; null = no control audit is decided
}

// reportedAudits bounds the audits of a report.
const reportedAudits = 100_000

// New reads the contents of a report from the ledgers of a configuration.
func New(ctx context.Context, env setup.Environment, o Options) (*Report, error) {
	if err := o.checkFiles(); err != nil {
		return nil, err
	}
	c, _, err := setup.Load(env, o.Config)
	if err != nil {
		return nil, err
	}
	r := &Report{
		Created: time.Now().UTC(), Version: setup.Version, Until: o.Until, Revealed: o.Reveal || c.Log.ShowsSQL(), config: o.Config, one: o.ID != "",
		sarif:      slices.Contains(o.Formats, "sarif"),
		postgresql: map[string]string{}, configurations: map[string]string{}, configs: map[string]config.Config{},
		Audits: []ReportAudit{}, Findings: []read.Explanation{}, Errors: []ErrorRate{}, Accepted: []ledger.Acceptance{},
	}
	if r.Until.IsZero() || r.Until.After(r.Created) {
		r.Until = r.Created
	}
	if !o.Since.IsZero() {
		r.Since = &o.Since
	}
	if r.one {
		l, s, err := records.FindInLedgers(ctx, c, o.ID)
		if err != nil {
			return nil, err
		}
		defer l.Close()
		return r, r.add(ctx, env, c, l, []read.Stored{s}, o.Reveal)
	}
	for _, one := range setup.Ledgers(c) {
		if err := r.read(ctx, env, c, one, o.Reveal); err != nil {
			return nil, err
		}
	}
	if r.Since == nil {
		return r, nil
	}
	r.Reached = slices.DeleteFunc(r.Reached, func(x ledger.Reached) bool {
		_, ours := r.configurations[x.Engine]
		return !ours
	})
	return r, r.readPeriod(ctx, c)
}

// read adds the audits of a ledger.
func (r *Report) read(ctx context.Context, env setup.Environment, c, one config.Config, reveal bool) error {
	l, err := records.Open(ctx, one)
	if err != nil {
		return err
	}
	defer l.Close()
	var all []read.Stored
	if r.Since == nil {
		all, err = l.Stored(ctx, "", reportedAudits)
	} else {
		all, err = l.Concerned(ctx, *r.Since, r.Until, reportedAudits)
	}
	if err != nil {
		return err
	}
	if len(all) == reportedAudits {
		return fmt.Errorf("report: more than %d audits: give a shorter period with --since and --until", reportedAudits-1)
	}
	if r.Since != nil {
		reached, err := l.Reached(ctx, *r.Since, r.Until)
		if err != nil {
			return err
		}
		r.Reached = append(r.Reached, reached...)
	}
	if err := r.add(ctx, env, c, l, all, reveal); err != nil {
		return err
	}
	for _, own := range c.AllEngines() { // without audits as well
		if own.LedgerDSN() == one.LedgerDSN() {
			if err := r.addEngine(ctx, own, own.EngineName(), l); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds audits of a ledger, and their engines.
func (r *Report) add(ctx context.Context, env setup.Environment, c config.Config, l *ledger.Ledger, all []read.Stored, reveal bool) error {
	for _, s := range all {
		own, err := setup.EngineOf(c, s.Engine)
		if err != nil && !r.one {
			r.OtherEngines++
			continue
		}
		if err != nil {
			return err
		}
		row := reportAudit(&s)
		switch {
		case r.one || row.Verdict == string(analysis.Violation):
			err = r.explain(ctx, env, own, l, s, &row, reveal)
		case r.sarif && row.Verdict == string(analysis.Inconclusive):
			var x read.Explanation
			x, _, err = findings.ExplainAudit(ctx, env, own, l, s, false)
			row.open = &x
		}
		if err != nil {
			return fmt.Errorf("report: audit %s: %w", s.ID(), err)
		}
		r.Audits = append(r.Audits, row)
		if err := r.addEngine(ctx, own, s.Engine, l); err != nil {
			return err
		}
	}
	return nil
}

func reportAudit(s *read.Stored) ReportAudit {
	f := s.Former()
	row := ReportAudit{stored: s.Audit(), Summary: s.Summary, Executions: s.Executions, LastSeen: s.LastSeen.UTC(), Accepted: s.Accepted != nil && s.Accepted.Until != nil && s.Accepted.Until.After(time.Now())}
	row.Audit = reports.Audit{
		ID: s.ID(), Key: s.Key, Engine: s.Engine, Verdict: f.Verdict, Epsilon: s.Epsilon, Delta: s.Delta, Curve: string(s.Curve), Source: s.Source, Lower: show.Finite(float64(f.Lower)),
		Trials: f.Trials, Begun: s.Begun, DataEpoch: s.DataEpoch, EngineEpoch: s.EngineEpoch,
	}
	if row.Verdict == "" {
		row.Verdict = ledger.Untried
	}
	return row
}

// explain adds the answers about an audit with its plots.
func (r *Report) explain(ctx context.Context, env setup.Environment, c config.Config, l *ledger.Ledger, s read.Stored, row *ReportAudit, reveal bool) error {
	x, stored, err := findings.ExplainAudit(ctx, env, c, l, s, reveal)
	if err != nil {
		return err
	}
	if stored.Progress != nil {
		row.Evidence = reports.Hash(stored.Progress)
	}
	if c := x.Audit.Result().Confidence; c > 0 {
		row.Confidence = &c
	}
	var plots []chart.Figure
	figures, err := saved.ReadFigures(&stored)
	if err == nil {
		if figures.Seed != 0 {
			row.Seeds = []uint64{figures.Seed}
		}
		for _, drawn := range plot.Draw(figures.Figures, x.Audit.Result(), reveal || c.Log.ShowsValues()) {
			plots = append(plots, drawn.Figure)
		}
	} else {
		x.Notes = append(x.Notes, "the charts cannot be drawn: "+withheld.Reveal(err))
	}
	r.Findings, r.plots = append(r.Findings, x), append(r.plots, plots)
	return nil
}

// addEngine adds what a report has once for each engine.
func (r *Report) addEngine(ctx context.Context, c config.Config, name string, l *ledger.Ledger) error {
	if _, known := r.configurations[name]; known {
		return nil
	}
	version, err := l.ServerVersion(ctx)
	if err != nil {
		return err
	}
	r.postgresql["ledger of "+name], r.postgresql["shadow of "+name] = version, shadowVersion(ctx, c)
	r.configs[name] = c
	r.configurations[name] = setup.ConfigurationHash(c)
	fleet, err := l.Fleet(ctx)
	if err != nil {
		return err
	}
	measured, err := l.FalseAlarms(ctx, name)
	if err != nil {
		return err
	}
	r.Errors = append(r.Errors, ErrorRate{name, c.Audit.ErrorRate, 1 - c.Audit.Confidence, fleet.Begun, fleet.Reported, measured})
	accepted, err := l.Acceptances(ctx, name)
	if r.one {
		accepted = slices.DeleteFunc(accepted, func(a ledger.Acceptance) bool {
			return !slices.ContainsFunc(r.Audits, func(x ReportAudit) bool { return x.Key == a.Key })
		})
	}
	r.Accepted = append(r.Accepted, accepted...)
	return err
}

// readPeriod adds the coverage and the budgets of the engines of a configuration.
func (r *Report) readPeriod(ctx context.Context, c config.Config) error {
	for _, one := range c.AllEngines() {
		l, err := records.Open(ctx, one)
		if err != nil {
			return err
		}
		v, err := l.VolumesUntil(ctx, one.EngineName(), *r.Since, &r.Until)
		l.Close()
		if err != nil {
			return err
		}
		v.Samples = nil // a report is for readers who do not need to see who sent which statement
		r.Coverage = append(r.Coverage, records.NewCoverage(v, r.Until))
		b, err := records.ReadBudgets(ctx, one)
		if err != nil {
			return err
		}
		r.Budgets = append(r.Budgets, b)
	}
	return nil
}

// manifest returns the manifest without files and signature.
func (r *Report) manifest() reports.Manifest {
	m := reports.Manifest{
		Format: reports.Format, Created: r.Created, Version: r.Version, PostgreSQL: r.postgresql, Configurations: r.configurations, Since: r.Since, Until: r.Until,
		Revealed: r.Revealed, Verdicts: r.verdicts(), Audits: []reports.Audit{}, Files: []reports.File{},
	}
	for _, a := range r.Audits {
		m.Audits = append(m.Audits, a.Audit)
	}
	return m
}

func (r *Report) verdicts() map[string]int {
	counts := map[string]int{}
	for _, a := range r.Audits {
		counts[a.Verdict]++
	}
	return counts
}

// engines returns the names of the engines, sorted.
func (r *Report) engines() []string { return slices.Sorted(maps.Keys(r.configurations)) }

var errReportScope = errors.New("give the ID of an audit, --all, or a period: --period 30d, or --since with --until")

// Check returns an error if the flags contradict each other.
func (o *Options) Check(all bool) error {
	period := !o.Since.IsZero() || !o.Until.IsZero()
	switch {
	case (o.ID != "") == (all || period), all && period:
		return errReportScope
	case o.Since.IsZero() && !o.Until.IsZero():
		return errors.New("--until needs --since")
	case period && !o.Until.IsZero() && !o.Until.After(o.Since):
		return errors.New("--until must be after --since")
	case o.Since.After(time.Now()):
		return errors.New("--since is in the future")
	}
	return nil
}
