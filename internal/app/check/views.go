package check

import (
	"context"
	"fmt"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/preflight"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// maxViews is how many views are named.
const maxViews = 20

// checkViews names the views of the engine that draw fresh noise for each query on them and are not listed, and whether
// such queries are audited.
func checkViews(c config.Config) preflight.Task {
	return func(ctx context.Context) (checks []preflight.Check) {
		if c.Privacy.Catalog == "" {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, setup.CheckTimeout)
		defer cancel()
		const name = "views that draw noise"
		rewriter, err := stages.Rewriters(c)(ctx)
		if err != nil {
			return []preflight.Check{{Name: name, Object: c.EngineName(), Status: preflight.Unchecked, Message: sqlstate.Withhold(err).Error()}}
		}
		views := rewriter.NoisyViews()
		for i, v := range views {
			if i == maxViews {
				return append(checks, preflight.Check{Name: name, Object: c.EngineName(), Status: preflight.Unchecked, Message: fmt.Sprintf("%d more views are not named", len(views)-maxViews)})
			}
			check := preflight.Check{Name: name, Object: v.String(), Status: preflight.OK, Message: "queries on it are audited on its copies"}
			if v.Fault != "" {
				check.Status, check.Message = preflight.Warning, "queries on it are not audited: it "+v.Fault
				check.Fix = "create it in every copy: dpwatch neighbours create --replace, or by hand, so that it reads only the tables of that schema"
			}
			checks = append(checks, check)
		}
		return checks
	}
}

// UnauditedViews returns the views of an engine that draw fresh noise and on which queries are not audited. It reads
// the catalogs, and parses the definitions of views; of a catalog that cannot be read it returns none.
func UnauditedViews(ctx context.Context, c config.Config) (all []records.CoverageView) {
	if c.Privacy.Catalog == "" {
		return nil
	}
	rewriter, err := stages.Rewriters(c)(ctx)
	if err != nil {
		return nil
	}
	for _, v := range rewriter.NoisyViews() {
		if v.Fault != "" {
			all = append(all, records.CoverageView{View: v.String(), Why: v.Fault})
		}
	}
	return all
}
