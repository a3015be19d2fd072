package analysis_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// TestInTurn: leaks among more columns and groups than a score looks at, at a time, are found, and the report says so. The
// honest audit is at the confidence 0.999999: it fails this test at most once in a million seeds.
func TestInTurn(t *testing.T) {
	t.Parallel()
	correlated := func(p float64) draw { // groups 140 and 190 of 200 have one sign with probability p on D0, 1-p on D1
		return worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			xs := make([]float64, 200)
			for i := range xs {
				xs[i] = lap(r, 1)
			}
			if same := (r.Float64() < p) == (w == 0); same != (xs[140]*xs[190] > 0) {
				xs[190] = -xs[190]
			}
			return groups(xs...)
		})
	}
	for name, c := range map[string]struct {
		leak   bool
		window string
		d      draw
	}{
		"the signs of two groups":                    {true, "every two are multiplied", correlated(.97)},
		"the signs of two groups by binary response": {false, "every two are multiplied", correlated(1 / (1 + math.Exp(-1)))},
		"a remainder of one group": {true, "remainders", worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			xs := make([]float64, 60)
			for i := range xs {
				xs[i] = lap(r, 20)
			}
			xs[40] = 10.25 + w/2 + geo(r, .05)
			return groups(xs...)
		})},
		"the largest group of the sixth column": {true, "smallest and largest group", worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			o := groups(make([]float64, 10)...)
			o.Columns = append(o.Columns, slices.Repeat(o.Columns[1:], 7)...)
			top := r.IntN(len(o.Rows))
			for i := range o.Rows {
				o.Rows[i] = o.Rows[i][:1]
				for range 8 {
					o.Rows[i] = append(o.Rows[i], analysis.Value{Kind: analysis.Number, Num: lap(r, 2)})
				}
			}
			o.Rows[top][6].Num = 100 + w
			return o
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt := analysis.Options{MaxTrials: 3000}
			if !c.leak {
				opt = analysis.Options{MaxTrials: 1000, Confidence: .999999}
			}
			a, err := analysis.New(analysis.Claim{Epsilon: 1}, opt)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 5))
			for !a.Decided() {
				a.Add(c.d(r))
			}
			report := a.Report()
			t.Logf("%s after %d pairs: %v", report.Verdict, report.Trials.D0, report.Event)
			if leak := report.Verdict == analysis.Violation; leak != c.leak {
				t.Errorf("%s: %s", report.Verdict, report.Reason)
			}
			if !slices.ContainsFunc(report.Windows, func(w analysis.Window) bool {
				return w.Kind == analysis.PowerWindow && w.Looked < w.Of && strings.Contains(w.What, c.window)
			}) {
				t.Errorf("no window about %q: %v", c.window, report.Windows)
			}
		})
	}
}
