package read

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/docs"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/sarif"
)

// Repository is where the source and the documentation of dpwatch are.
const Repository = "https://github.com/dpwatch/dpwatch"

// documentation is where the pages are of which texts have the paths.
const documentation = Repository + "/blob/main/"

// Rules of findings without a probable cause. Others have the code of the most likely one.
const (
	ruleViolation     = "violation"       // of which the cause is open
	ruleDeterministic = "deterministic"   // likewise, of answers that never vary
	ruleCopies        = "noise_of_a_copy" // a violation that the control blocks
	ruleInconclusive  = "inconclusive"
)

// SARIF returns the findings of audits in the format of CI systems: a violation is an error, one that the control
// blocks a warning, another audit without a conclusion a note; nothing else is a result. It holds no values of rows and
// no literals, whatever the explanations reveal. file is the path of the file in which readers look for the query; ""
// or "-" = there is none.
func SARIF(all []Explanation, file, version string) sarif.Log {
	var rules []sarif.Rule
	var results []sarif.Result
	for i := range all {
		if rule, result, found := all[i].sarif(); found {
			if p := sarif.File(file); p != nil {
				result.Locations[0].Physical = p
			}
			rules, results = append(rules, rule), append(results, result)
		}
	}
	return sarif.New(sarif.Driver{Name: "dpwatch", Version: version, InformationURI: Repository}, rules, results)
}

// SARIF returns the conclusion as [SARIF] does.
func (c *Conclusion) SARIF(file, version string) sarif.Log {
	a := Audit{ID: c.Key[:min(12, len(c.Key))], Key: c.Key, Summary: c.Summary, Verdict: string(c.Verdict), Report: &c.Report}
	x := Explanation{Audit: a}
	x.HowBad, x.What, x.Why = reportAnswers(&a, c.Report)
	x.HowBad[0] = ofSequence(x.HowBad[0], c.Queries)
	return SARIF([]Explanation{x}, file, version)
}

// sarifProperties is what programs read of a result. Its JSON form is a contract with scripts.
type sarifProperties struct {
	Audit      string           `json:"audit"` // id
	Engine     string           `json:"engine,omitempty"`
	Query      string           `json:"query"` // without literals
	Verdict    string           `json:"verdict"`
	Reason     string           `json:"reason,omitempty"`
	Claimed    analysis.Claimed `json:"claimed"`
	Lower      analysis.Float   `json:"epsilon_lower"` // certified; null = none
	Confidence float64          `json:"confidence"`    // 0 = not known
	Pairs      int              `json:"pairs"`
	Causes     []string         `json:"causes"` // the likeliest first
}

// sarif returns the result of an audit; found is false for one that is none.
func (x *Explanation) sarif() (rule sarif.Rule, result sarif.Result, found bool) {
	a, r := &x.Audit, x.Audit.Result()
	causes, lower, pairs := []string{}, analysis.Float(math.NaN()), a.Trials()
	switch {
	case a.Violation():
		result.Level, lower = sarif.Error, a.ViolationBound()
		rule = newRule(ruleViolation, "A query leaks more than it claims", "docs/findings.md")
		if a.Deterministic() {
			lower = analysis.Float(math.NaN())
			rule = newRule(ruleDeterministic, "The answers of a query never vary, and differ between neighbouring datasets", "docs/findings.md")
		}
		if a.former() {
			pairs = a.Standing.Trials
		}
	case a.Verdict != string(analysis.Inconclusive):
		return rule, result, false
	case r.Control.Blocks():
		result.Level = sarif.Warning
		rule = newRule(ruleCopies, "What differs belongs to a copy of the data, not to a person", causePage(ruleCopies))
	default:
		result.Level = sarif.Note
		rule = newRule(ruleInconclusive, "An audit has no conclusion", "docs/findings.md")
	}
	if f := r.Finding; f != nil && result.Level == sarif.Error {
		for _, c := range f.Causes {
			causes = append(causes, string(c.Code))
		}
		if len(f.Causes) > 0 {
			rule = newRule(causes[0], show.Capital(f.Causes[0].Name), f.Causes[0].Page)
		}
	}
	result.RuleID, result.Message.Text = rule.ID, x.sarifText()
	result.Locations = []sarif.Location{{Logical: []sarif.Logical{{Name: a.ID, QualifiedName: strings.TrimPrefix(a.EngineName+"/"+a.ID, "/"), Kind: "query"}}}}
	// Code scanning on GitHub reads the second name alone, with the number of the occurrence.
	print := fingerprint(a.EngineName, a.Key)
	result.Fingerprints = map[string]string{"dpwatch/v1": print, "primaryLocationLineHash": print + ":1"}
	if c := a.Accepted; c != nil && result.Level == sarif.Error {
		result.Suppressions = []sarif.Suppression{{Kind: "external", Status: "accepted", Justification: AcceptedText(c)}}
	}
	result.Properties = sarifProperties{a.ID, a.EngineName, a.Summary, a.Verdict, r.Reason, r.Claimed, lower, r.Confidence, pairs, causes}
	return rule, result, true
}

// sarifText is what the text of the audit says. Sentences that may hold values are those of the report in which values
// are withheld; without such a report, only the names of the causes are left.
func (x *Explanation) sarifText() string {
	a, r := &x.Audit, x.Audit.Result()
	lines := append([]string{x.HowBad[0], "Query: " + a.Summary}, x.HowBad[1:]...)
	if !x.Revealed {
		lines = append(append(lines, x.What...), x.Why...)
	} else if f := r.Finding; f != nil {
		for _, c := range f.Causes {
			lines = append(lines, "Likely: "+c.Name+". See "+c.Page)
		}
	}
	return strings.Join(lines, "\n")
}

// fingerprint identifies the audit of a query in later files: the statement with its constants, parameters, settings
// and claim, whatever was found and when.
func fingerprint(engine, key string) string {
	sum := sha256.Sum256([]byte(engine + "\x00" + key))
	return hex.EncodeToString(sum[:])[:32]
}

// causePage returns the page of a cause, as [diagnosis.Cause] has it.
func causePage(code string) string { return "docs/causes.md#" + code }

// newRule returns a rule whose help is the section of the page, if it is one of docs/causes.md.
func newRule(id, title, page string) sarif.Rule {
	r := sarif.Rule{
		ID: id, Short: sarif.Message{Text: title}, Full: sarif.Message{Text: title + "."}, Help: sarif.Message{Text: "See " + documentation + page},
		HelpURI: documentation + page, Settings: map[string]any{"tags": []string{"privacy", "differential-privacy"}},
	}
	if page == causePage(id) {
		r.Help.Markdown = docs.Cause(id)
	}
	return r
}
