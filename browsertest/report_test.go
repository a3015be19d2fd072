package browsertest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/browsertest/browser"
	"github.com/dpwatch/dpwatch/internal/chart"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/report"
)

// TestReportPrints: a report loads nothing, is not wider than the paper when it is printed, prints in light colours and
// without the tables behind the charts, and sections begin a page that say so.
func TestReportPrints(t *testing.T) {
	t.Parallel()
	browser.Need(t)
	line := chart.Lines(chart.Labels{Title: "Evidence", X: "pairs", Y: "nats"}, []chart.Line{{Name: "wealth", Class: "a", Points: []chart.Point{{X: 1}, {X: 10, Y: 3}}}}, nil, true)
	d := report.Document{Title: "Report", Lead: []string{"A paragraph."}}
	for i := range 3 {
		table := report.Table{Header: []string{"audit", "verdict", "claimed", "lower bound", "pairs of trials", "executions", "query"}}
		for range 60 {
			table.Rows = append(table.Rows, []string{"3f9c3f9c3f9c", "violation", "0.5", "1.2345", "1234", "99", "SELECT " + strings.Repeat("very_long_name_of_a_column, ", 4) + "1 FROM t"})
		}
		d.Sections = append(d.Sections, report.Section{Title: fmt.Sprintf("Section %d", i+1), Lines: []string{strings.Repeat("word ", 200)}, Table: &table, Charts: []chart.Figure{line, line}, Page: i > 0})
	}
	text, err := report.HTML(d)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" { // the icon that browsers ask for
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(text)
	}))
	t.Cleanup(server.Close)
	b := browser.Open(t)
	b.Scheme("dark")
	b.Go(server.URL)
	if wide := b.Overflow(); wide != "" {
		t.Errorf("on a screen: too wide: %s", wide)
	}
	b.Print()
	b.Size(printedWidth, printedHeight) // what the margins leave of A4
	if wide := b.Overflow(); wide != "" {
		t.Errorf("printed: too wide: %s", wide)
	}
	var printed struct {
		Page, Text, Line string
		Details          int
	}
	b.Eval(`({Page: getComputedStyle(document.body).backgroundColor, Text: getComputedStyle(document.body).color,
		Line: getComputedStyle(document.querySelector(".chart-line")).stroke, Details: document.querySelector(".chart details").offsetHeight})`, &printed)
	if printed.Page != "rgb(255, 255, 255)" || printed.Text != "rgb(0, 0, 0)" || printed.Line != "rgb(31, 111, 180)" || printed.Details != 0 {
		t.Errorf("printed as %+v", printed)
	}
	var breaks string
	b.Eval(`[...document.querySelectorAll("section")].map((h) => getComputedStyle(h).breakBefore).join(" ")`, &breaks)
	if breaks != "auto page page" {
		t.Errorf("page breaks before the sections: %s", breaks)
	}
	if pages := printedPages(t, b); pages < 3 {
		t.Errorf("%d pages", pages)
	}
}

// What the margins leave of A4.
const printedWidth, printedHeight = 673, 1017

// printedPages returns the number of pages of the PDF file of a page.
func printedPages(t *testing.T, b *browser.Tab) int {
	t.Helper()
	pdf := b.PDF()
	if !bytes.HasPrefix(pdf, []byte("%PDF-")) {
		t.Fatalf("%d bytes that are no PDF", len(pdf))
	}
	return bytes.Count(pdf, []byte("/Type /Page\n"))
}

// TestReportOf24: what a privacy officer reads and signs is the first page, the worst first; then come the findings,
// and the method is last. A report of 24 queries, of which 11 leak, has at most 12 pages. That one of the 12 honest queries
// is called a violation has a probability of at most 1e-6; the others are found within 500 pairs of trials with a
// probability of more than 1 - 1e-6.
func TestReportOf24(t *testing.T) {
	longtest.Scheduled(t) // a minute
	t.Parallel()
	browser.Need(t)
	s := start(t, withLedger, "")
	conn := pgtest.Connect(t, s.through())
	queries := []string{
		"/*dp_epsilon='9'*/ SELECT noisy(count(*), 20) FROM people", // not decided: too few trials
		"/*dp_epsilon='0.5'*/ SELECT grp, noisy(count(*), 0.1) FROM people GROUP BY grp", "/*dp_epsilon='1'*/ SELECT count(*) FROM people",
		"/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 0.1), noisy(sum(id), 1) FROM people",
	}
	for i := range 12 {
		queries = append(queries, fmt.Sprintf("/*dp_epsilon='1'*/ SELECT noisy(count(*), %d) FROM people", i+3))
	}
	for i := range 8 {
		queries = append(queries, fmt.Sprintf("/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 0.%d) FROM people WHERE id > 0", i+10))
	}
	for _, sql := range queries {
		execute(t, conn, sql)
	}
	s.until(t, "24 verdicts in the ledger", func() bool {
		body := s.get(t, "/api/status")
		return strings.Count(body, `"state":"decided"`) == len(queries) && strings.Contains(body, `"unsaved_audits":0,"waiting":0,"lost":0`)
	})
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "report")
	if out, err := exec.Command(path, "report", "--period", "1d", "--config", s.config, "--dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b := browser.Open(t)
	b.Go("file://" + filepath.Join(dir, "report.html"))
	if wide := b.Overflow(); wide != "" {
		t.Errorf("on a screen: too wide: %s", wide)
	}
	if pages := printedPages(t, b); pages > 12 {
		t.Errorf("%d pages", pages)
	}
	b.Print()
	b.Size(printedWidth, printedHeight)
	if wide := b.Overflow(); wide != "" {
		t.Errorf("printed: too wide: %s", wide)
	}
	var front struct {
		End     float64
		Results string
		Titles  string
	}
	b.Eval(`({End: document.querySelector(".signatures").getBoundingClientRect().bottom,
		Results: [...document.querySelectorAll(".lines tbody tr")].map((r) => r.cells[0].textContent).join(","),
		Titles: [...document.querySelectorAll("h2")].map((h) => h.textContent).join("|")})`, &front)
	if front.End > printedHeight {
		t.Errorf("the first page ends at %.0f, its paper at %d", front.End, printedHeight)
	}
	if want := strings.Repeat("LEAKS,", 11) + "no conclusion" + strings.Repeat(",no leak found", 12); front.Results != want {
		t.Errorf("results %s, want %s", front.Results, want)
	}
	if titles := regexp.MustCompile(`^Signatures(\|Audit [0-9a-f]{12}: violation){11}\|.*\|How was this found\?\|What does this report not prove\?\|What was this report made from\?$`); !titles.MatchString(front.Titles) {
		t.Errorf("sections %s", front.Titles)
	}
}
