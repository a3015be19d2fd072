package setup

import (
	"testing"

	"github.com/dpwatch/dpwatch/config"
)

// TestConfigurationHash: the hash depends on what decides about audits, and not on the machine or on secrets.
func TestConfigurationHash(t *testing.T) {
	t.Parallel()
	base := ConfigurationHash(config.Default())
	if base == "" {
		t.Fatal("no hash")
	}
	for name, test := range map[string]struct {
		change func(*config.Config)
		same   bool
	}{
		"workers":    {func(c *config.Config) { c.Audit.Workers = 77 }, true},
		"password":   {func(c *config.Config) { c.Neighbours.Target = "postgres://a:b@c/d" }, true},
		"confidence": {func(c *config.Config) { c.Audit.Confidence = 0.77 }, false},
		"copy":       {func(c *config.Config) { c.Shadow.D1 = []string{"another"} }, false},
	} {
		c := config.Default()
		c.Neighbours.Target = "postgres://x:y@z/w"
		before := ConfigurationHash(c)
		if test.change(&c); (ConfigurationHash(c) == before) != test.same {
			t.Errorf("%s: the hash is the same: %v, want %v", name, !test.same, test.same)
		}
	}
}
