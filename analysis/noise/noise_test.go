package noise_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis/noise"
)

func ExampleTest() {
	r := rand.New(rand.NewPCG(1, 2))
	residuals := make([]float64, 2000)
	for i := range residuals {
		residuals[i] = draw(r, noise.Law{Family: noise.Laplace, Scale: 2})
	}
	right, _ := noise.Test(residuals, noise.Law{Family: noise.Laplace, Scale: 2}, .99)
	half, _ := noise.Test(residuals, noise.Law{Family: noise.Laplace, Scale: 4.5}, .99)
	fmt.Println(right.Reading, half.Reading)
	// Output: correct wrong
}

func draw(r *rand.Rand, l noise.Law) float64 {
	switch l.Family {
	case noise.Laplace:
		return (r.ExpFloat64() - r.ExpFloat64()) * l.Scale
	case noise.Gaussian:
		return r.NormFloat64() * l.Scale
	}
	return math.Floor(r.ExpFloat64()*l.Scale) - math.Floor(r.ExpFloat64()*l.Scale)
}

var laws = []noise.Law{
	{Family: noise.Laplace, Scale: 1},
	{Family: noise.Gaussian, Scale: 3},
	{Family: noise.Geometric, Scale: 1},
	{Family: noise.Geometric, Scale: .4},
	{Family: noise.Geometric, Scale: 20},
}

func name(l noise.Law) string { return fmt.Sprintf("%s_%g", l.Family, l.Scale) }

// TestLevel refutes right noise at the rate asked for: at 5 %, more than 156 of 2000 has a probability below 4e-8,
// and so have fewer than 52. The intervals of the scale are held to the same. For all laws together that is below 1e-6.
func TestLevel(t *testing.T) {
	t.Parallel()
	for _, l := range laws {
		t.Run(name(l), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(3, 4))
			refuted, missed := 0, 0
			xs := make([]float64, 300)
			for range 2000 {
				for i := range xs {
					xs[i] = draw(r, l)
				}
				f, err := noise.Test(xs, l, .95)
				if err != nil {
					t.Fatal(err)
				}
				if f.PValue < .05 {
					refuted++
				}
				if f.ScaleLower > 1 || f.ScaleUpper < 1 {
					missed++
				}
			}
			t.Logf("refuted %d, scale missed %d of 2000", refuted, missed)
			if refuted > 156 || refuted < 52 || missed > 156 {
				t.Errorf("refuted %d of 2000 at 5 %%, scale missed %d", refuted, missed)
			}
		})
	}
}

// TestReadings holds the label, of 3000 residuals. Right noise is called wrong with a probability of 1e-7; the others
// are eight standard errors and more from another label.
func TestReadings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		true, declared noise.Law
		want           noise.Reading
	}{
		{"right", noise.Law{Family: noise.Laplace, Scale: 1}, noise.Law{Family: noise.Laplace, Scale: 1}, noise.Correct},
		{"wrong_family", noise.Law{Family: noise.Gaussian, Scale: 1}, noise.Law{Family: noise.Laplace, Scale: 1}, noise.MinorError},
		{"a_fifth_too_little", noise.Law{Family: noise.Laplace, Scale: .8}, noise.Law{Family: noise.Laplace, Scale: 1}, noise.MinorError},
		{"a_seventh_too_little", noise.Law{Family: noise.Laplace, Scale: .85}, noise.Law{Family: noise.Laplace, Scale: 1}, noise.MinorError}, // by the scale alone
		{"a_third_of_it", noise.Law{Family: noise.Gaussian, Scale: 1}, noise.Law{Family: noise.Gaussian, Scale: 3}, noise.Wrong},
		{"twice_as_much", noise.Law{Family: noise.Geometric, Scale: 4}, noise.Law{Family: noise.Geometric, Scale: 2}, noise.Wrong},
		{"geometric_a_quarter_off", noise.Law{Family: noise.Geometric, Scale: 2.5}, noise.Law{Family: noise.Geometric, Scale: 2}, noise.MinorError},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(5, 6))
			xs := make([]float64, 3000)
			for i := range xs {
				xs[i] = draw(r, c.true)
			}
			f, err := noise.Test(xs, c.declared, 1-1e-7)
			if err != nil || f.Reading != c.want {
				t.Errorf("%+v, %v; want %s", f, err, c.want)
			}
		})
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	good := make([]float64, 20)
	bad := append([]float64{math.NaN()}, good...)
	half := append([]float64{.5}, good...)
	for _, c := range []struct {
		name       string
		xs         []float64
		law        noise.Law
		confidence float64
	}{
		{"too_few", good[:19], laws[0], .95},
		{"nan", bad, laws[0], .95},
		{"not_whole", half, laws[2], .95},
		{"scale", good, noise.Law{}, .95},
		{"family", good, noise.Law{Family: 9, Scale: 1}, .95},
		{"confidence", good, laws[0], 1},
	} {
		if _, err := noise.Test(c.xs, c.law, c.confidence); err == nil {
			t.Errorf("%s: taken", c.name)
		}
	}
	for _, l := range laws { // no noise at all
		if f, err := noise.Test(good, l, .95); err != nil || f.Reading != noise.Wrong || math.IsNaN(f.PValue) {
			t.Errorf("%s: no noise: %+v, %v", name(l), f, err)
		}
	}
}
