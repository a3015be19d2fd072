package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/showcase"
	"github.com/dpwatch/dpwatch/internal/zoo"
	"github.com/dpwatch/dpwatch/replay"
)

// ZooOptions are those of the calibration of the auditor.
type ZooOptions struct {
	DSN        string
	Runs       int // audits of each query, hoisted and not
	MaxTrials  int
	Confidence float64 // of one audit
	Timeout    time.Duration
	// Only names the queries that are audited; nil = all.
	Only []string
	// Progress is called after each audit; may be nil.
	Progress func(done, all int)
}

// Row is the audits of one query, hoisted or not.
type Row struct {
	Name       string `json:"name"`
	SQL        string `json:"sql"`
	Right      bool   `json:"right"` // keeps its claim
	Hoisted    bool   `json:"hoisted"`
	Runs       int    `json:"runs"`
	Violations int    `json:"violations"` // audits with this verdict
	// Lower and Upper are the interval of the rate of violations, exact with the confidence 99 %.
	Lower float64 `json:"rate_lower"`
	Upper float64 `json:"rate_upper"`
	// Of a wrong query. Median is of the pairs to detection, null unless at least half of the audits found it. Limit is
	// what the best auditor who knows both laws needs on average, null if it is not known. CauseFirst counts the audits
	// whose first cause is the right one.
	Median     analysis.Float `json:"median_pairs"`
	Limit      analysis.Float `json:"limit_pairs"`
	Cause      string         `json:"cause,omitempty"`
	CauseFirst int            `json:"cause_first"`

	pairs []int
	query zooQuery
}

// zooQuery is what the text of a query says to the analysis.
type zooQuery struct {
	sorted    bool      // it determines the order of its rows
	constants []float64 // with which it calculates
}

// intervalAlpha is the error rate of the intervals of a report.
const intervalAlpha = .01

// Zoo audits right and wrong mechanisms on a database in which it creates schemas, and drops these again. The role must
// be a superuser.
func Zoo(ctx context.Context, o ZooOptions) (r *ZooReport, err error) {
	if o.Runs < 1 || o.MaxTrials < 1 || !(o.Confidence > .5 && o.Confidence < 1) {
		return nil, fmt.Errorf("%d runs of %d trials at the confidence %g: runs and trials must be at least 1, and the confidence between 0.5 and 1", o.Runs, o.MaxTrials, o.Confidence)
	}
	conn, err := connect.Open(ctx, o.DSN, connect.Options{Application: "dpwatch calibrate"})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	t, err := makeSchemas(ctx, conn)
	defer func() { err = errors.Join(err, t.drop(context.WithoutCancel(ctx))) }()
	if err != nil {
		return nil, err
	}
	functions, err := fillZoo(ctx, conn, t)
	if err != nil {
		return nil, err
	}
	player, err := newPlayer(o.DSN, t.schemas[:2], []string{functions}, o.Timeout)
	if err != nil {
		return nil, err
	}
	z := zooAudits{auditor{player, t.schemas[:2], o.Confidence, o.MaxTrials}}
	r = &ZooReport{Confidence: o.Confidence, MaxTrials: o.MaxTrials, Rows: zooRows(o.Only)}
	all := len(r.Rows) * o.Runs
	for i := range r.Rows {
		for j := range o.Runs {
			if err := z.add(ctx, &r.Rows[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", r.Rows[i].Name, err)
			}
			if o.Progress != nil {
				o.Progress(i*o.Runs+j+1, all)
			}
		}
		r.Rows[i].conclude(o.Confidence)
	}
	return r, nil
}

// fillZoo loads the data, and installs the functions in a third schema, whose name it returns.
func fillZoo(ctx context.Context, conn *pgx.Conn, t *tables) (functions string, err error) {
	d := showcase.Generate(showcase.Seed)
	for i, data := range []showcase.Data{d, d.Without(showcase.HeavyUser)} {
		if err := showcase.Load(ctx, conn, t.schemas[i], data); err != nil {
			return "", err
		}
	}
	functions = strings.TrimSuffix(t.schemas[0], "d0") + "functions"
	if err := zoo.Install(ctx, conn, functions); err != nil {
		return "", err
	}
	t.schemas = append(t.schemas, functions)
	return functions, nil
}

// zooRows lists the queries, each hoisted and not.
func zooRows(only []string) (rows []Row) {
	add := func(r Row) {
		if len(only) > 0 && !slices.Contains(only, r.Name) {
			return
		}
		for _, hoisted := range []bool{false, true} {
			r.Hoisted = hoisted
			rows = append(rows, r)
		}
	}
	for _, m := range zoo.Mechanisms() {
		if m.Honest {
			add(Row{Name: m.Name, SQL: m.SQL, Right: true})
		}
	}
	for _, m := range zoo.Mistakes() {
		add(Row{Name: m.Name, SQL: m.SQL, Cause: m.Cause, query: zooQuery{m.Sorted(), m.Constants()}})
	}
	return rows
}

type zooAudits struct{ auditor }

// add audits a query once.
func (z *zooAudits) add(ctx context.Context, r *Row) error {
	worlds := make([]string, len(z.schemas))
	for i, schema := range z.schemas {
		worlds[i] = strings.NewReplacer("FROM users", "FROM "+schema+".users", "FROM transactions", "FROM "+schema+".transactions").Replace(r.SQL)
	}
	s := replay.Statement{Worlds: worlds}
	if r.Hoisted {
		s.Hoist = replay.NewHoisting(nil)
	}
	found, err := z.run(ctx, s, r.query, analysis.Claim{Epsilon: 1})
	if err != nil {
		return err
	}
	r.Runs++
	if found.Verdict != analysis.Violation {
		r.pairs = append(r.pairs, math.MaxInt)
		return nil
	}
	r.Violations++
	pairs := found.Trials.D0 // of answers that never vary
	if found.DetectedAt != nil {
		pairs = *found.DetectedAt
	}
	r.pairs = append(r.pairs, pairs)
	if f := found.Finding; f != nil && len(f.Causes) > 0 && string(f.Causes[0].Code) == r.Cause {
		r.CauseFirst++
	}
	return nil
}

// conclude sets the figures of all audits of a row.
func (r *Row) conclude(confidence float64) {
	r.Lower, r.Upper = analysis.ClopperPearson(r.Violations, r.Runs, intervalAlpha)
	r.Median, r.Limit = analysis.Float(math.NaN()), analysis.Float(math.NaN())
	if r.Right {
		return
	}
	r.Limit = analysis.Float(limit(r.Name, confidence))
	slices.Sort(r.pairs)
	if median := r.pairs[(len(r.pairs)-1)/2]; median < math.MaxInt {
		r.Median = analysis.Float(median)
	}
}
