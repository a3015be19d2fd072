package setup

import (
	"time"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/odometer"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// TurnTrials is the minimum number of rounds that one audit runs before its sessions are closed and another audit gets
// its turn.
const TurnTrials = 200

// sequenceWindow is the time from the first query of a session's group to its last.
const sequenceWindow = 5 * time.Minute

// SequenceWindow returns the window of the sequences of a running auditor; 0 = they are not audited.
func SequenceWindow(c config.Audit) time.Duration {
	if !c.Sequences {
		return 0
	}
	return sequenceWindow
}

// PrivacyBudgets translates the budgets of a configuration.
func PrivacyBudgets(c config.Config) []ledger.PrivacyBudget {
	var all []ledger.PrivacyBudget
	for _, b := range c.Budgets {
		all = append(all, ledger.PrivacyBudget{
			Name: b.Name, Period: time.Duration(b.Period), Budget: odometer.Budget{Epsilon: b.Epsilon, Delta: b.Delta, Composition: b.Compose()},
			Answers: ledger.Answers{
				Analyst:      ledger.Analyst{User: b.User, Database: b.Database, Application: b.ApplicationName},
				Applications: b.Applications, Repeated: !b.Cached,
			},
		})
	}
	return all
}

// ProtectedNames returns the names, without schemas, of which a statement must contain one to be sent to the auditor,
// until the auditor has read a catalog and reports its own (rewrite.Rewriter.Names): nil = every statement. Without a
// catalog they are those of the protected tables: a statement to audit names one of them, or, for EXECUTE, the prepared
// statement does.
func ProtectedNames(c *config.Config) []string {
	if c.Privacy.Catalog != "" || c.Shadow.DSN != "" {
		return nil
	}
	return ident.BareNames(c.Privacy.Protected)
}
