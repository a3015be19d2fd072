package records

import (
	"context"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
)

// AddViews adds the views of an engine that draw fresh noise and on which queries are not audited. It reads the
// catalogs, and parses the definitions of views; a catalog that cannot be read adds none.
func (c *Coverage) AddViews(ctx context.Context, of config.Config) {
	if of.Privacy.Catalog == "" {
		return
	}
	rewriter, err := setup.Rewriters(of)(ctx)
	if err != nil {
		return
	}
	for _, v := range rewriter.NoisyViews() {
		if v.Fault != "" {
			c.Views = append(c.Views, CoverageView{v.String(), v.Fault})
		}
	}
}
