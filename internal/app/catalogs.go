package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/catalog"
	"github.com/dpwatch/dpwatch/rewrite"
)

// catalogTimeout bounds the reading of one catalog, which takes long where there is much in it or the server is busy.
const catalogTimeout = time.Minute

// catalogs returns what makes a Rewriter of the configuration and the catalogs as they are now. A catalog that cannot be
// read is told in the error, and the last one that could be read is used; if there was none, rewriting goes without. The
// function is not for several goroutines at once.
func catalogs(c config.Config) func(context.Context) (*rewrite.Rewriter, error) {
	opt := rewriteOptions(c)
	return func(ctx context.Context) (*rewrite.Rewriter, error) {
		var faults []error
		refresh := func(what string, dsn config.Secret, into **rewrite.Catalog) {
			if dsn == "" {
				return
			}
			got, err := catalog.Read(ctx, dsn.Reveal(), catalogTimeout)
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
