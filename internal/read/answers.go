package read

import (
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/diagnosis"
	"github.com/dpwatch/dpwatch/internal/app/show"
)

// reportAnswers answers the questions how bad a finding is, what gives it away and why, from a report.
func reportAnswers(a *Audit, r analysis.Report) (howBad, what, why []string) {
	howBad = []string{Sentence(r)}
	if s := a.Standing; s != nil && r.Verdict != analysis.Violation {
		howBad = []string{fmt.Sprintf("VIOLATION, first seen %s by engine version %s, with an epsilon lower bound of %s. A later audit has not resolved it%s.", show.Moment(s.FirstSeen), s.FirstEngine, analysis.LowerText(s.Lower, s.Claimed), MissingText(s))}
	}
	if f := r.Finding; f != nil {
		howBad, what, why = findingAnswers(f)
		return append([]string{Sentence(r)}, howBad...), what, why
	}
	if lower := float64(r.EpsilonLower); !math.IsNaN(lower) && r.Confidence > 0 {
		howBad = append(howBad, fmt.Sprintf("Certified at confidence %g: the privacy loss is at least epsilon %s, after %d pairs of trials.", r.Confidence, lowerText(r), r.Trials.D0))
	} else if !math.IsNaN(lower) {
		howBad = append(howBad, fmt.Sprintf("Certified: the privacy loss is at least epsilon %s, after %d pairs of trials.", lowerText(r), r.Trials.D0))
	}
	found := a.Violation()
	if after := r.Attacker.PosteriorPercent(); found && after != "" {
		howBad = append(howBad, fmt.Sprintf("Likely: one answer that shows the event changes the probability of the right dataset from %s to %s.", r.Attacker.PriorPercent(), after))
	}
	if e := r.Event; e != nil {
		prefix := ""
		if !found {
			prefix = "Nothing is certified. The event with the most evidence: "
		}
		what = append(what, prefix+fmt.Sprintf("%s; about %.3g %% of the answers on D0 and %.3g %% on D1", e.Description, 100*float64(e.D0), 100*float64(e.D1)))
	}
	if c := r.Control; c.Blocks() {
		writeControl(func(name, format string, args ...any) { what = append(what, name+": "+fmt.Sprintf(format, args...)) }, r)
		why = append(why, "Likely: "+causeOfCopy)
	}
	if d := r.Deterministic; d != nil {
		what = append(what, d.Description)
	}
	for _, warning := range r.Warnings {
		why = append(why, warning.String())
	}
	return howBad, what, why
}

// findingAnswers returns the answers of a finding.
func findingAnswers(f *analysis.Finding) (howBad, what, why []string) {
	name := Basis(f.HowBad)
	howBad = []string{show.Capital(name) + ": " + f.HowBad.Text}
	if e := f.HowBad.Event; e != nil {
		howBad = append(howBad, "Likely: "+e.Text()+".")
	}
	what = []string{"Likely: " + f.What.Text.String()}
	for _, p := range f.What.Parts {
		what = append(what, fmt.Sprintf("  %s: %.0f %% of the evidence", p.Where, 100*float64(p.Share)))
	}
	for _, text := range causesText(f.Causes) {
		why = append(why, show.Capital(text))
	}
	return howBad, what, why
}

// causesText says what the probable causes are: one text each.
func causesText(causes []diagnosis.Cause) (all []string) {
	for i, c := range causes {
		if Repeats(causes, i) {
			all = append(all, fmt.Sprintf("likely as well: %s. These trials do not separate the two. See %s", c.Name, c.Page))
			continue
		}
		all = append(all, fmt.Sprintf("likely: %s. %s See %s", c.Name, c.Text, c.Page))
	}
	return all
}

// Repeats reports whether a cause is shown by the figures that the one before has. Of causes whose texts are withheld
// nothing is known.
func Repeats(causes []diagnosis.Cause, i int) bool {
	text := causes[i].Text.Reveal()
	return i > 0 && text != "" && text == causes[i-1].Text.Reveal()
}

// notProven lists what an audit with this verdict does not show.
func notProven(verdict string, r analysis.Report) []string {
	var all []string
	switch verdict {
	case string(analysis.Violation):
		all = []string{
			"The bound is a lower one, on these copies and these units: the true privacy loss may be larger, for them and for others.",
			"What gives it away and the probable cause are estimates; only the lower bound is certified.",
		}
		if r.Confidence > 0 {
			all = append(all, fmt.Sprintf("An audit of a right mechanism reports a violation with a probability of at most %.3g; dpwatch audits reproduce runs fresh trials.", 1-r.Confidence))
		}
	case string(analysis.NoEvidence):
		all = []string{"No evidence is not a proof of privacy: other units, other data and rarer events were not tried."}
		if least := float64(r.MinimalDetectable); !math.IsNaN(least) {
			all = append(all, fmt.Sprintf("A privacy loss below epsilon %.3g would often not have been found with these trials.", least))
		}
	default:
		all = []string{"There is no verdict: the audit shows neither that the query is private nor that it is not."}
	}
	if r.Claimed.Source == "comment" || r.Claimed.Source == "setting" {
		all = append(all, "The claim comes from the client ("+r.Claimed.Source+"), not from the engine.")
	}
	return all
}
