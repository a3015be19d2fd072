package check

import (
	"context"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/preflight"
)

// checkClaims reports that nothing says what queries promise: without a claim a query is not audited. Claims that
// clients state are seen in the captured queries.
func checkClaims(c config.Config) preflight.Task {
	return func(ctx context.Context) []preflight.Check {
		s := c.Claims
		if len(s.Functions)+len(s.Rules)+len(s.Trust)+len(s.SecurityLabels) > 0 || s.Ask != "" || s.Answer != "" || s.Default != nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, setup.CheckTimeout)
		defer cancel()
		check := preflight.Check{Name: "claims", Object: "every query", Status: preflight.OK, Message: "captured queries state claims in comments or settings"}
		if queries, err := captured(ctx, c); err == nil && len(queries) > 0 {
			rewriter, err := stages.Rewriters(c)(ctx)
			for i := 0; err == nil && i < len(queries); i++ {
				if plan, err := analyzeAs(ctx, rewriter, queries[i]); err == nil && plan.Claim != nil {
					return []preflight.Check{check}
				}
			}
		}
		check.Status, check.Message = preflight.Fault, "no source of claims is configured, and no captured query states one: a query without a claim is not audited"
		check.Fix = "write the functions that add noise, and which argument is the epsilon: claims.functions: [{name: FUNCTION, epsilon: POSITION}]; " +
			"or one claim for all queries: claims.default: {epsilon: NUMBER}; or, if clients state claims, claims.trust: [comment] or [setting] (docs/rewriting.md)"
		return []preflight.Check{check}
	}
}
