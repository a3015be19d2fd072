package read

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/show"
)

// whatNow returns what to do about an audit.
func whatNow(a *Audit) []string {
	switch a.Verdict {
	case string(analysis.Violation):
		all := []string{
			fmt.Sprintf("Check it with fresh trials: dpwatch audits reproduce %s --config dpwatch.yaml", a.ID),
			"Repair the mechanism in the engine. dpwatch notices the new engine (or POST /api/engine), audits the query again and reports the violation as resolved.",
		}
		if a.Accepted == nil {
			all = append(all, fmt.Sprintf("Until then, if it is known: dpwatch audits accept %s --config dpwatch.yaml --until DATE --reason TEXT", a.ID))
		} else {
			all = append(all, fmt.Sprintf("It is accepted %s. To end that: dpwatch audits accept %s --config dpwatch.yaml --revoke --reason TEXT", AcceptedText(a.Accepted), a.ID))
		}
		return all
	case string(analysis.NoEvidence):
		return []string{"Nothing. The audit is repeated after audit.repeat, and when the engine or the copies change."}
	case string(analysis.Inconclusive):
		return []string{"See the reason above. With more trials: dpwatch audits reproduce " + a.ID + " --config dpwatch.yaml --max-trials N"}
	}
	return []string{"Wait for the verdict: dpwatch explain " + a.ID + " --address ADDRESS --full shows what the audit waits for."}
}

// Write writes the explanation as text.
func (x Explanation) Write(w io.Writer) error {
	var b strings.Builder
	a := &x.Audit
	fmt.Fprintf(&b, "audit %s: %s\n", a.ID, show.Words(a.Verdict))
	claim := "nothing"
	if text := a.ClaimText(); text != "-" {
		claim = strings.TrimSpace(fmt.Sprintf("epsilon %s, from %s %s", text, a.Result().Claimed.Source, a.ClaimRule))
	}
	rows := [][2]string{{"query", a.Summary}, {"engine", a.EngineName}, {"claimed", claim}, {"key", a.Key}}
	if to := DestinationsText(a.Destinations); to != "" {
		rows = append(rows, [2]string{"answers went", to})
	}
	if a.Accepted != nil {
		rows = append(rows, [2]string{"accepted", AcceptedText(a.Accepted)})
	}
	if x.Asked.Statement != "" {
		rows = append(rows, [2]string{"statement", x.Asked.Statement})
	}
	rows = append(rows, ParameterRows(x.Asked.Parameters)...)
	for _, next := range x.Asked.Then {
		rows = append(append(rows, [2]string{"then", next.Statement}), ParameterRows(next.Parameters)...)
	}
	if a.SQL != nil {
		rows = append(rows, [2]string{"SQL on D0", a.SQL.D0}, [2]string{"SQL on D1", a.SQL.D1})
	}
	show.Section(&b, "", rows)
	for _, answer := range x.Answers() {
		var rows [][2]string
		for _, line := range answer.Lines {
			rows = append(rows, [2]string{"", line})
		}
		show.Section(&b, answer.Question, rows)
	}
	show.Section(&b, "What operators did, the latest first", ActionRows(x.Ledger.Actions))
	if x.Full {
		if err := a.Write(&b); err != nil {
			return err
		}
		var history [][2]string
		for _, e := range WithholdReasons(x.Ledger.History) {
			history = append(history, [2]string{show.Moment(e.At), strings.TrimSpace(e.State + " " + show.Words(e.Verdict) + " " + e.Reason)})
		}
		show.Section(&b, "history, the latest first", history)
	}
	_, err := io.WriteString(w, show.Printable(b.String()))
	return err
}

// ParameterRows returns bound parameters as rows: $1 and its text.
func ParameterRows(texts []string) (rows [][2]string) {
	for i, text := range texts {
		rows = append(rows, [2]string{fmt.Sprintf("$%d", i+1), text})
	}
	return rows
}

// Answer is a question about an audit with its answer.
type Answer struct {
	Question string   `json:"question"`
	Lines    []string `json:"lines"`
}

// The questions about an audit.
const (
	HowBad       = "How bad?"
	GivesAway    = "What gives it away?"
	Why          = "Why, probably?"
	Whom         = "Who?"
	WhatNow      = "What now?"
	DoesNotProve = "What the audit does not prove"
	NotRead      = "Not read"
)

// NoDiagnosis is the answer to Why where there is no diagnosis.
const NoDiagnosis = "There is no diagnosis."

// Answers returns the questions that have answers: the five, then what is not proven, then what could not be read.
func (x *Explanation) Answers() []Answer {
	or := func(lines []string, none string) []string {
		if len(lines) == 0 {
			return []string{none}
		}
		return lines
	}
	all := []Answer{
		{HowBad, or(x.HowBad, "Not known yet.")},
		{GivesAway, or(x.What, "Nothing was found.")},
		{Why, or(x.Why, NoDiagnosis)},
		{Whom, x.Who.lines(x.Audit.Claim())},
		{WhatNow, x.WhatNow},
		{DoesNotProve, x.NotProven},
		{NotRead, x.Notes},
	}
	return slices.DeleteFunc(all, func(a Answer) bool { return len(a.Lines) == 0 })
}
