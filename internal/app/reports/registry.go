package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/internal/ledger"
	reports "github.com/dpwatch/dpwatch/internal/report"
)

// registry returns a record of each engine for the public registry of deployments.
func (r *Report) registry() (files []reports.File) {
	for _, name := range r.engines() {
		file := "registry.yaml"
		if len(r.configurations) > 1 {
			file = fmt.Sprintf("registry_%d.yaml", len(files)+1) // the registry allows few characters, engines many
		}
		files = append(files, reports.NewFile(file, r.deployment(name).YAML()))
	}
	return files
}

// deployment returns what is known of an engine.
func (r *Report) deployment(engine string) reports.Deployment {
	c := r.configs[engine]
	d := reports.Deployment{Engine: show.Printable(engine), Report: r.title(), Year: r.Created.Year(), Audit: r.audited(engine)}
	first := r.Created
	var claims []ReportAudit
	for _, a := range r.Audits {
		if a.Engine != engine {
			continue
		}
		if at := a.stored.FirstSeen; !at.IsZero() && at.Before(first) {
			first = at
		}
		if a.Epsilon != nil {
			claims = append(claims, a)
		}
	}
	d.Since = first.UTC().Format(time.DateOnly)
	d.Variant, d.Parameters, d.Meaning = claimed(claims)
	var budgets, compositions []string
	for _, b := range setup.PrivacyBudgets(c) {
		use := fmt.Sprintf("budget %s: epsilon %g, delta %g for each analyst, %s", b.Name, b.Epsilon, b.Delta, period(b))
		budgets = append(budgets, use)
		if text := string(b.Composition); !slices.Contains(compositions, text) {
			compositions = append(compositions, text)
		}
		if len(budgets) == 1 {
			d.Parameters = reports.Parameters{Epsilon: b.Epsilon, Delta: b.Delta}
			if b.Delta > 0 && d.Variant == reports.PureDP {
				d.Variant = reports.ApproximateDP
			}
			d.Meaning = "All answers to one analyst together: " + use + ". " + d.Meaning
		}
	}
	if len(budgets) > 0 {
		d.Apportioning = "dpwatch alerts when an analyst's answers claim more than a budget; it blocks nothing. " + show.Capital(strings.Join(budgets, "; ")) + "."
		d.Composition = "dpwatch adds up the claims of the answers; composition by budget: " + strings.Join(compositions, ", ") + "."
	}
	if u := c.Privacy.Unit; u != nil {
		d.Unit = fmt.Sprintf("What belongs to one row of table %s (key: %s).", u.Table, strings.Join(u.Key, ", "))
	}
	d.Neighbours = neighbourText(c)
	var functions []string
	for _, f := range c.Claims.Functions {
		functions = append(functions, f.Name)
	}
	if len(functions) > 0 {
		d.Mechanisms = "Functions of the engine that add noise: " + strings.Join(functions, ", ") + "."
	}
	return d
}

// claimed returns what the claims of queries are together.
func claimed(claims []ReportAudit) (variant string, p reports.Parameters, meaning string) {
	for _, a := range claims {
		of := reports.PureDP
		delta := 0.
		if a.Delta != nil {
			delta = *a.Delta
		}
		switch c := curve.Curve(a.Curve); {
		case c != "" && c.Unit() == curve.Rho:
			of, p.Rho = reports.ZeroCDP, max(p.Rho, c.Parameter())
		case c != "":
			of = reports.CustomDP
		default:
			p.Epsilon, p.Delta = max(p.Epsilon, *a.Epsilon), max(p.Delta, delta)
			if delta > 0 {
				of = reports.ApproximateDP
			}
		}
		switch pair := [2]string{variant, of}; {
		case variant == "", variant == of:
			variant = of
		case !slices.Contains(pair[:], reports.ZeroCDP) && !slices.Contains(pair[:], reports.CustomDP):
			variant = reports.ApproximateDP // that, and Pure DP
		default:
			variant = reports.CustomDP
		}
	}
	if len(claims) > 0 {
		meaning = fmt.Sprintf("The largest claim of one of %d queries:%s.", len(claims), parameterText(p, claims))
	}
	return variant, p, meaning
}

// parameterText says the largest parameters, and which claims are of neither kind.
func parameterText(p reports.Parameters, claims []ReportAudit) (text string) {
	if p.Epsilon > 0 {
		text += fmt.Sprintf(" epsilon %g, delta %g", p.Epsilon, p.Delta)
	}
	if p.Rho > 0 {
		text += fmt.Sprintf(" rho %g", p.Rho)
	}
	var others []string
	for _, a := range claims {
		if c := curve.Curve(a.Curve); c != "" && c.Unit() != curve.Rho && !slices.Contains(others, a.Curve) && len(others) < 5 {
			others = append(others, a.Curve)
		}
	}
	if len(others) > 0 {
		text += " the curves " + strings.Join(others, ", ")
	}
	return text
}

// period says how long the answers of a budget count.
func period(b ledger.PrivacyBudget) string {
	if b.Period == 0 {
		return "ever"
	}
	return "in any " + b.Period.String()
}

// neighbourText says what the copies differ in.
func neighbourText(c config.Config) string {
	if !c.Neighbours.Configured() || c.Privacy.Unit == nil {
		return ""
	}
	what := map[string]string{
		"remove": "one of them lacks all rows of one unit", "replace": "the rows of one unit have other values in one of them", "extreme": "one of them has one unit more, with extreme values",
	}[c.Neighbours.Relation]
	return fmt.Sprintf("Datasets of the tables %s of which %s.", strings.Join(c.Privacy.Protected, ", "), what)
}

// audited says what was audited of an engine, and what was found.
func (r *Report) audited(engine string) string {
	verdicts := map[string]int{}
	for _, a := range r.Audits {
		if a.Engine == engine {
			verdicts[a.Verdict]++
		}
	}
	n := 0
	for _, k := range verdicts {
		n += k
	}
	text := fmt.Sprintf("Audited with dpwatch %s (%s), which replays the captured queries on neighbouring copies of the data. Of %d queries, %d leak more than they claim, "+
		"in %d no evidence of that was found, which is no proof, and %d have no conclusion.",
		r.Version, r.period(), n, verdicts[string(analysis.Violation)], verdicts[string(analysis.NoEvidence)], n-verdicts[string(analysis.Violation)]-verdicts[string(analysis.NoEvidence)])
	for _, c := range r.Coverage {
		if slices.Contains(c.Engines, engine) {
			text += " " + strings.TrimSpace(c.Headline())
		}
	}
	for _, e := range r.Errors {
		if e.Engine != engine {
			continue
		}
		text += fmt.Sprintf(" Rate of false alarms: at most %.3g (audit.error_rate: %s).", e.Alpha, e.Rule)
		if e.FalseAlarms != nil {
			text += " Measured " + e.FalseAlarms.Text() + "."
		}
	}
	return text
}
