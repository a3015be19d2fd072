// Package multiplicity joins the evidence of many audits: paging at a family-wise rate, a watch list at a false
// discovery rate, one verdict about an engine, and an alarm at a change. Log-wealths of e-processes go in
// ([analysis.Audit] reports them as wealth_log); decisions come out. It keeps no audits and no queries.
//
// An e-process for a hypothesis is a process E >= 0 with mean at most 1 at every stopping time while the hypothesis
// holds.
package multiplicity

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Share is the j-th part of the spending sequence 6/(pi^2 j^2), j = 1, 2, ...; all parts add up to 1. NaN for j < 1.
func Share(j int) float64 {
	if j < 1 {
		return math.NaN()
	}
	return 6 / (math.Pi * math.Pi * float64(j) * float64(j))
}

// PagingThreshold is the log-wealth at which audit j (1, 2, ... in the order in which they began) alarms, so that the
// probability of any false alarm in any number of audits, ever, is at most alpha: ln(1/(alpha Share(j))). By Ville's
// inequality each audit ever reaches it with probability at most alpha Share(j), and these add up whatever the
// dependence. Nothing is retracted. NaN for j < 1 and for alpha outside (0, 1).
func PagingThreshold(j int, alpha float64) float64 {
	if !(alpha > 0 && alpha < 1) {
		return math.NaN()
	}
	return -math.Log(alpha) - math.Log(Share(j))
}

// EBH returns the indices of the hypotheses that e-BH rejects at the false discovery rate alpha, ascending (Wang and
// Ramdas 2022): the k greatest, k the most with K/(alpha k) or more each. The log-wealths must be the current ones,
// never running maxima, which are not e-values and break the rate. Any dependence is allowed. NaN counts as no
// evidence; nil when nothing is rejected or alpha lies outside (0, 1).
func EBH(logWealth []float64, alpha float64) []int {
	if !(alpha > 0 && alpha < 1) {
		return nil
	}
	value := func(i int) float64 {
		if math.IsNaN(logWealth[i]) {
			return math.Inf(-1)
		}
		return logWealth[i]
	}
	order := make([]int, len(logWealth))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(value(b), value(a)) })
	for k := len(order); k > 0; k-- {
		if value(order[k-1]) >= math.Log(float64(len(order))/(alpha*float64(k))) {
			kept := order[:k:k]
			slices.Sort(kept)
			return kept
		}
	}
	return nil
}

// Pool is the evidence about a whole engine: the hypothesis that every one of its claims holds. Every query brings one
// e-process per component (the same working alternative at every query); the wealth of a component is multiplied across
// queries, and the pool's is the average over the components. Many queries that leak a little find their common
// component together.
//
// Why it is an e-process: while all claims hold, every trial multiplies one factor of the product by a number with mean
// at most 1 given all that went before, in whatever order the trials of the queries come; an average of such products
// is one too. The queries' noise must be fresh, as within one audit.
type Pool struct {
	queries map[string][]float64
}

// Set brings the current log-wealths of a query's components, in place of earlier ones of the same query. It reports
// false, and changes nothing, for no components, NaN or +Inf, and another number of components than other queries have.
func (p *Pool) Set(query string, components []float64) bool {
	if len(components) == 0 {
		return false
	}
	for _, w := range components {
		if math.IsNaN(w) || math.IsInf(w, 1) {
			return false
		}
	}
	for _, other := range p.queries {
		if len(other) != len(components) {
			return false
		}
	}
	if p.queries == nil {
		p.queries = map[string][]float64{}
	}
	p.queries[query] = slices.Clone(components)
	return true
}

// LogWealth is the log of the pool's wealth; 0 without queries. At ln(1/alpha) the hypothesis that all claims hold is
// rejected.
func (p *Pool) LogWealth() float64 {
	var sums []float64
	for _, name := range p.names() {
		for i, w := range p.queries[name] {
			if i == len(sums) {
				sums = append(sums, 0)
			}
			sums[i] += w
		}
	}
	if len(sums) == 0 {
		return 0
	}
	return floats.LogSumExp(sums) - math.Log(float64(len(sums)))
}

// names are sorted, so that rounding does not depend on the order of a map.
func (p *Pool) names() []string {
	names := make([]string, 0, len(p.queries))
	for n := range p.queries {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Detector raises an alarm when an engine no longer keeps its claims: the Shiryaev-Roberts sum over start times, R_t =
// (1 + R_{t-1}) E_t, E_t the factor by which step t multiplied the wealth of the process that is at stake. While the
// claims hold R_t - t is a supermartingale, so that the mean time to the first alarm at R >= 1/alpha is at least
// 1/alpha steps (Shin, Ramdas and Rinaldo 2024, e-detectors).
type Detector struct {
	log     float64 // ln R
	started bool
}

// Step takes the log of the factor of one step (a trial, or a block of them), and reports whether the sum is at 1/alpha
// or more. NaN and +Inf count as a factor of 1. After an alarm call [Detector.Reset].
func (d *Detector) Step(logFactor, alpha float64) bool {
	if math.IsNaN(logFactor) || math.IsInf(logFactor, 1) {
		logFactor = 0
	}
	if !d.started {
		d.log, d.started = math.Inf(-1), true
	}
	d.log = floats.LogSumExp([]float64{0, d.log}) + logFactor
	return alpha > 0 && alpha < 1 && d.log >= -math.Log(alpha)
}

// LogSum is ln R; minus infinity before the first step.
func (d *Detector) LogSum() float64 {
	if !d.started {
		return math.Inf(-1)
	}
	return d.log
}

// Resume continues a detector whose LogSum was logSum, in another process for example.
func (d *Detector) Resume(logSum float64) { *d = Detector{log: logSum, started: true} }

// Reset restarts the detector.
func (d *Detector) Reset() { *d = Detector{} }
