package eprocess_test

import (
	"math"
	"testing"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
)

// The golden values were computed with a bisection of the defining equations to 1e-12.
func TestProjectEventGolden(t *testing.T) {
	t.Parallel()
	e := math.E
	for _, c := range []struct {
		name                  string
		p1, q1, delta, n0, n1 float64
		wantP, wantQ          float64
	}{
		{"pure", .5, .5 * math.Exp(-1.1), 0, 1, 1, .4911506279, .1806842185},
		{"delta", .4, .05, .01, 1, 1, e*.1228317650 + .01, .1228317650},
		{"four_runs_on_d1", .4, .05, .01, 1, 4, e*.0915678772 + .01, .0915678772},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, q, ok := eprocess.ProjectEvent(c.p1, c.q1, e, c.delta, c.n0, c.n1)
			if !ok || math.Abs(p-c.wantP) > 1e-9 || math.Abs(q-c.wantQ) > 1e-9 {
				t.Errorf("got p*=%.10f q*=%.10f ok=%v, want %.10f %.10f", p, q, ok, c.wantP, c.wantQ)
			}
		})
	}
	if _, _, ok := eprocess.ProjectEvent(.3, .2, e, 0, 1, 1); ok {
		t.Error("an alternative inside the null must not be bet on")
	}
}

func TestProjectBinsGolden(t *testing.T) {
	t.Parallel()
	p, q := []float64{.6, .3, .1}, []float64{.15, .25, .6}
	wantP := []float64{.5275562406, .2764816972, .1959620621}
	wantQ := []float64{.1940770950, .2732427925, .5326801125}
	gotP, gotQ := make([]float64, 3), make([]float64, 3)
	eprocess.ProjectBins(p, q, math.E, 1, 1, gotP, gotQ)
	for i := range p {
		if math.Abs(gotP[i]-wantP[i]) > 1e-9 || math.Abs(gotQ[i]-wantQ[i]) > 1e-9 {
			t.Errorf("bin %d: got %.10f %.10f, want %.10f %.10f", i, gotP[i], gotQ[i], wantP[i], wantQ[i])
		}
	}
}
