package oneoff

import (
	"math"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/diagnosis"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// A violation is written with its three answers, each with its basis; the odds name the estimate and the certified
// figure.
func TestConclusionHasTheFinding(t *testing.T) {
	t.Parallel()
	none := analysis.Float(math.NaN())
	c := read.Conclusion{Report: analysis.Report{
		Verdict: analysis.Violation, EpsilonEstimate: none, WealthLog: none, MinimalDetectable: none,
		Attacker: analysis.Attacker{PriorOdds: 1, LikelihoodRatio: 31, PosteriorOdds: 31, Breached: true, PosteriorOddsLower: 1.5},
		Finding: &analysis.Finding{
			HowBad: analysis.HowBad{Text: "so bad.", Basis: analysis.Certified, Confidence: .99},
			What:   analysis.What{Text: withheld.Public("this event"), Basis: analysis.Likely},
			Causes: []diagnosis.Cause{{Name: "one cause", Text: withheld.Public("Its figures."), Page: "page#one"}},
		},
	}}
	var b strings.Builder
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"how bad certified at confidence 0.99: so bad.", "what likely: this event", "why likely: one cause. Its figures. See page#one",
		"attacker's odds 1 before, about 31 after this event (breached: true); certified: at least 1.5 after the worst event (breached: false)",
	} {
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), line) {
			t.Errorf("no %q in\n%s", line, b.String())
		}
	}
}
