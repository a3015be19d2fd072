package environment_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/rewrite"
)

// TestTroubled: who analyses a query while a Rewriter without a catalog is used learns it, also if that one is new, or
// is replaced before the analysis ends.
func TestTroubled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	readings := 0
	c := environment.NewCatalogs(func(context.Context) (*rewrite.Rewriter, error) {
		if readings++; readings == 2 {
			return &rewrite.Rewriter{}, errors.New("it cannot be read")
		}
		return &rewrite.Rewriter{}, nil
	}, time.Millisecond)
	c.Before, c.Failed = func(context.Context) {}, func(error) {}
	var before, during func() bool
	c.Use = func(*rewrite.Rewriter) bool {
		switch readings {
		case 1:
			if before = c.Troubled(); before() {
				t.Error("trouble before there is any")
			}
		case 2:
			if during = c.Troubled(); !before() || !during() {
				t.Errorf("a Rewriter without a catalog is used, but trouble since before: %t, now: %t", before(), during())
			}
		}
		return true
	}
	c.Adopted = func(bool) {
		if readings < 3 {
			return
		}
		if after := c.Troubled(); !before() || !during() || after() {
			t.Errorf("all catalogs are read again, but trouble since before: %t, since there was trouble: %t, now: %t", before(), during(), after())
		}
		cancel()
	}
	c.Run(ctx)
	if readings < 3 {
		t.Errorf("%d readings", readings)
	}
}
