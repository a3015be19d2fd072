package browsertest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/browsertest/browser"
	"github.com/dpwatch/dpwatch/internal/chart"
	"github.com/dpwatch/dpwatch/internal/report"
)

// TestReportPrints: a report loads nothing, is not wider than the paper when it is printed, prints in light colours and
// without the tables behind the charts, and each of its sections begins a page.
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
		d.Sections = append(d.Sections, report.Section{Title: fmt.Sprintf("Section %d", i+1), Lines: []string{strings.Repeat("word ", 200)}, Table: &table, Charts: []chart.Figure{line, line}})
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
	b.Size(658, 971) // what the margins leave of A4
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
	b.Eval(`[...document.querySelectorAll("h2")].map((h) => getComputedStyle(h).breakBefore).join(" ")`, &breaks)
	if breaks != "auto page page" {
		t.Errorf("page breaks before the sections: %s", breaks)
	}
	pdf := b.PDF()
	if pages := bytes.Count(pdf, []byte("/Type /Page\n")); !bytes.HasPrefix(pdf, []byte("%PDF-")) || pages < 3 {
		t.Errorf("%d bytes, %d pages", len(pdf), pages)
	}
}
