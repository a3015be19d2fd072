package score

import (
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
)

// This file finds the period modulo which the worlds differ most, for periods that are not round numbers.
//
// The values of the past within four half interquartile ranges of the median are put into periodCells cells, and the
// Fourier transform of both worlds' histograms is compared frequency by frequency. Where the laws are the same, the
// squared distance of the two, over its variance, is about exponential with mean 1 at each frequency. One transform
// costs the same whatever the number of values, and only one frequency is refined.

// Limits on what is looked for.
const (
	periodCells      = 4096
	leastPeriodPairs = 48
	periodReach      = 4. // half interquartile ranges
	leastReach       = 0x1p-1000
	greatestReach    = 0x1p1000 // between the two, neither a frequency nor a sum of reaches is infinite
	leastPeriod      = 20.      // squared distance over its variance: chance passes it at one of 1365 frequencies once in 350,000
)

// period is a modulus, and the value from which multiples of it are counted.
type period struct{ length, origin float64 }

// transform is the memory of the Fourier transform, which is used again and again.
type transform struct {
	fft          *fourier.CmplxFFT
	cells, waves []complex128
}

// findPeriod returns the period under which the past values of two worlds differ most, and their squared distance over
// its variance; 0 where there is nothing to compare.
func (t *transform) findPeriod(sc *bins.Scratch, past [2][]code.Code, p Portion) (found period, distance float64) {
	sc.Values = sc.Values[:0]
	var n [2]int
	for w, codes := range past {
		for k := range p.N {
			if c := codes[p.At(k)]; code.IsNumber(c) {
				sc.Values = append(sc.Values, c)
				n[w]++
			}
		}
	}
	if min(n[0], n[1]) < leastPeriodPairs {
		return found, 0
	}
	if t.fft == nil {
		t.fft, t.cells = fourier.NewCmplxFFT(periodCells), make([]complex128, periodCells)
		t.waves = make([]complex128, periodCells)
	}
	sorted := append([]float64(nil), sc.Values...)
	slices.Sort(sorted)
	m := len(sorted)
	middle, half := sorted[m/2], sorted[m-1-m/4]/2-sorted[m/4]/2
	reach := periodReach * half
	unit := reach / (periodCells / 2)
	// Cells finer than the last place of the values would show how these are rounded.
	if !(reach >= leastReach && reach <= greatestReach) || unit < 0x1p-48*(math.Abs(middle)+reach) {
		return found, 0
	}
	clear(t.cells)
	for i, x := range sc.Values {
		at := math.Floor((x-middle)/unit) + periodCells/2
		if !(at >= 0 && at < periodCells) { // the difference may be infinite
			continue
		}
		if i < n[0] {
			t.cells[int(at)] += complex(1/float64(n[0]), 0)
		} else {
			t.cells[int(at)] += complex(0, 1/float64(n[1]))
		}
	}
	t.waves = t.fft.Coefficients(t.waves, t.cells)
	scale := float64(n[0]) * float64(n[1]) / float64(n[0]+n[1])
	best := 0
	// Longer periods than half of an interquartile range are seen in the value itself.
	for k := int(4 * periodReach / 2); k < periodCells/3; k++ {
		z, mirrored := t.waves[k], cmplx.Conj(t.waves[periodCells-k])
		gap := (z+mirrored)/2 - (z-mirrored)/2i
		if d := scale * (real(gap)*real(gap) + imag(gap)*imag(gap)); d > distance {
			distance, best = d, k
		}
	}
	if distance < leastPeriod {
		return found, distance
	}
	exact := func(frequency float64) float64 {
		var sum [2]complex128
		for i, x := range sc.Values {
			if math.Abs(x-middle) > reach {
				continue
			}
			s, c := math.Sincos(2 * math.Pi * frequency * (x - middle))
			sum[code.Bit(i >= n[0])] += complex(c, s)
		}
		gap := sum[0]/complex(float64(n[0]), 0) - sum[1]/complex(float64(n[1]), 0)
		return scale * (real(gap)*real(gap) + imag(gap)*imag(gap))
	}
	frequency := float64(best) / (2 * reach)
	distance = exact(frequency)
	for step := 1 / (4 * reach); step > 1e-4/reach; step /= 2 {
		for _, f := range [2]float64{frequency - step, frequency + step} {
			if d := exact(f); d > distance {
				frequency, distance = f, d
				break
			}
		}
	}
	return period{1 / frequency, middle}, distance
}
