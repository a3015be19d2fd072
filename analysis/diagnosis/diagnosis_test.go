package diagnosis_test

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis/diagnosis"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

func repeated(n int, xs ...float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = xs[i%len(xs)]
	}
	return out
}

// Whatever numbers a query returns, there are at most three causes, each with a section of the page, and JSON can hold
// them.
func TestAnyNumbers(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	numbers := map[string][]float64{
		"nothing": nil, "no number": repeated(40, nan), "one value": repeated(40, 7), "two values": repeated(40, 0, 1), "huge": repeated(40, -math.MaxFloat64, math.MaxFloat64, 1),
		"tiny": repeated(40, 5e-324, 0, -5e-324), "wide integers": repeated(40, 1e15, 3, -1e15, 8e14), "far out": repeated(40, 1, 2, 3, 4, 1e300), "some": repeated(40, 1, nan, 3.5, 4, -2),
		"few": {1, 2, 3},
	}
	for name0, d0 := range numbers {
		for name1, d1 := range numbers {
			if len(d0) != len(d1) {
				continue
			}
			for _, epsilon := range []float64{0, 1e-9, 1, 50} {
				for _, delta := range []float64{0, 1e-6} {
					for _, discrete := range []bool{false, true} {
						s := diagnosis.Slot{Where: withheld.Public("column x"), Discrete: discrete && !strings.Contains(name0+name1, "some") && !strings.Contains(name0+name1, "tiny"), Numbers: [2][]float64{d0, d1}}
						t2 := s
						t2.Column = 1
						e := diagnosis.Evidence{Epsilon: epsilon, Delta: delta, Trials: len(d0), Columns: 2, Groups: 1, Slots: []diagnosis.Slot{s, t2}}
						causes := diagnosis.Causes(e)
						if _, err := json.Marshal(causes); err != nil || len(causes) > 3 || causes == nil {
							t.Errorf("%s and %s, epsilon %v: %d causes, %v", name0, name1, epsilon, len(causes), err)
						}
					}
				}
			}
		}
	}
}

// Both worlds have the same numbers: nothing is the cause of a difference.
func TestNoDifference(t *testing.T) {
	t.Parallel()
	xs := repeated(100, 1.5, 2, 4, -3, 0, 7)
	e := diagnosis.Evidence{Epsilon: 1, Trials: 100, Columns: 1, Groups: 1, Slots: []diagnosis.Slot{{Where: withheld.Public("column x"), Numbers: [2][]float64{xs, xs}}}}
	if got := diagnosis.Causes(e); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// laplaceAt returns n numbers at the quantiles of Laplace noise: nothing is drawn.
func laplaceAt(n int, center, scale float64) (xs []float64) {
	for i := range n {
		p := (float64(i) + .5) / float64(n)
		xs = append(xs, center+math.Copysign(scale*math.Log(1-2*math.Abs(p-.5)), .5-p))
	}
	return xs
}

// causesOf returns the causes of a column with such numbers at the claim 1.
func causesOf(e diagnosis.Evidence, xs [2][]float64) []diagnosis.Cause {
	e.Epsilon, e.Trials, e.Columns, e.Groups = 1, len(xs[0]), 1, 1
	e.Slots = []diagnosis.Slot{{Where: withheld.Public("column x"), Numbers: xs}}
	return diagnosis.Causes(e)
}

// A shift that clipped values can make, by the bound in the query, is too little noise; without that bound it looks like
// values that are not clipped, since the noise is made for a round sensitivity.
func TestBound(t *testing.T) {
	t.Parallel()
	xs := [2][]float64{laplaceAt(4000, 137.3, 10), laplaceAt(4000, 100, 10)}
	for bound, want := range map[float64]diagnosis.Code{0: diagnosis.Clipping, 10: diagnosis.Clipping, 20: diagnosis.Clipping, 50: diagnosis.NoiseScale} {
		if got := causesOf(diagnosis.Evidence{Bound: bound}, xs); len(got) < 2 || got[0].Code != want {
			t.Errorf("bound %v: %+v, want %s", bound, got, want)
		}
	}
}

// An average with half of its noise is a sum and a count that each spend the claim, anything else with half of its noise
// has too little, and an average with a hundredth of its noise, too.
func TestAverage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		average bool
		scale   float64
		want    diagnosis.Code
	}{{true, 10, diagnosis.Composition}, {false, 10, diagnosis.NoiseScale}, {true, .2, diagnosis.NoiseScale}} {
		xs := [2][]float64{laplaceAt(4000, 120, c.scale), laplaceAt(4000, 100, c.scale)}
		if got := causesOf(diagnosis.Evidence{Bound: 50, Average: c.average}, xs); len(got) == 0 || got[0].Code != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// Noise that is five times as wide on one dataset has a scale from the data, even if the answers shift, too.
func TestWidelyApart(t *testing.T) {
	t.Parallel()
	got := causesOf(diagnosis.Evidence{}, [2][]float64{laplaceAt(100, 130, 5), laplaceAt(100, 100, 1)})
	if len(got) == 0 || got[0].Code != diagnosis.DataDependentScale {
		t.Errorf("%+v", got)
	}
}

// Answers that are cut off at a bound of each dataset are support, though they repeat; at a public bound they are not.
func TestCutOff(t *testing.T) {
	t.Parallel()
	cut := func(center, bound float64) []float64 {
		xs := laplaceAt(200, center, 3)
		for i := range xs {
			xs[i] = min(math.Round(xs[i]), bound)
		}
		return xs
	}
	e := diagnosis.Evidence{Score: "repeat", Kind: "repeat"}
	if got := causesOf(e, [2][]float64{cut(100, 100), cut(99, 99)}); len(got) == 0 || got[0].Code != diagnosis.Support {
		t.Errorf("%+v", got)
	}
	for _, c := range causesOf(e, [2][]float64{cut(100, 100), cut(99, 100)}) {
		if c.Code == diagnosis.Support {
			t.Errorf("a public bound: %+v", c)
		}
	}
}

// Every cause has a section of the page that it names, and every section is one of a cause.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../" + diagnosis.Page)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			sections[name] = true
		}
	}
	for code, name := range diagnosis.Names {
		if !sections[string(code)] || name == "" {
			t.Errorf("%s (%s) has no section in %s", code, name, diagnosis.Page)
		}
	}
	const blocked = "noise_of_a_copy" // the cause of a violation that a control blocks, which has no finding
	if !sections[blocked] || len(sections) != len(diagnosis.Names)+1 {
		t.Errorf("%d sections for %d causes and %s", len(sections), len(diagnosis.Names), blocked)
	}
}

// Rounded Laplace noise, geometric noise and rounded Gaussian noise are told apart, and half the noise is found to be
// half. The answers are at the quantiles of each law: nothing is drawn.
func TestFamiliesOfWholeNumbers(t *testing.T) {
	t.Parallel()
	const n = 4000
	laplace := func(p, b float64) float64 { return math.Copysign(b*math.Log(1-2*math.Abs(p-.5)), .5-p) }
	for _, c := range []struct {
		name, words string
		at          func(p float64) float64
		delta       float64
		shift       float64
		share       float64
	}{
		{"rounded Laplace", "rounded Laplace noise", func(p float64) float64 { return math.Round(laplace(p, .5)) }, 0, 1, .5},
		{"geometric", "geometric noise", func(p float64) float64 {
			a, k := math.Exp(-2), 0.0 // epsilon 2
			for c := (1 - a) / (1 + a); p > .5+c/2 && k < 60; k++ {
				c += 2 * (1 - a) / (1 + a) * math.Pow(a, k+1)
			}
			for c := (1 - a) / (1 + a); p < .5-c/2 && k > -60; k-- {
				c += 2 * (1 - a) / (1 + a) * math.Pow(a, 1-k)
			}
			return k
		}, 0, 1, .5},
		{"rounded Gaussian", "rounded Gaussian noise", func(p float64) float64 { return math.Round(6 * math.Sqrt2 * math.Erfinv(2*p-1)) }, 1e-5, 10, 0},
	} {
		var xs [2][]float64
		for i := range n {
			x := c.at((float64(i) + .5) / n)
			xs[0], xs[1] = append(xs[0], 100+c.shift+x), append(xs[1], 100+x)
		}
		e := diagnosis.Evidence{
			Epsilon: 1, Delta: c.delta, Trials: n, Columns: 1, Groups: 1,
			Slots: []diagnosis.Slot{{Where: withheld.Public("column x"), Discrete: true, Numbers: xs}},
		}
		got := diagnosis.Causes(e)
		if len(got) == 0 || !strings.Contains(got[0].Text.String(), c.words) {
			t.Errorf("%s: %+v", c.name, got)
			continue
		}
		if share := got[0].Figures["scale_over_needed"]; c.share > 0 && math.Abs(share-c.share) > .02 {
			t.Errorf("%s: %v of the scale, want %v", c.name, share, c.share)
		}
	}
}
