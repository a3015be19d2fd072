package analysis

import (
	"math"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Refused returns the report of an audit that never began: the budget is infeasible, a world is empty, the query
// cannot be replayed. Its verdict is Inconclusive with the reason; every figure is null.
func Refused(claim Claim, confidence float64, reason string) Report {
	none := Float(math.NaN())
	return Report{
		Verdict: Inconclusive, Reason: reason, Confidence: confidence, ErrorRate: 1 - confidence,
		Claimed:      Claimed{Epsilon: Float(claim.Epsilon), Delta: claim.Delta, Curve: claim.Curve},
		EpsilonLower: none, EpsilonEstimate: none, WealthLog: none, MinimalDetectable: none, MinimalInTenth: none,
		Attacker:   Attacker{LikelihoodRatio: none, PosteriorOdds: none, PosteriorOddsLower: none, ImpliedEpsilon: none},
		Partitions: []Partition{}, Warnings: []withheld.Text{},
	}
}
