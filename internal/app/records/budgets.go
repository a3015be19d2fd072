package records

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/odometer"
)

// Budgets is what analysts received, by the claims of the answers, beside the budgets of the configuration: GET
// /api/budgets, and dpwatch budgets.
type Budgets struct {
	Engine  string      `json:"engine"`
	At      time.Time   `json:"at"`
	Budgets []BudgetUse `json:"budgets"`
}

// BudgetUse is a budget and who uses it.
type BudgetUse struct {
	Name        string         `json:"name"`
	Epsilon     float64        `json:"epsilon"`
	Delta       float64        `json:"delta"`
	Composition string         `json:"composition"`
	Period      string         `json:"period"` // "ever", or a duration
	Analysts    []AnalystSpent `json:"analysts"`
}

// AnalystSpent is what one analyst received. The figures by composition are epsilons of all answers together at the
// budget's delta; nil = the theorem does not bound it.
type AnalystSpent struct {
	User        string   `json:"user"`
	Database    string   `json:"database"`
	Application string   `json:"application_name,omitempty"`
	Answers     int64    `json:"answers"`
	Spent       *float64 `json:"spent"` // by the budget's composition
	Basic       float64  `json:"basic"`
	Advanced    *float64 `json:"advanced"`
	Delta       float64  `json:"delta"` // sum of the answers' deltas
	Exceeded    bool     `json:"exceeded"`
	// Unread are refused DP queries whose claims are not known: the sums are incomplete.
	Unread int64   `json:"unread_claims"`
	PerDay float64 `json:"epsilon_last_day"` // sum of the epsilons in the last 24 hours
	// DaysLeft is when the budget will be exceeded if answers go on as in the last 24 hours; nil = never, or it is
	// exceeded.
	DaysLeft *float64 `json:"days_left"`
}

// ReadBudgets reads what analysts received from the ledger of a configuration.
func ReadBudgets(ctx context.Context, c config.Config) (Budgets, error) {
	o, stored := setup.LedgerOptions(c)
	if !stored {
		return Budgets{}, setup.ErrNoLedger
	}
	l, err := ledger.Open(ctx, o)
	if err != nil {
		return Budgets{}, err
	}
	defer l.Close()
	now := time.Now().UTC()
	all := Budgets{Engine: c.EngineName(), At: now, Budgets: []BudgetUse{}}
	for _, b := range setup.PrivacyBudgets(c) {
		use, err := budgetUse(ctx, l, all.Engine, &b, now)
		if err != nil {
			return Budgets{}, err
		}
		all.Budgets = append(all.Budgets, use)
	}
	return all, nil
}

func budgetUse(ctx context.Context, l *ledger.Ledger, engine string, b *ledger.PrivacyBudget, now time.Time) (BudgetUse, error) {
	use := BudgetUse{Name: b.Name, Epsilon: b.Epsilon, Delta: b.Delta, Composition: string(b.Composition), Period: "ever", Analysts: []AnalystSpent{}}
	if b.Period > 0 {
		use.Period = b.Period.String()
	}
	window := b.Window(now)
	all, err := l.Received(ctx, engine, window)
	if err != nil {
		return use, err
	}
	window.Since = now.Add(-24 * time.Hour)
	lastDay, err := l.Received(ctx, engine, window)
	if err != nil {
		return use, err
	}
	recent := map[ledger.Analyst]odometer.Spent{}
	for _, r := range lastDay {
		recent[r.Analyst] = r.Spent
	}
	for _, r := range all {
		s, day := r.Spent, recent[r.Analyst]
		row := AnalystSpent{
			User: r.Analyst.User, Database: r.Analyst.Database, Application: r.Analyst.Application, Answers: s.Answers,
			Spent: show.Finite(s.Loss(b.Composition, b.Delta)), Basic: s.Epsilon, Advanced: show.Finite(s.Loss(odometer.Advanced, b.Delta)), Delta: s.Delta,
			Exceeded: b.Exceeded(s), Unread: s.Unread, PerDay: day.Epsilon,
		}
		if !row.Exceeded {
			row.DaysLeft = show.Finite(b.Left(s, day))
		}
		use.Analysts = append(use.Analysts, row)
	}
	return use, nil
}

// FetchBudgets asks a listener of a running dpwatch.
func FetchBudgets(ctx context.Context, t status.Target) (Budgets, error) {
	var b Budgets
	text, err := t.Get(ctx, "/api/budgets")
	if err != nil {
		return b, err
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return b, fmt.Errorf("%s does not answer with the budgets of dpwatch: %w", t.Address, err)
	}
	return b, nil
}

// Write writes a table for each budget.
func (all Budgets) Write(w io.Writer) error {
	var b strings.Builder
	if len(all.Budgets) == 0 {
		b.WriteString("The configuration has no budgets (docs/budgets.md).\n")
	}
	for i, use := range all.Budgets {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "budget %s: epsilon %g, delta %g, %s, composition %s\n", use.Name, use.Epsilon, use.Delta, use.counts(), use.Composition)
		if len(use.Analysts) == 0 {
			b.WriteString("  nobody has received an answer with a claim\n")
			continue
		}
		table := show.NewTable(&b)
		table.Row("  USER", "DATABASE", "APPLICATION", "ANSWERS", "SPENT", "OF BUDGET", "ADDED UP", "LAST DAY", "EXCEEDED", "UNREAD")
		for _, a := range use.Analysts {
			table.Row("  "+a.User, a.Database, a.Application, fmt.Sprint(a.Answers), show.Bounded(a.Spent, 1), percentOf(a.Spent, use.Epsilon),
				fmt.Sprintf("%.4g", a.Basic), fmt.Sprintf("%.4g", a.PerDay), a.when(), fmt.Sprint(a.Unread))
		}
		table.Flush()
		if n := use.unread(); n > 0 {
			fmt.Fprintf(&b, "  incomplete: %d refused statements with claims that are not known (dpwatch coverage)\n", n)
		}
	}
	_, err := io.WriteString(w, show.Printable(b.String()))
	return err
}

// unread returns how many claims the sums lack.
func (use BudgetUse) unread() (n int64) {
	for _, a := range use.Analysts {
		n += a.Unread
	}
	return n
}

func (use BudgetUse) counts() string {
	if use.Period == "ever" {
		return "all answers count"
	}
	return "answers of the last " + use.Period + " count"
}

func percentOf(x *float64, of float64) string {
	if x == nil {
		return ""
	}
	return show.Bounded(x, 100/of) + " %"
}

// when says whether and when the budget is exceeded.
func (a AnalystSpent) when() string {
	switch {
	case a.Exceeded:
		return "YES"
	case a.DaysLeft == nil:
		return "no"
	}
	return fmt.Sprintf("in %.3g days at this pace", *a.DaysLeft)
}
