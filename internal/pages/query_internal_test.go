package pages

import (
	"html/template"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/diagnosis"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/read"
)

// leaking returns the details of an audit whose answers on D0 have a group of one person, which those on D1 lack, and
// groups with whole numbers.
func leaking(t *testing.T, values bool) read.Details {
	t.Helper()
	a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	one := func(names ...string) (o analysis.Outcome) {
		o.Columns = []analysis.Column{{Name: "income_class", Discrete: true}, {Name: "anon_count"}}
		for _, name := range names {
			o.Rows = append(o.Rows, []analysis.Value{{Kind: analysis.Text, Text: name}, {Kind: analysis.Number, Num: float64(40 + r.IntN(5) - r.IntN(5))}})
		}
		return o
	}
	for range 300 {
		a.Add(one("highest", "lowly", "middling", "topmost"), one("highest", "lowly", "middling"))
	}
	report, figures := a.Report(), a.QuickFigures()
	if values {
		report = report.Reveal()
	}
	at := time.Now().Add(-90 * time.Second)
	audit := read.Audit{
		ID: "0123456789ab", Key: "0123456789abcdef", Summary: "SELECT income_class, anon_count(id, ?) FROM people GROUP BY income_class", User: "app", Neighbour: "d1",
		Verdict: string(report.Verdict), Report: &report, Seen: 239, FirstSeen: at, LastSeen: at,
		Standing: &read.Standing{FirstSeen: at, Claimed: 1, Lower: report.EpsilonLower, Change: &finding.Change{At: at.Add(-time.Minute), Functions: []string{"public.anon_count"}}},
	}
	if values {
		audit.SQL = &read.SQLPair{D0: "SELECT income_class FROM d0.people", D1: "SELECT income_class FROM d1.people"}
	}
	x := read.Explain(audit, &read.Stored{
		Key: audit.Key, Engine: "e", Begun: 1, Executions: 239, FirstSeen: at, LastSeen: at, DataEpoch: "c", History: []read.Event{{At: at, State: "decided", Verdict: "violation"}},
		Users: []read.User{{User: "app", Application: "dashboard", Database: "shop", Executions: 239, FirstSeen: at, LastSeen: at}},
	})
	if values {
		x.Asked.Statement = "SELECT income_class, anon_count(id, 1.0) FROM people GROUP BY income_class"
	}
	d := read.NewDetails(x, values)
	d.Charts = read.NewCharts(&figures, values)
	d.Charts.Fleet = d.Charts.Threshold
	return d
}

// rendered returns the page of a query as HTML.
func rendered(t *testing.T, d *read.Details) string {
	t.Helper()
	s := &site{templates: map[string]*template.Template{}}
	if err := s.parse(); err != nil {
		t.Fatal(err)
	}
	data := newQueryData(d)
	data.NoValues = !d.Values
	var b strings.Builder
	if err := s.templates["query"].Execute(&b, &frame{content: content{queryTitle(d), data}}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The page of a violation answers in this order what is claimed and proven, what gives it away, why, and what to do. It
// says nothing twice, and needs no profile, which takes time.
func TestQueryPage(t *testing.T) {
	t.Parallel()
	d := leaking(t, true)
	page := rendered(t, &d)
	bound := analysis.FormatLower(float64(d.Audit.Report.EpsilonLower))
	at := 0
	for _, want := range []string{
		"Leaks at least epsilon " + bound + ", claims 1.", "SELECT income_class, anon_count(id, 1.0) FROM people",
		"app (dashboard), 239 runs, last <time datetime=", `">1 minute ago</time>, confirmed <time datetime=`,
		"proven: at least " + bound, "claim 1", "Confidence 0.95", "An attacker goes from <strong>50 %</strong> to <strong>at least 98 %</strong>",
		"Gives it away: <strong>column anon_count of group income_class=&#34;topmost&#34;</strong>",
		"What an analyst sees", "300 of 300 answers on D0, 0 of 300 on D1", "How often each answer was given", "any number",
		">Why <", "A group is released or suppressed without a noisy threshold.", ">Fix<", "List the groups from a public table", "<details><summary>SQL example</summary><pre><code>-- leaks", "-- fixed\n", "</pre></details>", `href="/causes#partition_selection"`,
		">Since<", "Function public.anon_count changed 1 minute before it was found.",
		">Groups<", "The group that gives the answer away", ">income_class=&#34;topmost&#34;</text>", ">income_class=&#34;",
		"<summary>Evidence and bound", "crossed the threshold", `<details data-later="/queries/0123456789ab/profile"><summary>Privacy profile`, `href="/queries/0123456789ab/profile"`,
		"<summary>Replayed SQL", "<del>d0</del>", "<summary>People and clients", "<summary>History", "<summary>On the command line", "dpwatch audits reproduce", "<summary>What the audit does not prove",
	} {
		i := strings.Index(page[at:], want)
		if i < 0 {
			t.Fatalf("no %q after %.200q in\n%s", want, page[max(0, at-200):at], page)
		}
		at += i
	}
	if strings.Contains(page, "The privacy profile: for each epsilon") {
		t.Error("the page has the chart of the privacy profile")
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?s)<(p|li|strong|h1|h2|summary)>(.*?)</`).FindAllStringSubmatch(page, -1) {
		if text := m[2]; seen[text] && text != "The values as a table" && !strings.HasPrefix(text, "<svg") {
			t.Errorf("%q is there twice", text)
		} else {
			seen[text] = true
		}
	}
}

// Without the role auditor, the page has no value of a row.
func TestQueryPageWithoutValues(t *testing.T) {
	t.Parallel()
	d := leaking(t, false)
	page := rendered(t, &d)
	for _, value := range []string{"topmost", "middling", "1.0)", "d0.people"} {
		if strings.Contains(page, value) {
			t.Errorf("the page has %q:\n%s", value, page)
		}
	}
	for _, want := range []string{"Values of rows are withheld", "How often each answer was given, group 4 of 4", ">any number</text>", "Gives it away: <strong>column anon_count of group 4 of 4", "A group is released"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
}

// The page of an honest query claims nothing about a leak.
func TestQueryPageWithoutLeak(t *testing.T) {
	t.Parallel()
	d := leaking(t, true)
	r := analysis.Refused(analysis.Claim{Epsilon: 1, Delta: 1e-5}, .95, "")
	r.Verdict, r.EpsilonLower, r.Claimed.Source = analysis.NoEvidence, 0, "comment"
	d.Audit.Report, d.Audit.Verdict, d.Audit.Standing = &r, string(r.Verdict), nil
	d.Answers = read.NewDetails(read.Explain(d.Audit, &d.Ledger), true).Answers
	page := rendered(t, &d)
	for _, want := range []string{"No leak beyond the claim was found.", "nothing proven", "The claim has delta 1e-05; source of the claim: comment.", "What now?", "not a proof of privacy"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	for _, word := range []string{"An attacker", "Gives it away", ">Fix<", ">Since<", "(likely)", "confirmed", "On the command line"} {
		if strings.Contains(page, word) {
			t.Errorf("%q in\n%s", word, page)
		}
	}
}

// Every cause of a violation has a fix, which ends where its section does, and at most one example, which is folded.
func TestFixes(t *testing.T) {
	t.Parallel()
	for _, code := range diagnosis.Codes() {
		fix := string(fixes()[string(code)])
		if n := strings.Count(fix, "<pre>"); !strings.HasPrefix(fix, "<p>") || strings.Contains(fix, "<h2") || n > 1 || strings.Count(fix, "<details>") != n || strings.Count(fix, "</details>") != n {
			t.Errorf("%s: %q", code, fix)
		}
	}
}

// The privacy profile marks the claim.
func TestProfileChart(t *testing.T) {
	t.Parallel()
	d := leaking(t, true)
	d.Charts.Delta, d.Charts.Profile = 1e-5, []read.ProfilePoint{{Epsilon: 0, Delta: .5}, {Epsilon: 3, Delta: .25}}
	if drawn := string(profileChart(d.Charts).HTML()); !strings.Contains(drawn, "claimed epsilon: 1") || !strings.Contains(drawn, "claimed delta: 1e-05") {
		t.Error(drawn)
	}
}

// The overview groups violations by cause, in the order of the first of each, and accepted ones apart.
func TestByCause(t *testing.T) {
	t.Parallel()
	audit := func(id string, code diagnosis.Code, accepted bool) (a read.Audit) {
		a.ID = id
		if code != "" {
			a.Report = &analysis.Report{Finding: &analysis.Finding{Causes: []diagnosis.Cause{{Code: code, Name: "cause " + string(code)}}}}
		}
		if accepted {
			a.Accepted = &read.Accepted{}
		}
		return a
	}
	var got []string
	for _, g := range byCause([]read.Audit{audit("1", "a", false), audit("2", "b", false), audit("3", "a", false), audit("4", "", false), audit("5", "b", true)}) {
		text := g.Name + " " + g.Code + ":"
		for _, a := range g.Found {
			text += " " + a.ID
		}
		got = append(got, text)
	}
	if want := []string{"Cause a a: 1 3", "Cause b b: 2", "Cause not known : 4", "Accepted : 5"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Numbers are drawn in their order for readers from whom values are withheld: the page has no value of an answer.
func TestAnswersWithoutValues(t *testing.T) {
	t.Parallel()
	a, err := analysis.New(analysis.Claim{Epsilon: .5}, analysis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 3))
	one := func(shift float64) analysis.Outcome {
		return analysis.Outcome{Columns: []analysis.Column{{Name: "total"}}, Rows: [][]analysis.Value{{{Kind: analysis.Number, Num: 7e5 + shift + r.ExpFloat64() - r.ExpFloat64()}}}}
	}
	for range 300 {
		a.Add(one(2), one(0))
	}
	d, figures := leaking(t, false), a.QuickFigures()
	d.Charts = read.NewCharts(&figures, false)
	all := answerCharts(&d)
	if len(all) != 1 {
		t.Fatalf("%d charts", len(all))
	}
	drawn := string(all[0])
	for _, want := range []string{"column total.", ">smallest</text>", ">largest</text>", "each step is a tenth", `<th scope="row">10 of 10</th>`, "event, likelier on D"} {
		if !strings.Contains(drawn, want) {
			t.Errorf("no %q in\n%s", want, drawn)
		}
	}
	if value := regexp.MustCompile(`[67]e5|[67]\d{5}|[67]\d\d,\d{3}`).FindString(drawn); value != "" {
		t.Errorf("the chart has the value %s:\n%s", value, drawn)
	}
}

// The caption of the answers accuses a range of values only where one is the event.
func TestAnswersCaption(t *testing.T) {
	t.Parallel()
	d := leaking(t, true)
	d.Charts = &read.Charts{Histogram: &read.Histogram{Label: "column x", Edges: []float64{0, 1, 2}, D0: []int{1, 2}, D1: []int{2, 1}, Direction: "D0"}}
	without := answerCharts(&d)[0]
	d.Charts.Histogram.Event = [][2]float64{{0, 1}}
	with := answerCharts(&d)[0]
	if !strings.Contains(string(without), "not a range of these values") || strings.Contains(string(without), "event") || !strings.Contains(string(with), "an answer gives the person away") || !strings.Contains(string(with), "event, likelier on D0") {
		t.Errorf("%s\n%s", without, with)
	}
}
