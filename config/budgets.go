package config

import (
	"fmt"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/internal/odometer"
)

// PrivacyBudget is what the engine promises about all answers to one analyst together. The answers of each user in each
// database count together; with Applications, those of each application_name.
type PrivacyBudget struct {
	Name            string  `yaml:"name"`
	User            string  `yaml:"user"` // the budget is for analysts that match every field that is set
	Database        string  `yaml:"database"`
	ApplicationName string  `yaml:"application_name"`
	Applications    bool    `yaml:"applications"`
	Epsilon         float64 `yaml:"epsilon"`
	Delta           float64 `yaml:"delta"`
	// Period is the time after which an answer does not count any more; 0 = it always counts.
	Period      Duration `yaml:"period"`
	Composition string   `yaml:"composition"` // "" = best; see odometer.Composition
	Cached      bool     `yaml:"cached"`      // the engine repeats its answer to a repeated query, which then counts once
}

// Compose returns the composition of the answers.
func (b PrivacyBudget) Compose() odometer.Composition {
	if b.Composition == "" {
		return odometer.Best
	}
	return odometer.Composition(b.Composition)
}

// budgets validates budgets.
func (e *engineSections) budgets(c *Config) {
	names := map[string]bool{}
	for i, b := range c.Budgets {
		path := fmt.Sprintf("budgets[%d]", i)
		switch {
		case b.Name == "":
			e.add(path+".name", "missing: alerts and metrics name the budget")
		case names[b.Name]:
			e.add(path+".name", "%q is the name of another budget", b.Name)
		}
		names[b.Name] = true
		if !(b.Epsilon > 0) || math.IsInf(b.Epsilon, 0) {
			e.add(path+".epsilon", "must be a finite number, more than 0")
		}
		if !(b.Delta >= 0 && b.Delta < 1) {
			e.add(path+".delta", "must be at least 0 and less than 1")
		}
		switch {
		case !slices.Contains(odometer.Compositions(), b.Compose()):
			e.add(path+".composition", "%q: must be one of %v", b.Composition, odometer.Compositions())
		case b.Delta == 0 && (b.Compose() == odometer.Advanced || b.Compose() == odometer.ZCDP):
			e.add(path+".delta", "must be more than 0: composition %s needs a part of it", b.Compose())
		}
		keep := c.Ledger.Retention
		switch {
		case b.Period != 0 && b.Period < minRetention:
			e.add(path+".period", "must be 0s (answers always count) or at least 1h, for example 720h (30 days)")
		case keep != 0 && b.Period > keep:
			e.add(path+".period", "is longer than ledger.retention (%s): raise that, or use 0s (answers always count)", keep)
		case keep != 0 && b.Period == 0 && (b.Applications || b.ApplicationName != ""):
			e.add(path+".period", "applications are known only as long as ledger.retention: set a period of at most that, or count all applications together")
		}
	}
	if len(c.Budgets) > 0 && c.LedgerDSN() == "" {
		e.add("budgets", "need a ledger, which counts the answers: set ledger.dsn")
	}
}
