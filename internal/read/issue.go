package read

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
)

// IssueFacts are what an issue says beside the audit.
type IssueFacts struct {
	Version  string // of dpwatch
	Relation string // between D0 and D1: remove, replace or extreme; "" = not known
}

// Issue describes a violation for the maintainers of the engine, as Markdown. What only people know is left as TODO. It
// shows the statement, and the answers, only if the details do: they may hold values of rows. The error says that there is
// no violation.
func (d *Details) Issue(f IssueFacts) (string, error) {
	a := &d.Audit
	if !a.Violation() {
		return "", fmt.Errorf("audit %s has no violation: there is nothing to report to the maintainers of the engine", a.ID)
	}
	r := a.Result()
	var b strings.Builder
	paragraph := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	section := func(title string) { paragraph("## %s", title) }
	code := func(kind, text string) { paragraph("%s", fenced(kind, text)) }

	title := "an answer shows whether one person is in the data"
	if cause := a.Cause(); cause != "" {
		title = cause
	}
	paragraph("# %s", strings.ToUpper(title[:1])+title[1:])
	paragraph("TODO: name and version of the engine; where it promises epsilon %s for this query, and for which neighbouring relation.", a.ClaimText())
	section("What is asked")
	if sql := d.Asked.Statement; sql != "" {
		code("sql", sql)
		for _, next := range d.Asked.Then {
			code("sql", next.Statement)
		}
		if len(d.Asked.Parameters) > 0 {
			paragraph("Parameters: %s.", strings.Join(d.Asked.Parameters, ", "))
		}
	} else {
		code("sql", a.Summary)
		paragraph("Literals are withheld; `dpwatch explain %s -o issue --reveal` shows them.", a.ID)
	}
	section("What is seen")
	paragraph("%s", issueSeen(a, r))
	if d.Charts != nil {
		if h := d.Charts.Histogram; h != nil {
			code("", h.text())
		}
		if g := d.Charts.Categories; g != nil {
			code("", g.text())
		}
	}
	section("What is expected")
	paragraph("%s", issueExpected(a, r))
	if f := r.Finding; f != nil {
		section("What may be the cause")
		if len(f.Causes) == 0 {
			paragraph("It is open.")
		}
		for _, c := range f.Causes {
			paragraph("%s. %s", strings.ToUpper(c.Name[:1])+c.Name[1:], c.Text)
		}
	}
	section("How to see it again")
	if sql := a.SQL; sql != nil {
		paragraph("D0 has the rows of a person, D1 %s. Each statement runs as often as one likes, with fresh noise:", relationWords(f.Relation))
		code("sql", "-- with the person\n"+sql.D0+";\n-- neighbouring data\n"+sql.D1+";")
	} else {
		paragraph("Run the query many times on data with a person (D0), and on data that %s (D1).", relationWords(f.Relation))
	}
	paragraph("TODO: the smallest D0 and D1 on which it still shows, with no person's data.")
	section("What is not claimed")
	for _, text := range notProven(a.Verdict, r) {
		fmt.Fprintf(&b, "- %s\n", text)
	}
	fmt.Fprintf(&b, "- The data on which it was seen are not those of this report.\n\nFound with dpwatch %s.\n", cmp.Or(f.Version, "(unknown version)"))
	return b.String(), nil
}

// issueSeen says what the trials showed.
func issueSeen(a *Audit, r analysis.Report) string {
	text := fmt.Sprintf("%d pairs of trials, each a fresh execution on D0 and one on D1.", a.Trials())
	if f := r.Finding; f != nil {
		text += fmt.Sprintf(" Seen: %s.", f.What.Text)
		if e := f.HowBad.Event; e != nil {
			text += " As an estimate, " + e.Text() + "."
		}
	}
	return text
}

// issueExpected says what the claim allows.
func issueExpected(a *Audit, r analysis.Report) string {
	if a.Deterministic() {
		return "Answers that vary: they are always the same, and differ between D0 and D1, so that no epsilon holds."
	}
	claimed := "Every event is at most e^epsilon times as likely on one of D0 and D1 as on the other"
	if r.Claimed.Delta > 0 {
		claimed += ", up to delta"
	}
	return fmt.Sprintf("%s, for epsilon %s. The trials show, at confidence %g, that epsilon is %s.", claimed, a.ClaimText(), r.Confidence, boundWords(a))
}

func boundWords(a *Audit) string {
	text := a.BoundText()
	if above, ok := strings.CutPrefix(text, "> "); ok {
		return "more than " + above
	}
	return "at least " + text
}

// relationWords says what D1 is, of D0.
func relationWords(relation string) string {
	switch relation {
	case "remove":
		return "does not have these rows"
	case "replace":
		return "has other values in these rows"
	case "extreme":
		return "has one person more"
	}
	return "differs in this person"
}

// fenced returns a code block, whatever its text holds.
func fenced(kind, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + kind + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}

// Bars of a histogram in text.
const (
	textBins = 20
	textBar  = 24 // characters
)

// text draws the counts of both worlds: # is a trial on D0, o one on D1, as shares of the largest count.
func (h *Histogram) text() string {
	n := min(len(h.D0), len(h.D1), len(h.Edges)-1)
	each := max(1, (n+textBins-1)/textBins)
	var b strings.Builder
	fmt.Fprintf(&b, "%-25s %7s %7s\n", h.Label, "D0", "D1")
	most := 1
	sum := func(counts []int, from int) (total int) {
		for _, k := range counts[from:min(from+each, n)] {
			total += k
		}
		return total
	}
	for i := 0; i < n; i += each {
		most = max(most, sum(h.D0, i), sum(h.D1, i))
	}
	for i := 0; i < n; i += each {
		k0, k1 := sum(h.D0, i), sum(h.D1, i)
		fmt.Fprintf(&b, "%-25s %7d %7d  %-*s|%s\n", fmt.Sprintf("%.5g to %.5g", h.Edges[i], h.Edges[min(i+each, n)]), k0, k1, textBar, textOf("#", k0, most), textOf("o", k1, most))
	}
	return b.String()
}

// text lists how often each answer came.
func (g *Categories) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-25s %7s %7s\n", g.Label, "D0", "D1")
	for i, name := range g.Names {
		fmt.Fprintf(&b, "%-25s %7d %7d\n", name, g.D0[i], g.D1[i])
	}
	return b.String()
}

// textOf returns a bar.
func textOf(mark string, count, most int) string {
	return strings.Repeat(mark, int(math.Ceil(textBar*float64(count)/float64(most))))
}
