package audit_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pg/catalog/read"
	"github.com/dpwatch/dpwatch/rewrite"
)

// TestRenew: a catalog that cannot be read is reported and does not stop audits; once it can be read, it is used.
func TestRenew(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	broken.Store(true)
	var r *rig
	r = newRig(t, func(o *audit.Options) {
		o.RenewEvery = 20 * time.Millisecond
		o.Renew = func(ctx context.Context) (*rewrite.Rewriter, error) {
			if broken.Load() {
				return nil, errors.New("no route to the catalog")
			}
			shadow, err := read.Catalog(ctx, r.dsn, time.Minute)
			if err != nil {
				return nil, err
			}
			return rewrite.New(rewrite.Options{
				Protected: []rewrite.Table{{Schema: "public", Name: "people"}}, AllowFunctions: []string{"noisy"},
				Shadow: shadow, Neighbours: []string{"d0", "d1"},
			})
		}
	})
	r.run(t)
	r.Submit(query("SELECT noisy(count(*), 4) FROM people /*dp_epsilon='0.5'*/"))
	s := r.Status()
	if s.Catalog == "" || len(s.Audits) != 1 || !slices.Contains(s.Audits[0].Assumed, rewrite.AssumedCopies) {
		t.Errorf("catalog %q, audits %+v; want the fault told, and an audit that says what it assumes", s.Catalog, s.Audits)
	}
	broken.Store(false)
	eventually.True(t, "the catalog is read", func() bool { s = r.Status(); return s.Catalog == "" })
	r.Submit(query("SELECT noisy(count(*), 5) FROM people /*dp_epsilon='0.5'*/"))
	s = r.Status()
	if s.Catalog != "" || len(s.Audits) != 2 || slices.Contains(s.Audits[1].Assumed, rewrite.AssumedCopies) {
		t.Errorf("catalog %q, audits %+v; want no fault, and an audit whose copies were checked", s.Catalog, s.Audits)
	}
}
