package score

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestRemainder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	moduli := []float64{1000, 10, .1, .01, 1e-3, 1e-6, 0x1p-20, 0x1p-30, .37}
	for range 200_000 {
		x, m := math.Float64frombits(r.Uint64()), moduli[r.IntN(len(moduli))]
		switch r.IntN(4) {
		case 0:
			x = r.NormFloat64() * math.Pow(10, float64(r.IntN(12)-3))
		case 1:
			x = math.Round(r.NormFloat64()*1000) * m
		case 2:
			x = math.Nextafter(math.Round(r.NormFloat64()*1000)*m, 0)
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		if got, want := remainder(x, m), math.Mod(x, m); got != want {
			t.Fatalf("%v modulo %v is %v, want %v", x, m, got, want)
		}
	}
}
