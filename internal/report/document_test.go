package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/chart"
	"github.com/dpwatch/dpwatch/internal/report"
)

// TestDocument: text is escaped, charts are in the file with their style, and the same document gives the same bytes.
func TestDocument(t *testing.T) {
	t.Parallel()
	d := report.Document{
		Title: "A <b>title</b>", Lead: []string{"first & last \U0001f600"},
		Sections: []report.Section{{
			Title: "Section", Lines: []string{strings.Repeat("long ", 2000)},
			Table:      &report.Table{Header: []string{"a", "b", "c"}, Rows: [][]string{{"1", strings.Repeat("x", 5000), "3\n4"}, {"", "", ""}}},
			Charts:     []chart.Figure{chart.Pairs(chart.Labels{Title: "Pairs"}, []chart.Pair{{Name: "a", D0: 1, D1: 2}}, "")},
			Signatures: []string{"Name & date"}, Page: true, Whole: true,
			Sections: []report.Section{{Title: "Sub", Table: &report.Table{Rows: [][]string{{"name", "<script>alert(1)</script>"}}}, Sections: []report.Section{{Title: "Sub of sub"}}}},
		}},
	}
	html, err := report.HTML(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<h1>A &lt;b&gt;title", "<h2>Section</h2>", "<h3>Sub</h3>", "<h4>Sub of sub</h4>", "&lt;script&gt;", `<th scope="row">name</th>`, `<th scope="col">a</th>`, `<svg viewBox="0 0 480`, ".chart-a { stroke: var(--a); }", "@media print", `<section class="page whole">`, `<div class="signature">Name &amp; date</div>`} {
		if !strings.Contains(string(html), want) {
			t.Errorf("no %q in the HTML", want)
		}
	}
	if again, err := report.HTML(d); err != nil || !bytes.Equal(html, again) {
		t.Errorf("the same document gives another file, %v", err)
	}
}
