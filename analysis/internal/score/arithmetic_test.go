package score

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestUndo: the number that an arithmetic was applied to lies within the distance of what undo returns, computed
// exactly, and is not too fine for the center around which it has its last place.
func TestUndo(t *testing.T) {
	t.Parallel()
	exact := func(x ...float64) *big.Float {
		sum := new(big.Float).SetPrec(400)
		for _, x := range x {
			sum.Add(sum, big.NewFloat(x))
		}
		return sum
	}
	r := rand.New(rand.NewPCG(4, 4))
	var all []arithmetic
	for _, last := range single {
		all = append(all, arithmetic{last: last})
	}
	for _, last := range operationsWith([]float64{6, 1.1, .1, 37.5}) {
		for _, before := range operationsWith([]float64{6, 1.1, .1, 37.5}) {
			all = append(all, arithmetic{last, before})
		}
	}
	for _, a := range all {
		for range 100 {
			z := r.NormFloat64() * math.Exp2(float64(r.IntN(8)))
			center := float64(r.IntN(20) - 10)
			from := center + z
			y := a.last.do(a.before.do(from))
			x, rest, within := a.undo(y)
			off := exact(x, rest, -from)
			if most := within * (1 + 0x1p-40); off.Abs(off).Cmp(big.NewFloat(most)) > 0 {
				t.Errorf("%v of %v is %v: undone %v + %v, more than %v off", a, from, y, x, rest, within)
			}
			if places := a.tooFine(y, center); places > 1 { // where z lies below a power of two, x - center may reach it
				t.Errorf("%v of %v: %d places too fine for %v", a, from, places, center)
			}
		}
	}
}

func (o operation) do(x float64) float64 {
	switch o.step {
	case division:
		return x / o.by
	case multiplication:
		return x * o.by
	case addition:
		return x + o.by
	}
	return x
}
