package check

import (
	"context"
	"fmt"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/preflight"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
)

// checkAsk asks the engine for the claim of the number of rows of a protected table.
func checkAsk(c config.Config) preflight.Task {
	return func(ctx context.Context) []preflight.Check {
		if c.Claims.Ask == "" {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, setup.CheckTimeout)
		defer cancel()
		check := preflight.Check{
			Name: "claims.ask", Object: "the engine's answer", Status: preflight.Warning,
			Fix: "claims.ask is a query with the statement as $1 and one row: epsilon and delta, rho, mu, or a curve (docs/rewriting.md)",
		}
		statement := countStatement(c).Worlds[0]
		player, err := replay.New(stages.ReplayOptions(c, nil))
		var v rewrite.Value
		if err == nil {
			v, err = stages.Evaluate(c, player)(ctx, rewrite.Question{SQL: statement, Asked: true})
		}
		switch {
		case err != nil:
			check.Status, check.Message = preflight.Unchecked, err.Error()
		case v.Fault != "":
			check.Message = "about " + statement + " " + v.Fault + ": queries about which it answers so are not audited (bad_claim)"
		case v.None:
			check.Status, check.Fix, check.Message = preflight.OK, "", "states no claim for "+statement+": arguments, rules and the default are its claim"
		default:
			check.Status, check.Fix, check.Message = preflight.OK, "", fmt.Sprintf("states epsilon %g, delta %g for %s", v.Number, v.Delta, statement)
		}
		return []preflight.Check{check}
	}
}
