package pages

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/chart"
	"github.com/dpwatch/dpwatch/internal/read"
)

// story is what the page of a query shows before its details: what leaks, how much, why, and what to do.
type story struct {
	Gauge     template.HTML
	Certainty string    // of the proven bound
	Attacker  *attacker // nil without a bound of a violation
	GivesAway string
	Sees      []string
	Answers   []template.HTML // charts
	Why       []reason
	Groups    template.HTML
	Evidence  []string
}

// attacker has the probabilities of the right dataset before and after an answer.
type attacker struct{ Before, After string }

// reason is a section about why something leaks, or what to do.
type reason struct {
	Title  string
	Likely bool
	Lines  []string
	HTML   template.HTML
	Cause  string     // its section of the page of causes
	At     *time.Time // when it began
}

// Strip reports whether there are facts at a glance.
func (s story) Strip() bool { return s.Gauge != "" || s.Attacker != nil || s.GivesAway != "" }

func newStory(d *read.Details) story {
	r := d.Audit.Result()
	s := story{Answers: answerCharts(d), Groups: groupChart(d).HTML()}
	claim, lower := d.Audit.Claim(), d.Audit.ViolationBound()
	if !d.Audit.Violation() && !r.HasBound() {
		lower = analysis.Float(math.NaN())
	}
	if !d.Audit.Deterministic() { // for which no epsilon holds
		s.Gauge = chart.Gauge(float64(claim), float64(lower), fmt.Sprintf("claim %.4g", float64(claim)), provenText(claim, lower), claimAndBound(claim, lower))
	}
	if lower > 0 && r.Confidence > 0 {
		s.Certainty = fmt.Sprintf("Confidence %.10g", r.Confidence)
	}
	if f := r.Finding; f != nil {
		s.ofFinding(f, r)
	} else {
		s.ofAnswers(d)
	}
	if v := d.Audit.Standing; v != nil {
		since := reason{Title: "Since", Lines: []string{"No change of the engine before it was found is known."}}
		if c := v.Change; c != nil {
			text := sentenceOf(c.What() + " changed " + spell(v.FirstSeen.Sub(c.At)) + " before it was found")
			if c.Label != "" {
				text = strings.TrimSuffix(text, ".") + " (" + c.Label + ")."
			}
			since.Lines, since.At = []string{text}, &c.At
		}
		s.Why = append(s.Why, since)
	}
	return s
}

// provenText names a proven bound.
func provenText(claim, lower analysis.Float) string {
	if !(lower > 0) {
		return "nothing proven"
	}
	return "proven: " + analysis.AtLeast(lower, claim)
}

// ofFinding fills in what a finding says.
func (s *story) ofFinding(f *analysis.Finding, r analysis.Report) {
	if len(f.HowBad.Answers) > 0 {
		s.Attacker = &attacker{r.Attacker.PriorPercent(), f.HowBad.Answers[0].Percent()}
	}
	s.GivesAway = givesAway(r.Event, f.What.Parts)
	s.Sees = []string{sentenceOf(f.What.Text.String())}
	if len(f.What.Parts) > 1 { // the text names the first one
		for _, p := range f.What.Parts {
			s.Sees = append(s.Sees, sentenceOf(fmt.Sprintf("%s: %.0f %% of the evidence", p.Where, 100*float64(p.Share))))
		}
	}
	for i, c := range f.Causes {
		title := "Why"
		if i > 0 {
			title = "Or"
		}
		text := c.Text.String()
		if read.Repeats(f.Causes, i) {
			text = "The trials do not separate it from the one before."
		}
		s.Why = append(s.Why, reason{Title: title, Likely: true, Lines: []string{sentenceOf(c.Name), text}})
		if i == 0 {
			s.Why = append(s.Why, reason{Title: "Fix", HTML: fixes()[string(c.Code)], Cause: string(c.Code)})
		}
	}
	if r.Reason != "" {
		s.Evidence = append(s.Evidence, sentenceOf(r.Reason))
	}
	for _, a := range f.HowBad.Answers {
		if a.Answers > 1 {
			s.Evidence = append(s.Evidence, fmt.Sprintf("After %d answers of the worst kind, each with fresh noise, an attacker gives the right dataset at least %s.", a.Answers, a.Percent()))
		}
	}
	if need := f.HowBad.ClaimNeedsDelta; float64(need) > r.Claimed.Delta {
		s.Evidence = append(s.Evidence, fmt.Sprintf("The claimed epsilon %.4g would need a delta above %.4g.", float64(r.Claimed.Epsilon), float64(need)))
	}
	if e := f.HowBad.Event; e != nil && estimateOf(e) >= float64(r.EpsilonLower) { // one below what is proven says nothing
		s.Evidence = append(s.Evidence, "Likely: "+e.Text()+".")
	}
}

// ofAnswers fills in what is known without a finding.
func (s *story) ofAnswers(d *read.Details) {
	for _, a := range d.Answers {
		switch a.Question {
		case read.HowBad:
			s.Evidence = a.Lines
		case read.GivesAway:
			s.Sees = a.Lines
		case read.Why:
			if a.Lines[0] != read.NoDiagnosis {
				s.Why = append(s.Why, reason{Title: "Why", Lines: a.Lines})
			}
		case read.WhatNow:
			if d.Audit.Verdict != string(analysis.Violation) {
				s.Why = append(s.Why, reason{Title: read.WhatNow, Lines: a.Lines})
			}
		}
	}
}

// givesAway names in a few words where an event is, or where most of its evidence is; "" for one of several places.
func givesAway(e *analysis.Event, parts []analysis.Part) string {
	switch {
	case e == nil:
		return ""
	case e.Partition.String() != "" && e.Partition.String() != "()": // that is a result without keys
		name := e.Partition.String()
		if !strings.HasPrefix(name, "group ") {
			name = "group " + name
		}
		return name
	case e.Column != "":
		return "column " + e.Column
	case len(parts) > 0 && parts[0].Share > .5:
		return parts[0].Where.String()
	}
	return ""
}

// sentenceOf returns a text as a sentence.
func sentenceOf(text string) string {
	if text == "" {
		return ""
	}
	text = show.Capital(text)
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// estimateOf returns the epsilon that an event shows: the least one where it was never seen in the other world.
func estimateOf(e *analysis.EventLoss) float64 {
	if x := float64(e.Epsilon); !math.IsNaN(x) && !math.IsInf(x, 0) {
		return x
	}
	return float64(e.Low)
}
