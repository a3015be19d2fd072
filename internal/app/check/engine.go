package check

import (
	"context"
	"slices"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/pg/engine"
	"github.com/dpwatch/dpwatch/internal/preflight"
)

// checkVersion checks that the version of the engine can be read, and that the shadow database has production's DP
// functions.
func checkVersion(c config.Config) preflight.Task {
	return func(ctx context.Context) []preflight.Check {
		shadow, production := stages.EngineReaders(c)
		if shadow == nil {
			return []preflight.Check{{
				Name: "shadow.engine.version", Object: "the engine beside the database", Status: preflight.Unchecked,
				Message: "not configured: a new version of the engine goes unnoticed unless it is posted to the admin port", Fix: "set shadow.engine.version, or POST /api/engine with each deploy",
			}}
		}
		defer shadow.Close()
		ours, err := shadow.Read(ctx)
		if c.Shadow.Engine.Version != "" {
			check := preflight.Check{Name: "shadow.engine.version", Object: "the engine's answer", Status: preflight.OK, Message: "is one row"}
			if err != nil {
				check.Status, check.Message, check.Fix = preflight.Fault, err.Error(), "correct the query: audits wait until the engine answers it"
			}
			return []preflight.Check{check}
		}
		if production == nil || err != nil {
			return nil // the checks of shadow.dsn and privacy.catalog report it
		}
		defer production.Close()
		theirs, err := production.Read(ctx)
		if err != nil {
			return nil
		}
		return append(compareFunctions(c, theirs, ours), compareSurroundings(theirs, ours)...)
	}
}

// compareFunctions reports the DP functions, and functions that they call, of which production has another definition
// than the shadow database.
func compareFunctions(c config.Config, production, shadow *engine.Snapshot) []preflight.Check {
	calls := engine.Calls{Path: slices.Concat(c.Privacy.SearchPath, c.Shadow.SearchPath, []string{"public"})}
	for _, f := range c.Claims.Functions {
		calls.Functions = append(calls.Functions, f.Name)
	}
	var checks []preflight.Check
	for _, name := range engine.Differ(production, shadow, calls, c.Shadow.Copies()) {
		checks = append(checks, preflight.Check{
			Name: "claims.functions", Object: name, Status: preflight.Warning,
			Message: "the shadow database has another definition than production: audits of queries that call it are inconclusive", Fix: "install production's definition in the shadow database",
		})
	}
	return checks
}

// compareSurroundings reports how the shadow database differs from production in what answers depend on.
func compareSurroundings(production, shadow *engine.Snapshot) (checks []preflight.Check) {
	const name = "shadow and production"
	for _, how := range engine.UnlikeForAnyone(production, shadow) {
		checks = append(checks, preflight.Check{
			Name: name, Object: how, Status: preflight.Warning,
			Message: "verdicts of queries whose answers depend on it are about another engine than production's", Fix: "set up the shadow database like production",
		})
	}
	if len(checks) == 0 {
		checks = append(checks, preflight.Check{Name: name, Object: "versions, collation and settings", Status: preflight.OK, Message: "are alike"})
	}
	return checks
}
