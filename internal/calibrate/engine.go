package calibrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/replay"
)

// Options are those of the battery for an engine.
type Options struct {
	DSN          string
	SearchPath   []string
	Functions    []Function
	Epsilons     []float64
	Delta        float64
	Rows         []int   // of D0; D1 has one row less
	Lower, Upper float64 // bounds of values
	Within       bool    // no value is outside of its bounds
	Confidence   float64 // of all audits together
	MaxTrials    int     // pairs of an audit
	FitTrials    int     // executions for the goodness of fit
	Timeout      time.Duration
	// Progress is called after each case; may be nil.
	Progress func(done, all int)
}

// Case is one function with one epsilon on one pair of tables.
type Case struct {
	Function Kind    `json:"function"`
	Template string  `json:"template"`
	Epsilon  float64 `json:"epsilon"`
	Rows     int     `json:"rows"`
	Outside  bool    `json:"outside"` // the person's value is outside of the bounds
	Calls    int     `json:"calls"`   // 2: a second call in the same session, on the other rows; it shows noise that is used again
	SQL      string  `json:"sql"`     // on D0

	Verdict      analysis.Verdict `json:"verdict"`
	Reason       string           `json:"reason"`
	EpsilonLower analysis.Float   `json:"epsilon_lower"`
	Pairs        int              `json:"pairs"`
	Cause        string           `json:"cause,omitempty"`
	Page         string           `json:"page,omitempty"`
	Finding      string           `json:"finding,omitempty"`
	Fit          *Fit             `json:"fit"` // nil = there is no law to compare with, or an answer is no number

	function Function
}

// battery is the state of a calibration.
type battery struct {
	o      *Options
	tables *tables
	reader *pgx.Conn // read-only, like trials
	audits auditor
}

// Engine audits every function of an engine on tables that it creates in two schemas of the engine's database and drops
// again.
func Engine(ctx context.Context, o Options) (r *Report, err error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	conn, err := connect.Open(ctx, o.DSN, connect.Options{Application: "dpwatch calibrate"})
	if err != nil {
		return nil, fmt.Errorf("connect to the engine: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	reader, err := connect.Open(ctx, o.DSN, connect.Options{Application: "dpwatch calibrate", ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("connect to the engine: %w", err)
	}
	defer reader.Close(context.WithoutCancel(ctx))
	if _, err := reader.Exec(ctx, "select set_config('search_path', $1, false), set_config('statement_timeout', $2, false)", path(o.SearchPath), fmt.Sprint(o.Timeout.Milliseconds())); err != nil {
		return nil, fmt.Errorf("set search_path and statement_timeout: %w", err)
	}
	t, err := makeSchemas(ctx, conn)
	defer func() { err = errors.Join(err, t.drop(context.WithoutCancel(ctx))) }()
	if err != nil {
		return nil, err
	}
	player, err := newPlayer(o.DSN, t.schemas, o.SearchPath, o.Timeout)
	if err != nil {
		return nil, err
	}
	cases := o.cases()
	b := &battery{o: &o, tables: t, reader: reader, audits: auditor{player, t.schemas, 1 - (1-o.Confidence)/float64(len(cases)), o.MaxTrials}}
	r = &Report{Confidence: o.Confidence, Delta: o.Delta, Cases: cases}
	for i := range cases {
		if err := b.run(ctx, &cases[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", cases[i].name(), err)
		}
		if o.Progress != nil {
			o.Progress(i+1, len(cases))
		}
	}
	return r, nil
}

// cases lists the audits.
func (o *Options) cases() (all []Case) {
	epsilons := slices.Sorted(slices.Values(o.Epsilons))
	for _, f := range o.Functions {
		for _, rows := range o.Rows {
			for _, epsilon := range o.Epsilons {
				for _, outside := range []bool{false, true} {
					if outside && (f.Kind == Count || o.Within) {
						continue
					}
					all = append(all, Case{Function: f.Kind, Template: f.Template, Epsilon: epsilon, Rows: rows, Outside: outside, Calls: 1, function: f})
				}
			}
		}
		if rows := slices.Max(o.Rows); rows > 1 {
			all = append(all, Case{Function: f.Kind, Template: f.Template, Epsilon: epsilons[len(epsilons)/2], Rows: rows, Calls: 2, function: f})
		}
	}
	return all
}

// secondCallTrials bounds the pairs of an audit with two calls: each trial has a session of its own, and noise that is
// used again shows at once.
const secondCallTrials = 500

// statement loads the tables of a case and returns what is audited. The rows of a second call lack the person in both
// worlds, so that it costs no epsilon.
func (b *battery) statement(ctx context.Context, c *Case, d data) (s replay.Statement, err error) {
	name, person := fmt.Sprintf("rows_%d", c.Rows), [2][]float64{d.values, d.values[1:]}
	if c.Outside {
		name += "_outside"
	}
	if s.Worlds, err = b.texts(ctx, c, name, person); err != nil {
		return s, err
	}
	c.SQL = s.Worlds[0]
	if c.Calls == 1 {
		return s, nil
	}
	second, err := b.texts(ctx, c, name+"_others", [2][]float64{d.values[1:], d.values[1:]})
	if err != nil {
		return s, err
	}
	c.SQL += "; " + second[0]
	s.Then = []replay.Step{{Worlds: second}}
	return s, nil
}

// texts returns the query of a case on a table of each world.
func (b *battery) texts(ctx context.Context, c *Case, name string, values [2][]float64) (worlds []string, err error) {
	names, err := b.tables.load(ctx, name, values)
	for _, table := range names {
		worlds = append(worlds, c.function.sql(c, b.o, table))
	}
	return worlds, err
}

// fit sets how well the noise of a case fits.
func (b *battery) fit(ctx context.Context, c *Case, d data) error {
	noise, err := residuals(ctx, b.reader, c.SQL, b.o.FitTrials, d.truth(c.Function))
	if err != nil || len(noise) == 0 {
		return err
	}
	c.Fit, err = fit(c.Function, d, c.Epsilon, b.o.Delta, noise)
	return err
}

// run executes a case: first for the goodness of fit, which also shows errors of the query, and then in an audit.
func (b *battery) run(ctx context.Context, c *Case) error {
	d := newData(c.Rows, c.Outside, b.o.Lower, b.o.Upper)
	s, err := b.statement(ctx, c, d)
	if err != nil {
		return err
	}
	audits := b.audits
	if c.Calls > 1 {
		audits.maxTrials = min(audits.maxTrials, secondCallTrials)
	} else if err = b.fit(ctx, c, d); err != nil {
		return err
	}
	r, err := audits.run(ctx, s, zooQuery{}, analysis.Claim{Epsilon: c.Epsilon, Delta: b.o.Delta})
	if err != nil {
		return err
	}
	c.Verdict, c.Reason, c.EpsilonLower, c.Pairs = r.Verdict, r.Reason, r.EpsilonLower, r.Trials.D0
	if f := r.Finding; f != nil {
		revealed := f.Reveal()
		c.Finding = revealed.Line.String()
		if len(f.Causes) > 0 {
			c.Cause, c.Page = f.Causes[0].Name, f.Causes[0].Page
		}
	}
	return nil
}
