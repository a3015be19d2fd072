package analysis_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

func number(x float64) analysis.Outcome {
	return analysis.Outcome{
		Columns: []analysis.Column{{Name: "x"}},
		Rows:    [][]analysis.Value{{{Kind: analysis.Number, Num: x}}},
	}
}

func laplace(r *rand.Rand, b float64) float64 {
	u := math.Round(r.ExpFloat64()*b*0x1p20) / 0x1p20 // on a grid: no leak in the lowest bits
	if r.Uint64()&1 == 0 {
		return -u
	}
	return u
}

func detect(t testing.TB, c analysis.Claim, most int, draw func() (analysis.Outcome, analysis.Outcome)) int {
	a, err := analysis.New(c, analysis.Options{MaxTrials: most})
	if err != nil {
		t.Fatal(err)
	}
	for !a.Decided() {
		a.Add(draw())
	}
	if at := a.Report().DetectedAt; at != nil {
		return *at
	}
	return most + 1
}

func TestCells(t *testing.T) {
	runs, _ := strconv.Atoi(os.Getenv("RUNS"))
	if runs == 0 {
		t.Skip()
	}
	for _, c := range []struct {
		claim, true float64
		most        int
	}{
		{1, 1.1, 10000}, {1, 1.2, 10000}, {1, 1.3, 5000}, {1, 1.5, 2000}, {1, 2, 1000}, {1, 4, 1000}, {.1, .5, 2000}, {2, 3, 2000}, {4, 5, 10000}, {1, 1, 3000},
	} {
		n := runs
		if c.most > 5000 {
			n = runs / 4
		}
		var at []int
		for i := range n {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			at = append(at, detect(t, analysis.Claim{Epsilon: c.claim}, c.most, func() (analysis.Outcome, analysis.Outcome) {
				return number(laplace(r, 1/c.true)), number(1 + laplace(r, 1/c.true))
			}))
		}
		slices.Sort(at)
		found := 0
		for _, v := range at {
			if v <= c.most {
				found++
			}
		}
		fmt.Printf("claim %v true %v: median %d q90 %d found %.1f%%\n", c.claim, c.true, at[n/2], at[n*9/10], 100*float64(found)/float64(n))
	}
	_ = math.E
}
