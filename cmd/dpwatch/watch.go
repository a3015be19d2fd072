package main

import (
	"crypto/rand"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/plot"
	"github.com/dpwatch/dpwatch/internal/withheld"
	"github.com/dpwatch/dpwatch/replay"
)

// watch is the evidence of one dpwatch audit.
type watch struct {
	*audit.Evidence
	trials int
	failed map[string]int // trials by SQLSTATE
}

// newWatch shares the error rate among the neighbours: that is sound although they share the trials on D0.
func newWatch(f auditFlags, worlds []string) (*watch, error) {
	opt := analysis.Options{
		Confidence: 1 - (1-f.confidence)/float64(len(worlds)-1), MaxTrials: f.maxTrials, Salt: rand.Text(),
		Deterministic: analysis.DeterministicPolicy(f.deterministic), Unordered: !f.sorted,
	}
	if f.cfg != nil {
		opt.PriorOdds, opt.BreachOdds = f.cfg.Audit.PriorOdds, f.cfg.Audit.BreachOdds
	}
	evidence, err := audit.NewEvidence(analysis.Claim{Epsilon: f.epsilon, Delta: f.delta}, opt, len(worlds)-1)
	return &watch{Evidence: evidence, failed: map[string]int{}}, err
}

func (w *watch) add(round replay.Round) {
	for i := range round {
		w.trials++
		if round[i].Failed() {
			w.failed[round[i].SQLState]++
		}
	}
	w.Add(round)
}

// conclude reports on the neighbour that shows most, and draws its figures into --plot.
func (w *watch) conclude(f auditFlags, worlds []string) (conclusion, error) {
	c, worst := w.worst(f, worlds)
	if f.plot != "" {
		if _, err := plot.Write(f.plot, worst.Figures()); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (w *watch) worst(f auditFlags, worlds []string) (conclusion, *analysis.Audit) {
	var c conclusion
	worst := -1
	for i := range f.d1 {
		r := w.Report(i)
		r.Claimed.Source = f.source
		c.Neighbours = append(c.Neighbours, audit.Neighbour{
			Schema: f.d1[i], Verdict: r.Verdict, Lower: r.EpsilonLower, Estimate: r.EpsilonEstimate,
		})
		if worst < 0 || audit.Worse(r, c.Report) {
			worst, c.Report = i, r
		}
	}
	for state, n := range w.failed {
		if n == w.trials {
			c.Warnings = append(c.Warnings, withheld.Sprintf("every trial failed with SQLSTATE %s: try the query with psql in the shadow database, as the replay role", state))
		}
	}
	c.Neighbour = f.d1[worst]
	c.SQL = &audit.SQLPair{D0: worlds[0], D1: worlds[worst+1]}
	return c, w.Audit(worst)
}
