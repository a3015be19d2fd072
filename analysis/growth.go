package analysis

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
)

// Growth returns the most evidence per pair of trials, in nats, that any auditor can gain against a claim if both laws are
// known: min KL(P||P') + KL(Q||Q') over the pairs (P', Q') of laws that the claim allows. A test needs about
// ln(1/alpha)/Growth pairs. p and q are the probabilities of the same k outcomes on D0 and on D1; cutting a continuous
// law into bins rounds down. It is 0 when the pair itself is allowed, and NaN for lists that are empty or of different
// lengths, probabilities that are negative or not numbers, and claims that [New] would not take.
func Growth(p, q []float64, c Claim) float64 {
	if len(p) == 0 || len(p) != len(q) || validate(c, Options{}.withDefaults()) != nil {
		return math.NaN()
	}
	for i := range p {
		if !(p[i] >= 0 && p[i] <= 1) || !(q[i] >= 0 && q[i] <= 1) {
			return math.NaN()
		}
	}
	h := eprocess.NewNull(c.Epsilon, c.Delta)
	return h.Growth(p, q)
}
