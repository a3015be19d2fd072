package main

import (
	"crypto/rand"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/plot"
	"github.com/dpwatch/dpwatch/internal/withheld"
	"github.com/dpwatch/dpwatch/replay"
)

// watch is the evidence of one dpwatch audit: every neighbour against the same trials on D0.
type watch struct {
	audits []*analysis.Audit
	drifts []analysis.Drift // of D0 and of each neighbour

	trials int
	failed map[string]int // trials by SQLSTATE
}

// newWatch shares the error rate among the neighbours: that is sound although they share the trials on D0.
func newWatch(f auditFlags, worlds []string) (*watch, error) {
	w := &watch{drifts: make([]analysis.Drift, len(worlds)), failed: map[string]int{}}
	opt := analysis.Options{Confidence: 1 - (1-f.confidence)/float64(len(worlds)-1), MaxTrials: f.maxTrials, Salt: rand.Text()}
	if f.cfg != nil {
		opt.PriorOdds, opt.BreachOdds = f.cfg.Audit.PriorOdds, f.cfg.Audit.BreachOdds
	}
	for range worlds[1:] {
		a, err := analysis.New(analysis.Claim{Epsilon: f.epsilon, Delta: f.delta}, opt)
		if err != nil {
			return nil, err
		}
		w.audits = append(w.audits, a)
	}
	return w, nil
}

func (w *watch) add(round replay.Round) {
	for i := range w.drifts {
		w.drifts[i].Add(round[i])
		w.trials++
		if round[i].Failed() {
			w.failed[round[i].SQLState]++
		}
	}
	for i, a := range w.audits {
		a.Add(round[0], round[i+1])
	}
}

// decided reports whether further rounds cannot change the verdict.
func (w *watch) decided() bool {
	for _, a := range w.audits {
		if a.Decided() {
			return true
		}
	}
	return false
}

// report reports on the neighbour that shows most: a violation, then the highest lower bound.
func (w *watch) report(f auditFlags, worlds []string) conclusion {
	c, _ := w.worst(f, worlds)
	return c
}

// conclude reports, and draws that neighbour's figures into --plot.
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
	for i, a := range w.audits {
		r := analysis.Temper(a.Report(), &w.drifts[0], &w.drifts[i+1])
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
	return c, w.audits[worst]
}
