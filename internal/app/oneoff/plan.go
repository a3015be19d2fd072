package oneoff

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/read"
)

// AuditPlan is what dpwatch audit would do. Its JSON form is a contract with scripts.
type AuditPlan struct {
	Claimed analysis.Claimed `json:"claimed"`
	// Queries is the number of statements of a sequence, 0 for a single query.
	Queries    int                     `json:"queries,omitempty"`
	Neighbours map[string]read.SQLPair `json:"neighbours"` // what is replayed, by the neighbour's schema
	Protocol   string                  `json:"protocol"`
	Hoist      bool                    `json:"hoist"` // trials may reuse the deterministic part of the query
	// The largest numbers of executions on D0: of the first trials, of a confirmation if they show a violation, of its
	// measurement, and of the comparison of latencies. Each neighbour has at most as many.
	FirstTrials  int `json:"first_trials"`
	Confirmation int `json:"confirmation"`
	// Control is the largest number of executions on D0 and on its twin, which come before a confirmation; 0 = there is no
	// twin.
	Control     int `json:"control"`
	Measurement int `json:"measurement"`
	Latencies   int `json:"latencies"`
	// Infeasible says why no trial would be run; empty = they would.
	Infeasible string `json:"infeasible,omitempty"`
}

// Plan checks and rewrites a query like Audit, and executes it on no copy.
func Plan(ctx context.Context, env setup.Environment, o Options) (AuditPlan, error) {
	f, err := o.load(env)
	if err != nil {
		return AuditPlan{}, err
	}
	if f.Recreate {
		return AuditPlan{}, errors.New("--dry-run makes no copies: leave out --recreate, which replays the same statements")
	}
	a, err := f.prepare(ctx, env, Progress{}, false)
	if err != nil {
		return AuditPlan{}, err
	}
	claim, s := a.claimed(), &a.statement
	p := AuditPlan{
		Claimed: analysis.Claimed{Epsilon: analysis.Float(claim.Epsilon), Delta: claim.Delta, Curve: claim.Curve, Source: a.claim.Source}, Queries: a.queries(),
		Neighbours: map[string]read.SQLPair{}, Protocol: f.Protocol, Hoist: s.Hoist != nil,
		FirstTrials: a.MaxTrials, Confirmation: 2 * a.MaxTrials, Measurement: f.Measure, Latencies: f.Timing,
	}
	for i, schema := range f.D1 {
		p.Neighbours[schema] = read.SQLPair{D0: s.Text(0), D1: s.Text(i + 1)}
	}
	if a.twin != nil {
		p.Control = 2 * a.MaxTrials
		if a.renewable() {
			p.Control *= 2
		}
	}
	if _, err := step.Evidence(claim, a.analysisOptions(), a.statement); err != nil {
		p.Infeasible = err.Error()
	}
	return p, nil
}

// Write writes the plan as text.
func (p AuditPlan) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, "Nothing was executed. An audit would replay this:")
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("claimed", "%s", read.ClaimedText(p.Claimed))
	shown := false
	for _, schema := range slices.Sorted(maps.Keys(p.Neighbours)) {
		pair := p.Neighbours[schema]
		if !shown {
			row("D0", "%s", pair.D0)
			shown = true
		}
		row("D1 "+schema, "%s", pair.D1)
	}
	row("protocol", "%s", p.Protocol)
	row("executions", "at most %d on D0 and on each neighbour, and if they show a violation at most %d to confirm it and %d to measure it", p.FirstTrials, p.Confirmation, p.Measurement)
	if p.Control > 0 {
		row("control", "at most %d on D0 and on its twin before a confirmation", p.Control)
	}
	if p.Latencies > 0 {
		row("latencies", "of %d pairs after the verdict", p.Latencies)
	}
	row("hoisting", "%t", p.Hoist)
	if p.Infeasible != "" {
		row("but", "%s", p.Infeasible)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, show.Printable(b.String()))
	return err
}
