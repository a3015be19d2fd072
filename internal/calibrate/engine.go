package calibrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/pg/connect"
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

// Engine audits every function of an engine on tables that it creates in two schemas of the engine's database and drops again.
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
	player, err := newPlayer(o.DSN, o.SearchPath, o.Timeout)
	if err != nil {
		return nil, err
	}
	t, err := makeSchemas(ctx, conn)
	defer func() { err = errors.Join(err, t.drop(context.WithoutCancel(ctx))) }()
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
	for _, f := range o.Functions {
		for _, rows := range o.Rows {
			for _, epsilon := range o.Epsilons {
				for _, outside := range []bool{false, true} {
					if outside && (f.Kind == Count || o.Within) {
						continue
					}
					all = append(all, Case{Function: f.Kind, Template: f.Template, Epsilon: epsilon, Rows: rows, Outside: outside, function: f})
				}
			}
		}
	}
	return all
}

// run executes a case: first for the goodness of fit, which also shows errors of the query, and then in an audit.
func (b *battery) run(ctx context.Context, c *Case) error {
	d := newData(c.Rows, c.Outside, b.o.Lower, b.o.Upper)
	names, err := b.tables.load(ctx, d, c.Outside)
	if err != nil {
		return err
	}
	worlds := []string{c.function.sql(c, b.o, names[0]), c.function.sql(c, b.o, names[1])}
	c.SQL = worlds[0]
	noise, err := residuals(ctx, b.reader, c.SQL, b.o.FitTrials, d.truth(c.Function))
	if err != nil {
		return err
	}
	if len(noise) > 0 {
		if c.Fit, err = fit(c.Function, d, c.Epsilon, b.o.Delta, noise); err != nil {
			return err
		}
	}
	r, err := b.audits.run(ctx, worlds, analysis.Claim{Epsilon: c.Epsilon, Delta: b.o.Delta}, false)
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
