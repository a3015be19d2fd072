package analysis_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// draw makes one pair of trials.
type draw func(r *rand.Rand) (d0, d1 analysis.Outcome)

// onGrid rounds noise to multiples of 2^-20, so that its lowest bits tell nothing.
func onGrid(x float64) float64 { return math.Round(x*0x1p20) / 0x1p20 }

// lap draws Laplace noise of scale b.
func lap(r *rand.Rand, b float64) float64 {
	x := onGrid(r.ExpFloat64() * b)
	if r.Uint64()&1 == 0 {
		return -x
	}
	return x
}

// geo draws two-sided geometric noise with parameter e^-epsilon.
func geo(r *rand.Rand, epsilon float64) float64 {
	one := func() float64 { return math.Floor(r.ExpFloat64() / epsilon) }
	return one() - one()
}

// gauss draws Gaussian noise.
func gauss(r *rand.Rand, sigma float64) float64 { return onGrid(r.NormFloat64() * sigma) }

// value is a result of one row and one float column.
func value(x float64) analysis.Outcome {
	return analysis.Outcome{
		Columns: []analysis.Column{{Name: "x"}},
		Rows:    [][]analysis.Value{{{Kind: analysis.Number, Num: x}}},
	}
}

// count is a result of one row and one integer column.
func count(x float64) analysis.Outcome {
	o := value(x)
	o.Columns = []analysis.Column{{Name: "count", Discrete: true}}
	return o
}

// word is a result of one row and one text column.
func word(s string) analysis.Outcome {
	return analysis.Outcome{
		Columns: []analysis.Column{{Name: "answer", Discrete: true}},
		Rows:    [][]analysis.Value{{{Kind: analysis.Text, Text: s}}},
	}
}

// groups is a result of a GROUP BY: one row per number, NaN for a group without a row.
func groups(xs ...float64) analysis.Outcome {
	o := analysis.Outcome{Columns: []analysis.Column{{Name: "store_id", Discrete: true}, {Name: "sum"}}}
	for i, x := range xs {
		if !math.IsNaN(x) {
			o.Rows = append(o.Rows, []analysis.Value{
				{Kind: analysis.Number, Num: float64(i)}, {Kind: analysis.Number, Num: x},
			})
		}
	}
	return o
}

// failed is a trial that failed.
func failed(state string) analysis.Outcome { return analysis.Outcome{SQLState: state} }

// laplaceShift is a Laplace mechanism of the given epsilon on a count that differs by 1.
func laplaceShift(epsilon float64) draw {
	return func(r *rand.Rand) (d0, d1 analysis.Outcome) {
		return value(lap(r, 1/epsilon)), value(1 + lap(r, 1/epsilon))
	}
}

// response is binary randomised response.
func response(epsilon float64) draw {
	p := math.Exp(epsilon) / (1 + math.Exp(epsilon))
	one := func(r *rand.Rand, truth bool) analysis.Outcome {
		if r.Float64() >= p {
			truth = !truth
		}
		return word(strconv.FormatBool(truth))
	}
	return func(r *rand.Rand) (d0, d1 analysis.Outcome) { return one(r, true), one(r, false) }
}

// many is a GROUP BY whose group i differs by shift(i), with Laplace noise of scale 1 in every group.
func many(n int, shift func(i int) float64) draw {
	return func(r *rand.Rand) (d0, d1 analysis.Outcome) {
		x, y := make([]float64, n), make([]float64, n)
		for i := range n {
			x[i], y[i] = 100+lap(r, 1), 100+shift(i)+lap(r, 1)
		}
		return groups(x...), groups(y...)
	}
}

// oneOf is a shift of one group alone.
func oneOf(group int, shift float64) func(int) float64 {
	return func(i int) float64 {
		if i == group {
			return shift
		}
		return 0
	}
}

// run audits until a decision and returns the report.
func run(t testing.TB, c analysis.Claim, most int, seed uint64, d draw) analysis.Report {
	t.Helper()
	a, err := analysis.New(c, analysis.Options{MaxTrials: most})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 20240607))
	for !a.Decided() {
		a.Add(d(r))
	}
	return a.Report()
}

// detected audits the claim alone and returns the pairs at which it was refuted, or most+1.
func detected(t testing.TB, c analysis.Claim, most int, seed uint64, d draw) int {
	t.Helper()
	a, err := analysis.New(c, analysis.Options{MaxTrials: most})
	if err != nil {
		t.Fatal(err)
	}
	analysis.SkipBound(a)
	r := rand.New(rand.NewPCG(seed, 20240607))
	for !a.Decided() {
		a.Add(d(r))
	}
	if at := a.Report().DetectedAt; at != nil {
		return *at
	}
	return most + 1
}
