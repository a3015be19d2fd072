package power

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

func growth(t *testing.T, laws func() (p, q []float64)) float64 {
	t.Helper()
	p, q := laws()
	g := analysis.Growth(p, q, only(1))
	if !(g >= 0) {
		t.Fatalf("g = %v", g)
	}
	return g
}

// laplaceRatio is the log-ratio of groups with Laplace noise of scale 1/epsilon that all move from 0 to 1.
func laplaceRatio(epsilon float64) func(analysis.Outcome) float64 {
	return func(o analysis.Outcome) (l float64) {
		for _, row := range o.Rows {
			x := row[len(row)-1].Num
			l += epsilon * (math.Abs(x-1) - math.Abs(x))
		}
		return l
	}
}

// TestSampled: g from draws is that of the closed form, for one value and for a sum of ten log-ratios. Twenty batches
// of draws say how exact they are; seven standard errors with 19 degrees of freedom happen by chance in 1 of 10^6.
func TestSampled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		draw  func(*rand.Rand) (d0, d1 analysis.Outcome)
		ratio func(analysis.Outcome) float64
		laws  func() (p, q []float64)
	}{
		{"laplace", laplaceShift(1.5), laplaceRatio(1.5), laplaceShiftLaws(1.5)},
		{"histogram", histogram(10, 10, .3), laplaceRatio(.3), histogramLaws(10, .3, 50)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const batches, pairs = 20, 1 << 14
			var sum, squares float64
			for seed := range uint64(batches) {
				g := growth(t, sampled(c.draw, pairs, seed, c.ratio))
				sum, squares = sum+g, squares+g*g
			}
			mean := sum / batches
			standardError := math.Sqrt((squares/batches - mean*mean) / (batches - 1))
			want := growth(t, c.laws)
			if math.Abs(mean-want) > 7*standardError || standardError > .01*want {
				t.Errorf("%.5g with a standard error of %.2g, want %.5g", mean, standardError, want)
			}
		})
	}
}

// TestLaws: what is known about laws in closed form.
func TestLaws(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		laws      func() (p, q []float64)
		want      float64
		tolerance float64
	}{
		{"disjoint", disjoint, 2 * math.Log1p(math.Exp(-1)), 1e-12},
		{"one_group", histogramLaws(1, 1.5, 400), growth(t, laplaceShiftLaws(1.5)), 1e-9},
		{"cells_hardly_matter", histogramLaws(10, .3, 50), growth(t, histogramLaws(10, .3, 100)), 1e-6},
		{"within_the_claim", histogramLaws(10, .1, 50), 0, 1e-12},
		{"greatest_of_one", func() ([]float64, []float64) {
			return analysis.Cut(maxLaw(laplaceLaw(0, .5), 1), maxLaw(laplaceLaw(1, .5), 1), 0, 1, 400)
		}, growth(t, laplaceShiftLaws(2)), 1e-12},
		{"truncated_far_out", func() ([]float64, []float64) {
			return analysis.Cut(truncatedLaw(laplaceLaw(0, .5), -20, 20), truncatedLaw(laplaceLaw(1, .5), -19, 21), 0, 1, 400)
		}, growth(t, laplaceShiftLaws(2)), 1e-12},
	} {
		if g := growth(t, c.laws); math.Abs(g-c.want) > c.tolerance {
			t.Errorf("%s: %v, want %v", c.name, g, c.want)
		}
	}
}

// TestSparseLaws holds the integrals against runs of the mechanisms: each frequency within six standard errors, which
// chance passes in 1 of 10^7 over all of them.
func TestSparseLaws(t *testing.T) {
	t.Parallel()
	const runs = 100_000
	numeric := sparse{t: 1, b0: 2, b1: 2, numeric: true}
	index := func(o analysis.Outcome) string { return o.Rows[0][0].Text }
	for _, c := range []struct {
		name    string
		s       sparse
		queries []float64
		law     []float64
		of      func(o analysis.Outcome) int
	}{
		{"index", sparse{t: 1, b0: 4, b1: 4. / 3}, ten(1, 0), sparse{t: 1, b0: 4, b1: 4. / 3}.firstAbove(ten(1, 0)), func(o analysis.Outcome) int { return place(index(o)) }},
		{"answers", sparse{t: .5, b0: 2, b1: 2, endless: true}, ten(1, 0), sparse{t: .5, b0: 2, b1: 2, endless: true}.allAbove(ten(1, 0)), blocksAbove},
		{"no_noise", sparse{t: 1, b0: 2, endless: true}, ten(2, 0), sparse{t: 1, b0: 2, endless: true}.allAbove(ten(2, 0)), blocksAbove},
		{"answer_given", numeric, ten(2, 0), marginal(numeric.firstAnswer(ten(2, 0))), func(o analysis.Outcome) int { return place(index(o)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(3, 3))
			seen := make([]float64, len(c.law))
			for range runs {
				seen[c.of(c.s.run(r, c.queries))]++
			}
			sum := 0.0
			for i, p := range c.law {
				sum += p
				if math.Abs(seen[i]/runs-p) > 6*math.Sqrt(p*(1-p)/runs)+1e-4 { // and the integral's error
					t.Errorf("outcome %d: %v of the runs, want %v", i, seen[i]/runs, p)
				}
			}
			if math.Abs(sum-1) > 1e-9 {
				t.Errorf("the law sums to %v", sum)
			}
		})
	}
}

// place is the index of a query, the number of queries for none.
func place(index string) int {
	if index == "-1" {
		return 10
	}
	return int(index[0] - '0')
}

// blocksAbove counts the positive answers among the first five and among the last five queries.
func blocksAbove(o analysis.Outcome) (at int) {
	for i, row := range o.Rows {
		if row[1].Num == 1 && i < 5 {
			at += 6
		} else if row[1].Num == 1 {
			at++
		}
	}
	return at
}

// marginal is the law of the index in a law of index and answer over ten queries.
func marginal(law []float64) []float64 {
	m := make([]float64, 11)
	for i, p := range law[:len(law)-1] {
		m[i%10] += p
	}
	m[10] = law[len(law)-1]
	return m
}

// TestNaiveRatio: whatever is drawn on a world is possible there, and most of it on no other world.
func TestNaiveRatio(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	const draws = 20_000
	only := 0
	for range draws {
		l0, l1 := naiveRatio(0)(value(naiveLaplace(r, 1))), naiveRatio(0)(value(1+naiveLaplace(r, 1)))
		if !(l0 > math.Inf(-1)) || !(l1 < math.Inf(1)) {
			t.Fatalf("log-ratios %v on D0 and %v on D1", l0, l1)
		}
		if math.IsInf(l0, 1) {
			only++
		}
	}
	if only < draws/2 || only == draws {
		t.Errorf("%d of %d results on D0 are impossible on D1", only, draws)
	}
}

// TestSharedDensity holds the integral against the rule of Simpson.
func TestSharedDensity(t *testing.T) {
	t.Parallel()
	for _, xs := range [][]float64{{0}, {1.5}, {.3, .3, .3}, {-1, 2, .25, .26}, {4, -4}} {
		const own, lo, hi, n = .5, -40., 40., 1 << 20
		sum := 0.0
		for i := range n + 1 {
			z := lo + (hi-lo)*float64(i)/n
			e := -math.Abs(z)
			for _, x := range xs {
				e -= math.Abs(x-z) / own
			}
			weight := float64(2 + 2*(i&1))
			if i == 0 || i == n {
				weight = 1
			}
			sum += weight * math.Exp(e) * (hi - lo) / n / 3
		}
		if got, want := sharedDensity(xs, own), math.Log(sum); math.Abs(got-want) > 1e-6 {
			t.Errorf("%v: %v, want %v", xs, got, want)
		}
	}
}
