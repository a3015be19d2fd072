package recognize

import (
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/rewrite"
)

// QueryOf returns what the ledger stores of a plan whose answers went to destinations.
func QueryOf(p *rewrite.Plan, destinations []string) ledger.Query {
	q := ledger.Query{Shape: p.Shape, Fingerprint: p.Group, Summary: p.Summary, Destinations: destinations}
	q.Claim = claimOf(p.Claim)
	return q
}

func claimOf(c *rewrite.Claim) *ledger.Claim {
	if c == nil {
		return nil
	}
	return &ledger.Claim{Epsilon: c.Epsilon, Delta: c.Delta, Source: c.Source, Rule: c.Rule, Curve: c.Curve}
}
