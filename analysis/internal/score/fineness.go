package score

import (
	"cmp"
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// finenessScore is lowest bits too fine for noise around a world's centre.
var finenessScore = &kind{
	name: "fineness", make: func(int) statistic { return new(fineness) }, where: knownColumns, single: .07, several: .01,
	views: []event.View{event.Ascending}, prior: SupportPrior, lopsided: true, lowBits: true, lifetime: lifetime{pairs: 65, learned: 1, growth: 1.5}, event: DigitsEvent,
	phrase: publicPhrase("numbers with more binary places than the noise of the other dataset gives (floating point)"),
}

// fineness scores how fine the lowest bits of a result's numbers are for noise in floating point around the centre of
// each world.
//
// A sum x + z in floating point is a multiple of the lowest bit of x or of the last place of z, whichever is finer, and
// so of the latter where x has few bits (Mironov 2012). The last place of y - x, with 53 bits, shows for a number y
// alone whether it can come from x. The lowest bit without the magnitude shows less.
type fineness struct {
	slots []finenessOf
}

// finenessOf is what is known of a slot: what the query does to noisy numbers, and the centre of these in each world,
// NaN where there is none.
type finenessOf struct {
	slot       int
	arithmetic arithmetic
	centers    [2]float64
}

// Limits of the score.
const (
	maxFinePairs = 1024
	fineSteps    = 8  // to each side of the median, of so many to the spread, are tried as centres
	deepest      = 16 // binary places
	leastFine    = 6  // chi-square of one degree of freedom in the past, below which nothing is bet
)

// of scores the numbers of a result: above 0 they are too fine for D1, below 0 for D0.
func (f *fineness) of(at func(slot int) code.Code) code.Code {
	var deep [2]int
	for _, of := range f.slots {
		if c := at(of.slot); code.IsNumber(c) {
			for w, center := range of.centers {
				deep[w] = max(deep[w], of.arithmetic.tooFine(c, center))
			}
		}
	}
	return float64(deep[1] - deep[0])
}

func (f *fineness) score(r *Result) code.Code { return f.of(r.at) }

func (f *fineness) words(in *Input, s *Series, set uint64) withheld.Text {
	places, before := "binary places too fine for D1 (below 0: for D0)", ""
	for _, of := range f.slots {
		before = cmp.Or(before, of.arithmetic.words())
	}
	return withheld.Sprintf("lowest bits%s beside those of noise around the centres: %s", before, in.binWords(s, set, nounOf(places, "numbers of "+places)))
}

func (f *fineness) state(c *state.Codec) {
	state.List(c, &f.slots, func(of *finenessOf) {
		of.arithmetic.state(c)
		c.All(&of.slot, &of.centers[0], &of.centers[1])
		c.Check(of.slot >= 0 && of.slot < c.Slots)
	})
	c.Check(len(f.slots) <= mostFine)
}

// fit chooses the centres and returns the scores of the past. It reports whether one world's numbers are finer than
// chance makes them.
func (f *fineness) fit(in *Input, bet *Series) (scores [2][]code.Code, differ bool) {
	var stay []int
	for _, of := range f.slots {
		if bet.Table != nil {
			stay = append(stay, of.slot)
		}
	}
	f.slots = f.slots[:0]
	if len(in.Slots) == 0 {
		return scores, false
	}
	p := PortionOf(len(in.Slots[0].Past[0]), maxFinePairs)
	for _, slot := range in.inTurn(len(in.Slots), mostFine, 1, stay...) {
		s := in.Slots[slot]
		of := finenessOf{slot: slot, centers: [2]float64{math.NaN(), math.NaN()}}
		if !s.Shared {
			of.arithmetic = s.findArithmetic(in.Constants)
			for w, past := range s.Past {
				of.centers[w] = of.arithmetic.centerOf(&in.scratch, past, p)
			}
		}
		f.slots = append(f.slots, of)
	}
	var sides [2][2]float64 // per sign of the score and world
	for w := range 2 {
		scores[w] = make([]code.Code, p.N)
		for k := range p.N {
			x := f.of(func(slot int) code.Code { return in.Slots[slot].Past[w][p.At(k)] })
			if scores[w][k] = x; x != 0 {
				sides[code.Bit(x > 0)][w]++
			}
		}
	}
	for _, k := range sides {
		gap := k[0] - k[1]
		differ = differ || gap*gap > leastFine*(k[0]+k[1])
	}
	return scores, differ
}

// centerOf returns the point near the median of one world's past, before the arithmetic, for which the fewest numbers are
// too fine, of those the nearest; NaN where no numbers are.
func (a arithmetic) centerOf(sc *bins.Scratch, past []code.Code, p Portion) float64 {
	sc.Values = sc.Values[:0]
	for k := range p.N {
		if c := past[p.At(k)]; code.IsNumber(c) {
			sc.Values = append(sc.Values, c)
		}
	}
	n := len(sc.Values)
	if n == 0 {
		return math.NaN()
	}
	sc.Sort(sc.Values)
	middle, step := sc.Values[n/2], (sc.Values[n-1-n/4]/2-sc.Values[n/4]/2)/fineSteps
	best, fewest := middle, n+1
	for i := range 2*fineSteps + 1 {
		side := (i + 1) / 2
		if i%2 == 0 {
			side = -side
		}
		at, _, _ := a.undo(middle + float64(side)*step)
		fine := 0
		for _, x := range sc.Values {
			fine += code.Bit(a.tooFine(x, at) > 0)
		}
		if fine < fewest {
			best, fewest = at, fine
		}
	}
	return best
}
