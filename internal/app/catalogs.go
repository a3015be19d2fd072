package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/catalog/read"
	"github.com/dpwatch/dpwatch/rewrite"
)

// catalogTimeout bounds reading one catalog, which takes long if it is large or the server is busy.
const catalogTimeout = time.Minute

// catalogs returns a function that makes a Rewriter from the configuration and the current catalogs. If a catalog cannot be
// read, the error names it and the last catalog read is used; without one, rewriting goes on without a catalog. The function
// is not safe for concurrent use.
func catalogs(c config.Config) func(context.Context) (*rewrite.Rewriter, error) {
	opt := rewriteOptions(c)
	return func(ctx context.Context) (*rewrite.Rewriter, error) {
		var faults []error
		refresh := func(what string, dsn config.Secret, into **catalog.Catalog) {
			if dsn == "" {
				return
			}
			got, err := read.Catalog(ctx, dsn.Reveal(), catalogTimeout)
			if err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", what, err))
				return
			}
			*into = got
		}
		refresh("shadow.dsn", c.Shadow.DSN, &opt.Shadow)
		refresh("privacy.catalog", c.Privacy.Catalog, &opt.Source)
		r, err := rewrite.New(opt)
		return r, errors.Join(append(faults, err)...)
	}
}
