package score

import (
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// fractionScore is what a value leaves over a modulus, or how many bits it uses.
var fractionScore = &kind{
	name: "fraction", make: func(int) statistic { return new(fraction) }, where: knownColumns, single: .005, several: .005,
	views: []event.View{event.Sorted}, lifetime: lifetime{learned: 64, growth: 2}, event: DigitsEvent, column: true,
	phrase: func(in *Input, e *Event) withheld.Text {
		return withheld.Sprintf("some remainders of %s over a round number", in.Place(e.Series.Slot))
	},
}

// fraction scores what one slot's value leaves over a modulus, as a part of it (in [0, 1), in steps of 2^-16), or, for
// the modulus 0, how many significant bits the value uses.
//
// Rounded or integer noise leaves the fraction of the true answer as it is, at whatever size of the noise.
// Floating-point noise on a lattice that moves with the true answer leaves it in the tail of the mantissa (Mironov
// 2012).
type fraction struct {
	slot    int
	modulus float64
	learned bool    // the modulus is not a round one, but a period that the past shows
	origin  float64 // from which multiples of a learned modulus are counted
}

// fractionModuli are tried, and a period that the past shows (see findPeriod); steps of decimal and of binary rounding.
var fractionModuli = [...]float64{0, 1000, 100, 10, 1, .1, .01, 1e-3, 1e-4, 1e-5, 1e-6, 0x1p-10, 0x1p-20, 0x1p-30}

// Limits on what is tried.
const (
	maxFractionPairs = 256
	fractionBins     = 16
	leastFraction    = 60 // chi-square of 15 degrees of freedom: chance passes it once in 4 million
)

// of returns the score of a code; categories are themselves.
func (f *fraction) of(c code.Code) code.Code {
	if !code.IsNumber(c) {
		return c
	}
	return code.Number(residue(c-f.origin, f.modulus))
}

func residue(x, modulus float64) float64 {
	if modulus == 0 {
		return float64(code.SignificantBits(x))
	}
	part := remainder(x, modulus) / modulus
	if part < 0 {
		part++
	}
	part = math.Round(part*0x1p16) * 0x1p-16
	if part == 1 {
		return 0
	}
	return part
}

// remainder is math.Mod for a modulus above 0, without its loop. The quotient is at most 1 off, so that what is left of
// x is a multiple of the lowest bit of x or of the modulus, and as small as either: it has an exact float64.
func remainder(x, modulus float64) float64 {
	quotient := math.Trunc(x / modulus)
	if !(math.Abs(quotient) < 1<<52) {
		return math.Mod(x, modulus)
	}
	left := math.FMA(-quotient, modulus, x)
	switch {
	case x > 0 && left < 0 || x < 0 && left <= -modulus:
		return left + modulus
	case x > 0 && left >= modulus || x < 0 && left > 0:
		return left - modulus
	}
	return left
}

func (f *fraction) score(r *Result) code.Code { return f.of(r.at(f.slot)) }

func (f *fraction) words(in *Input, s *Series, set uint64) withheld.Text {
	return withheld.Sprintf("%s: %s", in.SlotWords(f.slot), in.binWords(s, set, f.noun()))
}

func (f *fraction) state(c *state.Codec) {
	c.All(&f.slot, &f.modulus, &f.learned, &f.origin)
	c.Check(f.slot == 0 || f.slot > 0 && f.slot < c.Slots)
}

func (f *fraction) fit(in *Input, s *Series) (past [2][]code.Code, differ bool) {
	var stay []int
	if s.Table != nil {
		stay = []int{f.slot}
	}
	if !f.choose(in, in.inTurn(len(in.Slots), mostDivided, 1, stay...)) {
		return past, false
	}
	s.Slot = f.slot
	return in.Slots[f.slot].scores(f.of), true
}

// noun says what is scored.
func (f *fraction) noun() noun {
	if f.modulus == 0 {
		return nounOf("number of significant bits", "numbers of significant bits")
	}
	if f.learned {
		length := withheld.New(fmt.Sprintf("of %.6g", f.modulus), "of a period that the answers show")
		return noun{
			withheld.Sprintf("what is left over multiples %s, as a part of it,", length),
			withheld.Sprintf("remainders over multiples %s", length),
		}
	}
	return nounOf(fmt.Sprintf("what is left over multiples of %.6g, as a part of it,", f.modulus),
		fmt.Sprintf("remainders over multiples of %.6g", f.modulus))
}

// choose chooses one of some slots, and the modulus under which the worlds differ most. It reports whether they differ
// more than chance would have it.
func (f *fraction) choose(in *Input, slots []int) bool {
	if len(slots) == 0 {
		return false
	}
	p := PortionOf(len(in.Slots[0].Past[0]), maxFractionPairs)
	top := float64(leastFraction)
	found := false
	for _, i := range slots {
		s := in.Slots[i]
		if s.Shared {
			continue
		}
		consider := func(g fraction, x float64) {
			if x > top {
				top, found, *f = x, true, g
			}
		}
		for _, m := range fractionModuli {
			g := fraction{slot: i, modulus: m}
			if m == 0 && in.LowBits != Counted {
				continue
			}
			consider(g, g.differ(s.Past, p))
		}
		if t, distance := in.transform.findPeriod(&in.scratch, s.Past, p); distance >= leastPeriod {
			g := fraction{slot: i, modulus: t.length, learned: true, origin: t.origin}
			consider(g, max(g.differ(s.Past, p), leastFraction*distance/leastPeriod))
		}
	}
	return found
}

// differ is the chi-square of the two worlds' residues.
func (f *fraction) differ(past [2][]code.Code, p Portion) (x float64) {
	var counts [2][fractionBins]float64
	for w, codes := range past {
		for k := range p.N {
			if c := codes[p.At(k)]; code.IsNumber(c) {
				counts[w][fractionBin(residue(c-f.origin, f.modulus), f.modulus)]++
			}
		}
	}
	for b := range fractionBins {
		if n := counts[0][b] + counts[1][b]; n > 0 {
			x += (counts[0][b] - counts[1][b]) * (counts[0][b] - counts[1][b]) / n
		}
	}
	return x
}

// fractionBin is the bin of a residue. The bins of fractions have their edges between the round ones.
func fractionBin(x, modulus float64) int {
	switch {
	case math.IsNaN(x): // too far from the origin for a remainder
		return 0
	case modulus == 0:
		return int(x) * fractionBins / 56
	}
	return int(x*fractionBins+.5) % fractionBins
}
