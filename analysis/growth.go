package analysis

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
)

// Growth returns the most evidence per pair of trials, in nats, that any auditor can gain against a claim if both laws
// are known: min KL(P||P') + KL(Q||Q') over the pairs (P', Q') of laws that the claim allows. A test needs about
// ln(1/alpha)/Growth pairs. p and q are the probabilities of the same k outcomes on D0 and on D1; cutting a continuous
// law into bins rounds down. Of a curve the point with the most counts. It is 0 when the pair itself is allowed, and NaN for lists that are empty or of different
// lengths, probabilities that are negative or not numbers, and claims that [New] would not take.
func Growth(p, q []float64, c Claim) float64 {
	if len(p) == 0 || len(p) != len(q) || validate(c, Options{MaxTrials: 1}.withDefaults()) != nil {
		return math.NaN()
	}
	for i := range p {
		if !(p[i] >= 0 && p[i] <= 1) || !(q[i] >= 0 && q[i] <= 1) {
			return math.NaN()
		}
	}
	most := 0.0
	for _, at := range c.points() {
		h := eprocess.NewNull(at.Epsilon, at.Delta)
		most = max(most, h.Growth(p, q))
	}
	return most
}

// Cut returns the masses of two laws, given by their distribution functions, between n+1 edges from lo to hi and in
// both tails: what [Growth] takes.
func Cut(p, q func(x float64) float64, lo, hi float64, n int) (ps, qs []float64) {
	last0, last1 := 0.0, 0.0
	for i := range n + 2 {
		a, b := 1.0, 1.0
		if i <= n {
			x := lo + (hi-lo)*float64(i)/float64(n)
			a, b = p(x), q(x)
		}
		ps, qs = append(ps, max(0, a-last0)), append(qs, max(0, b-last1))
		last0, last1 = a, b
	}
	return ps, qs
}
