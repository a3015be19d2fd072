package read

import (
	"fmt"
	"io"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/show"
)

// whatNow returns what to do about an audit.
func (x *Explanation) whatNow() []string {
	switch x.Verdict {
	case string(analysis.Violation):
		all := []string{
			fmt.Sprintf("Check it with fresh trials: dpwatch audits reproduce %s --config dpwatch.yaml", x.ID),
			"Repair the mechanism in the engine. dpwatch notices the new engine (or POST /api/engine), audits the query again and reports the violation as resolved.",
		}
		if x.Accepted == nil {
			all = append(all, fmt.Sprintf("Until then, if it is known: dpwatch audits accept %s --config dpwatch.yaml --until DATE --reason TEXT", x.ID))
		} else {
			all = append(all, fmt.Sprintf("It is accepted %s. To end that: dpwatch audits accept %s --config dpwatch.yaml --revoke --reason TEXT", AcceptedText(x.Accepted), x.ID))
		}
		return all
	case string(analysis.NoEvidence):
		return []string{"Nothing. The audit is repeated after audit.repeat, and when the engine or the copies change."}
	case string(analysis.Inconclusive):
		return []string{"See the reason above. With more trials: dpwatch audits reproduce " + x.ID + " --config dpwatch.yaml --max-trials N"}
	}
	return []string{"Wait for the verdict: dpwatch explain " + x.ID + " --address ADDRESS --full shows what the audit waits for."}
}

// Write writes the explanation as text.
func (x Explanation) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "audit %s: %s\n", x.ID, show.Words(x.Verdict))
	claim := "nothing"
	if text := ClaimText(x.Claimed); text != "-" {
		claim = fmt.Sprintf("epsilon %s, from %s", text, x.Claimed.Source)
		if x.Rule != "" {
			claim += " " + x.Rule
		}
	}
	rows := [][2]string{{"query", x.Summary}, {"engine", x.Engine}, {"claimed", claim}, {"key", x.Key}}
	if to := DestinationsText(x.Destinations); to != "" {
		rows = append(rows, [2]string{"answers went", to})
	}
	if x.Accepted != nil {
		rows = append(rows, [2]string{"accepted", AcceptedText(x.Accepted)})
	}
	if x.Statement != "" {
		rows = append(rows, [2]string{"statement", x.Statement})
	}
	rows = append(rows, ParameterRows(x.Parameters)...)
	for _, next := range x.Then {
		rows = append(append(rows, [2]string{"then", next.Statement}), ParameterRows(next.Parameters)...)
	}
	if x.SQL != nil {
		rows = append(rows, [2]string{"SQL on D0", x.SQL.D0}, [2]string{"SQL on D1", x.SQL.D1})
	}
	show.Section(&b, "", rows)
	for _, part := range x.Parts() {
		var rows [][2]string
		for _, line := range part.Lines {
			rows = append(rows, [2]string{"", line})
		}
		show.Section(&b, part.Title, rows)
	}
	show.Section(&b, "What operators did, the latest first", ActionRows(x.Actions))
	if x.Audit.Key != "" {
		if err := x.Audit.Write(&b); err != nil {
			return err
		}
		var history [][2]string
		for _, e := range x.History {
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

// explainedPart is a part of an explanation: a question and its answers.
type explainedPart struct {
	Title string
	Lines []string
}

// Parts returns the questions with their answers. Those without lines are left out when they are shown.
func (x *Explanation) Parts() []explainedPart {
	or := func(lines []string, none string) []string {
		if len(lines) == 0 {
			return []string{none}
		}
		return lines
	}
	return []explainedPart{
		{"How bad?", or(x.HowBad, "Not known yet.")},
		{"What gives it away?", or(x.What, "Nothing was found.")},
		{"Why, probably?", or(x.Why, "There is no diagnosis.")},
		{"Who?", x.Who.lines()},
		{"What now?", x.WhatNow},
		{"What the audit does not prove", x.NotProven},
		{"Not read", x.Notes},
	}
}
