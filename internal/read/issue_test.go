package read_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/diagnosis"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// TestIssue: an issue says once what several causes share, and its title claims no cause that the trials do not separate
// from another one. Its histogram keeps its columns under a long name, and leaves the middle of a gap out.
func TestIssue(t *testing.T) {
	t.Parallel()
	r := report(analysis.Violation, 2)
	shift := withheld.Public("The noise has 0.01 of the scale.")
	causes := []diagnosis.Cause{
		{Code: diagnosis.Clipping, Name: "values are not clipped", Text: shift},
		{Code: diagnosis.NoiseScale, Name: "too little noise", Text: shift},
		{Code: diagnosis.RowOrder, Name: "the order of rows", Text: withheld.Public("The rows are sorted.")},
	}
	r.Finding = &analysis.Finding{Causes: causes}
	label := "column with_a_name_that_is_longer_than_most"
	x := read.Issue{Report: *r, Charts: &read.Charts{Histogram: &read.Histogram{Label: label, Edges: []float64{0, 1, 2, 3, 4, 5, 6}, D0: []int{0, 0, 0, 0, 0, 4}, D1: []int{2, 0, 0, 0, 0, 0}}}}
	text := x.Markdown()
	gap := strings.Repeat(" ", len(label)-6)
	for _, want := range []string{
		"# Too little noise\n", "The noise has 0.01 of the scale. The trials do not separate:\n\n- values are not clipped\n- too little noise\n\nThe order of rows. The rows are sorted.\n",
		label + "      D0      D1\n0 to 1" + gap + "       0       2  " + strings.Repeat(" ", 24) + "|" + strings.Repeat("o", 12) + "\n1 to 2" + gap + "       0       0  " + strings.Repeat(" ", 24) + "|\n...\n4 to 5",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Count(text, shift.Reveal()) != 1 {
		t.Errorf("the figures of two causes are there more than once:\n%s", text)
	}
	r.Finding.Causes = []diagnosis.Cause{{Code: diagnosis.Clipping, Name: "values are not clipped"}, {Code: diagnosis.NoiseScale, Name: "too little noise"}}
	x.Report = *r
	if text := x.Markdown(); !strings.HasPrefix(text, "# Values are not clipped\n") || strings.Contains(text, "do not separate") {
		t.Errorf("causes without texts:\n%s", text)
	}
	r.Finding.Causes = causes[:1]
	x.Report = *r
	if text := x.Markdown(); !strings.HasPrefix(text, "# Values are not clipped\n") || !strings.Contains(text, "Values are not clipped. The noise has") {
		t.Errorf("one cause:\n%s", text)
	}
}
