package score

import (
	"math"
	"strconv"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// combination is a weighted sum of slots, sum of weight (x - center): a score of a whole result that follows from the
// past alone. Its unit is rounded to, so that sums which differ by rounding errors alone are equal.
type combination struct {
	terms  []term
	unit   float64
	strict bool // a result without a number in one of the first two slots has that slot's category
}

// term is one slot of a combination.
type term struct {
	slot                  int
	center, weight, reach float64 // numbers further than reach from the center count as this far
}

// combinationReach bounds the score of a combination, so that rounding it keeps its meaning.
const combinationReach = 1 << 16

// of returns the score of a result. Slots without a number add nothing.
func (m *combination) of(at func(slot int) code.Code) code.Code {
	sum := 0.0
	for i := range m.terms {
		t := &m.terms[i]
		c := at(t.slot)
		if !code.IsNumber(c) {
			if m.strict && i < 2 {
				return c
			}
			continue
		}
		sum += t.weight * min(max(c-t.center, -t.reach), t.reach)
	}
	if math.IsNaN(sum) { // infinity minus infinity
		return 0
	}
	return code.Number(math.Round(min(max(sum, -combinationReach), combinationReach)/m.unit) * m.unit)
}

func (m *combination) score(r *Result) code.Code { return m.of(r.at) }

func (m *combination) state(c *state.Codec) {
	state.List(c, &m.terms, func(t *term) {
		c.All(&t.slot, &t.center, &t.weight, &t.reach)
		c.Check(t.slot >= 0 && t.slot < c.Slots)
	})
	c.All(&m.unit, &m.strict)
}

// ofPast writes the scores of kept pairs from, from+stride, ... to dst.
func (m *combination) ofPast(dst []code.Code, slots []*Series, world int, p Portion) []code.Code {
	dst = dst[:0]
	for i := range p.N {
		k := p.At(i)
		dst = append(dst, m.of(func(slot int) code.Code { return slots[slot].Past[world][k] }))
	}
	return dst
}

// ofAllPast returns the scores of all kept pairs, and whether there is a combination.
func (m *combination) ofAllPast(in *Input) (past [2][]code.Code, ok bool) {
	if m.terms == nil {
		return past, false
	}
	all := Portion{0, 1, len(in.Slots[0].Past[0])}
	for w := range past {
		past[w] = m.ofPast(nil, in.Slots, w, all)
	}
	return past, true
}

// Portion is the part of the kept pairs that is learned from: N of them, evenly spread, the latest among them.
type Portion struct{ from, stride, N int }

func (p Portion) At(i int) int { return p.from + i*p.stride }

// PortionOf keeps at most the given number of pairs.
func PortionOf(kept, most int) Portion {
	stride := max(1, (kept+most-1)/max(1, most))
	n := kept / stride
	return Portion{kept - n*stride, stride, n}
}

// standard are the values of slots in units of their spread around their center, clipped: per slot, world and pair.
// An outcome that is not a number is NaN.
type standard struct {
	slots  []int // those with numbers that spread
	center []float64
	scale  []float64
	values [][2][]float64
	flat   []float64
}

// read takes the values of the chosen slots from the kept pairs. Slots whose worlds share their noise are left out: they
// are compared without assuming independence.
func (d *standard) read(slots []*Series, chosen []int, p Portion, clip float64) {
	d.slots, d.center, d.scale, d.values, d.flat = d.slots[:0], d.center[:0], d.scale[:0], d.values[:0], d.flat[:0]
	for _, i := range chosen {
		s := slots[i]
		center, scale := s.standard()
		if scale == 0 {
			continue
		}
		d.slots, d.center, d.scale = append(d.slots, i), append(d.center, center), append(d.scale, scale)
		for _, past := range s.Past {
			for k := range p.N {
				z := (past[p.At(k)] - center) / scale
				d.flat = append(d.flat, min(max(z, -clip), clip)) // NaN stays NaN
			}
		}
	}
	for i := range d.slots {
		at := 2 * i * p.N
		d.values = append(d.values, [2][]float64{d.flat[at : at+p.N], d.flat[at+p.N : at+2*p.N]})
	}
}

// standard returns the center of a slot and the spread around it, 0 for a slot without a spread and where the worlds
// share their noise.
func (s *Series) standard() (center, scale float64) {
	if s.Shared || s.Table == nil {
		return 0, 0
	}
	center, lo, hi, _ := middle(s.Binner.Edges)
	if scale = (hi - lo) / 2; !(scale > 0) || math.IsInf(scale, 0) || math.IsInf(1/scale, 0) {
		return center, 0
	}
	return center, scale
}

// fillCenters puts what is missing at the center.
func (d *standard) fillCenters() {
	for i, z := range d.flat {
		if math.IsNaN(z) {
			d.flat[i] = 0
		}
	}
}

// combine makes a combination of the standardised slots with the given weights.
func (d *standard) combine(weights []float64, clip float64) combination {
	m := combination{unit: 0x1p-32}
	for i, w := range weights {
		if w == 0 {
			continue
		}
		m.terms = append(m.terms, d.term(i, w, clip))
		m.unit = max(m.unit, d.rounding(i, w))
	}
	return m
}

func (d *standard) term(i int, weight, clip float64) term {
	return term{slot: d.slots[i], center: d.center[i], weight: weight / d.scale[i], reach: clip * d.scale[i]}
}

// rounding is a power of two well above the error that a slot's last bit makes in a combination.
func (d *standard) rounding(i int, weight float64) float64 {
	_, e := math.Frexp(math.Abs(weight) * (math.Abs(d.center[i])/d.scale[i] + 1))
	return math.Ldexp(1, min(e-40, 0))
}

// words names the slots of a combination. Weights are learned from the answers, and so withheld.
func (m *combination) words(in *Input, s *Series, set uint64) withheld.Text {
	const most = 3
	var parts []withheld.Text
	for i, t := range m.terms {
		if i == most {
			parts = append(parts, withheld.Sprintf("%d more", len(m.terms)-most))
			break
		}
		weight := withheld.New(strconv.FormatFloat(t.weight, 'g', 4, 64)+" times ", "")
		parts = append(parts, withheld.Sprintf("%s%s", weight, in.SlotWords(t.slot)))
	}
	return withheld.Sprintf("sum of %s, each counted from its center: %s", withheld.Join(parts, ", "), in.binWords(s, set, nounOf("value", "values")))
}
