package report_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/report"
)

// TestDocument: text is escaped in HTML, long cells and characters beyond the fonts are no error in the PDF, and the
// same document gives the same bytes.
func TestDocument(t *testing.T) {
	t.Parallel()
	d := report.Document{
		Title: "A <b>title</b>", Lead: []string{"first & last \U0001f600"},
		Sections: []report.Section{{
			Title: "Section", Lines: []string{strings.Repeat("long ", 2000)},
			Table:    &report.Table{Header: []string{"a", "b", "c"}, Rows: [][]string{{"1", strings.Repeat("x", 5000), "3\n4"}, {"", "", ""}}},
			Sections: []report.Section{{Title: "Sub", Table: &report.Table{Rows: [][]string{{"name", "<script>alert(1)</script>"}}}, Sections: []report.Section{{Title: "Sub of sub"}}}},
		}},
	}
	html, err := report.HTML(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<h1>A &lt;b&gt;title", "<h2>Section</h2>", "<h3>Sub</h3>", "<h4>Sub of sub</h4>", "&lt;script&gt;", `<th scope="row">name</th>`, `<th scope="col">a</th>`} {
		if !strings.Contains(string(html), want) {
			t.Errorf("no %q in the HTML", want)
		}
	}
	created := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	pdf, err := report.PDF(d, created)
	if err != nil || !bytes.HasPrefix(pdf, []byte("%PDF-")) || bytes.Count(pdf, []byte("/Type /Page\n")) < 3 {
		t.Fatalf("%d bytes of PDF, %d pages, %v", len(pdf), bytes.Count(pdf, []byte("/Type /Page\n")), err)
	}
	if again, err := report.PDF(d, created); err != nil || !bytes.Equal(pdf, again) {
		t.Errorf("the same document gives another PDF, %v", err)
	}
}
