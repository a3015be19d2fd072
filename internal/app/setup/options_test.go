package setup

import (
	"testing"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/capture"
)

// TestProtectedNames: with a catalog every statement reaches the auditor until it reports the names that matter;
// without one, those that name a protected table.
func TestProtectedNames(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Privacy.Protected = []string{"public.people"}
	c.Claims.SafeFunctions = []string{"headcount"}
	c.Claims.Functions = []config.Function{{Name: "dp.noisy_total", Epsilon: 1}}
	for _, catalog := range []config.Secret{"", "host=x"} {
		c.Privacy.Catalog = catalog
		mentions := capture.Mentions(ProtectedNames(&c))
		for sql, want := range map[string]bool{
			"SELECT count(*) FROM people":   true,
			"SELECT HeadCount()":            catalog != "",
			"SELECT dp.noisy_total(0.5)":    catalog != "",
			"SELECT count(*) FROM products": catalog != "",
		} {
			if got := mentions(sql); got != want {
				t.Errorf("catalog %t: %s: %t, want %t", catalog != "", sql, got, want)
			}
		}
	}
}
