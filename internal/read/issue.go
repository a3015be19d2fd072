package read

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/diagnosis"
	"github.com/dpwatch/dpwatch/internal/app/show"
)

// Issue is a violation for the maintainers of the engine. It shows the statement and the answers if it has them: they may
// hold values of rows.
type Issue struct {
	Report     analysis.Report
	ID         string // of the audit in a ledger; "" = none
	Summary    string // of the statement, without literals
	Statement  string // "" = withheld
	Then       []Following
	Parameters []string
	SQL        *SQLPair // what is replayed; nil = withheld
	Charts     *Charts  // nil = there are none
	Relation   string   // between D0 and D1: remove, replace or extreme; "" = not known
	Shrunk     *Shrunk  // nil = smaller copies were not looked for
	Version    string   // of dpwatch; "" = not known
}

// Issue returns the violation of an audit as an issue. The error says that there is none.
func (d *Details) Issue() (Issue, error) {
	r := d.Audit.Result()
	if r.Verdict != analysis.Violation {
		return Issue{}, fmt.Errorf("audit %s has no violation in its present evidence: there is nothing to report to the maintainers of the engine", d.Audit.ID)
	}
	return Issue{
		Report: r, ID: d.Audit.ID, Summary: d.Audit.Summary, Statement: d.Asked.Statement, Then: d.Asked.Then, Parameters: d.Asked.Parameters,
		SQL: d.Audit.SQL, Charts: d.Charts,
	}, nil
}

// Markdown writes the issue. What only people know is left as TODO.
func (x *Issue) Markdown() string {
	r := x.Report
	var b strings.Builder
	paragraph := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	section := func(title string) { paragraph("## %s", title) }
	code := func(kind, text string) { paragraph("%s", fenced(kind, text)) }

	paragraph("# %s", show.Capital(x.title()))
	paragraph("TODO: name and version of the engine; where it promises epsilon %s for this query, and for which neighbouring relation.", ClaimText(r.Claimed))
	section("What is asked")
	if x.Statement != "" {
		code("sql", x.Statement)
		for _, next := range x.Then {
			code("sql", next.Statement)
		}
		if len(x.Parameters) > 0 {
			paragraph("Parameters: %s.", strings.Join(x.Parameters, ", "))
		}
	} else {
		code("sql", x.Summary)
		paragraph("Literals are withheld; `dpwatch explain %s -o issue --reveal` shows them.", x.ID)
	}
	section("What is seen")
	paragraph("%s", x.seen())
	if x.Charts != nil {
		if h := x.Charts.Histogram; h != nil {
			code("", h.text())
		}
		if g := x.Charts.Categories; g != nil {
			code("", g.text())
		}
	}
	section("What is expected")
	paragraph("%s", x.expected())
	if f := r.Finding; f != nil {
		section("What may be the cause")
		b.WriteString(causesMarkdown(f.Causes))
	}
	section("How to see it again")
	if sql := x.SQL; sql != nil {
		paragraph("D0 has the rows of a person, D1 %s. Each statement runs as often as one likes, with fresh noise:", relationWords(x.Relation))
		code("sql", "-- with the person\n"+sql.D0+";\n-- neighbouring data\n"+sql.D1+";")
	} else {
		paragraph("Run the query many times on data with a person (D0), and on data that %s (D1).", relationWords(x.Relation))
	}
	if s := x.Shrunk; s != nil {
		paragraph("On smaller copies of D0 and D1, %s.", s.sentence())
		if len(s.Script) > 0 {
			paragraph("These statements make D0 and D1 where the functions and types that they name exist. TODO: replace what is a person's data.")
			code("sql", strings.Join(s.Script, ";\n")+";")
		}
	}
	if x.Shrunk == nil || len(x.Shrunk.Script) == 0 {
		paragraph("TODO: the smallest D0 and D1 on which it still shows, with no person's data.")
	}
	section("What is not claimed")
	for _, text := range notProven(string(r.Verdict), r) {
		fmt.Fprintf(&b, "- %s\n", text)
	}
	fmt.Fprintf(&b, "- The data on which it was seen are not those of this report.\n\nFound with dpwatch %s.\n", cmp.Or(x.Version, "(unknown version)"))
	return b.String()
}

// title is the likeliest cause. Of causes that the trials do not separate, it is what all of them have in common.
func (x *Issue) title() string {
	f := x.Report.Finding
	if f == nil || len(f.Causes) == 0 {
		return "an answer shows whether one person is in the data"
	}
	for _, c := range unseparated(f.Causes) {
		if c.Code == diagnosis.NoiseScale {
			return c.Name
		}
	}
	return f.Causes[0].Name
}

// unseparated returns the first of the causes, with those after it that the same figures show.
func unseparated(causes []diagnosis.Cause) []diagnosis.Cause {
	n := 1
	for n < len(causes) && Repeats(causes, n) {
		n++
	}
	return causes[:n]
}

// causesMarkdown says what may be the cause.
func causesMarkdown(causes []diagnosis.Cause) string {
	if len(causes) == 0 {
		return "It is open.\n\n"
	}
	var b strings.Builder
	for len(causes) > 0 {
		same := unseparated(causes)
		causes = causes[len(same):]
		if len(same) == 1 {
			fmt.Fprintf(&b, "%s. %s\n\n", show.Capital(same[0].Name), same[0].Text)
			continue
		}
		fmt.Fprintf(&b, "%s The trials do not separate:\n\n", same[0].Text)
		for _, c := range same {
			fmt.Fprintf(&b, "- %s\n", c.Name)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// seen says what the trials showed.
func (x *Issue) seen() string {
	text := fmt.Sprintf("%d pairs of trials, each a fresh execution on D0 and one on D1.", x.Report.Trials.D0)
	if f := x.Report.Finding; f != nil {
		text += fmt.Sprintf(" Seen: %s.", f.What.Text)
		if e := f.HowBad.Event; e != nil {
			text += " As an estimate, " + e.Text() + "."
		}
	}
	return text
}

// expected says what the claim allows.
func (x *Issue) expected() string {
	r := x.Report
	if !r.HasBound() {
		return "Answers that vary: they are always the same, and differ between D0 and D1, so that no epsilon holds."
	}
	claimed := "Every event is at most e^epsilon times as likely on one of D0 and D1 as on the other"
	if r.Claimed.Delta > 0 {
		claimed += ", up to delta"
	}
	return fmt.Sprintf("%s, for epsilon %s. The trials show, at confidence %g, that epsilon is %s.", claimed, ClaimText(r.Claimed), r.Confidence, analysis.AtLeast(r.EpsilonLower, r.Claimed.Epsilon))
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
	wide := max(25, utf8.RuneCountInString(h.Label))
	fmt.Fprintf(&b, "%-*s %7s %7s\n", wide, h.Label, "D0", "D1")
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
	empty := func(i int) bool { return i >= 0 && i < n && sum(h.D0, i)+sum(h.D1, i) == 0 }
	for i := 0; i < n; i += each {
		k0, k1 := sum(h.D0, i), sum(h.D1, i)
		if empty(i) && empty(i-each) && empty(i+each) { // of a stretch without answers the first and the last
			if !empty(i - 2*each) {
				b.WriteString("...\n")
			}
			continue
		}
		fmt.Fprintf(&b, "%-*s %7d %7d  %-*s|%s\n", wide, fmt.Sprintf("%.5g to %.5g", h.Edges[i], h.Edges[min(i+each, n)]), k0, k1, textBar, textOf("#", k0, most), textOf("o", k1, most))
	}
	return b.String()
}

// text lists how often each answer came.
func (g *Categories) text() string {
	var b strings.Builder
	wide := max(25, utf8.RuneCountInString(g.Label))
	fmt.Fprintf(&b, "%-*s %7s %7s\n", wide, g.Label, "D0", "D1")
	for i, name := range g.Names {
		fmt.Fprintf(&b, "%-*s %7d %7d\n", wide, name, g.D0[i], g.D1[i])
	}
	return b.String()
}

// textOf returns a bar.
func textOf(mark string, count, most int) string {
	return strings.Repeat(mark, int(math.Ceil(textBar*float64(count)/float64(most))))
}
