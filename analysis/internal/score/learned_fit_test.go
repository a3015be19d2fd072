package score

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// TestLogisticFindsTheRatio draws three texts of known laws, two of them always equal, and compares the learned score
// with the true log-likelihood ratio: 20,000 pairs leave a standard error of about 0.03, ten of which are allowed.
func TestLogisticFindsTheRatio(t *testing.T) {
	const pairs = 20_000
	r := rand.New(rand.NewPCG(3, 4))
	chance := [2][2]float64{{.3, .5}, {.2, .5}} // per world: of T in the first two columns, and in the third
	row := func(x, y bool) outcome.Outcome {
		o := outcome.Outcome{Rows: [][]outcome.Value{nil}}
		for i, b := range []bool{x, x, y} {
			o.Columns = append(o.Columns, outcome.Column{Name: string(rune('a' + i))})
			o.Rows[0] = append(o.Rows[0], outcome.Value{Kind: outcome.Bool, Num: float64(code.Bit(b))})
		}
		return o
	}
	set := drive(t, pairs, func(w int) outcome.Outcome {
		return row(r.Float64() < chance[w][0], r.Float64() < chance[w][1])
	})
	score := func(x, y bool) float64 {
		o := row(x, y)
		return set.specials.ofKind(ratioScore).statistic.score(&Result{Codes: set.Reader.Read(&o, nil)})
	}
	base := score(false, false)
	want := math.Log(.3/.2) - math.Log(.7/.8)
	if got := score(true, false) - base; math.Abs(got-want) > .3 {
		t.Errorf("two equal columns count %.3f, want %.3f: once, not twice", got, want)
	}
	if got := score(false, true) - base; math.Abs(got) > .1 {
		t.Errorf("a column that tells nothing counts %.3f", got)
	}
}

// TestFeaturesAreBounded: whatever a result holds, the learned score has at most maxFeatures features, and none where
// there are more than maxLearnedSlots columns.
func TestFeaturesAreBounded(t *testing.T) {
	for _, columns := range []int{2, maxLearnedSlots, maxLearnedSlots + 1} {
		r := rand.New(rand.NewPCG(5, 6))
		draw := func(int) outcome.Outcome {
			o := outcome.Outcome{Rows: [][]outcome.Value{nil}}
			for i := range columns {
				o.Columns = append(o.Columns, outcome.Column{Name: string(rune('a' + i))})
				v := outcome.Value{Kind: outcome.Number, Num: r.NormFloat64()}
				switch r.IntN(3) {
				case 0:
					v = outcome.Value{Kind: outcome.Text, Text: string(rune('a' + r.IntN(20)))}
				case 1:
					v.Num = math.Inf(1)
				}
				o.Rows[0] = append(o.Rows[0], v)
			}
			return o
		}
		n := len(drive(t, 300, draw).specials.ofKind(ratioScore).statistic.(*learned).features)
		if n > maxFeatures || columns <= maxLearnedSlots && n == 0 || columns > maxLearnedSlots && n != 0 {
			t.Errorf("%d columns: %d features", columns, n)
		}
	}
}
