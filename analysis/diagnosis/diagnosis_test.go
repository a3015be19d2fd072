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

// A shift that clipped values can make, by the bound in the query, is too little noise; without that bound it looks like
// values that are not clipped, since the noise is made for a round sensitivity. The answers are at the quantiles of
// Laplace noise: nothing is drawn.
func TestBound(t *testing.T) {
	t.Parallel()
	const n, scale, shift = 4000, 10, 37.3
	var xs [2][]float64
	for i := range n {
		p := (float64(i) + .5) / n
		x := math.Copysign(scale*math.Log(1-2*math.Abs(p-.5)), .5-p)
		xs[0], xs[1] = append(xs[0], 100+shift+x), append(xs[1], 100+x)
	}
	for bound, want := range map[float64]diagnosis.Code{0: diagnosis.Clipping, 10: diagnosis.Clipping, 20: diagnosis.Clipping, 50: diagnosis.NoiseScale} {
		got := diagnosis.Causes(diagnosis.Evidence{
			Epsilon: 1, Bound: bound, Trials: n, Columns: 1, Groups: 1, Slots: []diagnosis.Slot{{Where: withheld.Public("column x"), Numbers: xs}},
		})
		if len(got) < 2 || got[0].Code != want {
			t.Errorf("bound %v: %+v, want %s", bound, got, want)
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
