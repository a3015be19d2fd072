package score

import (
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// This file holds the score that is the difference (or sum) of two columns or groups that share noise: one noise added
// to two columns, one noise for all groups, a sum and a count moved by the same draw. The difference shows what one of
// them hides.

// contrastScore is the difference or sum of two slots that share noise.
var contrastScore = &kind{
	name: "difference", make: func(int) statistic { return new(contrast) }, where: severalSlots,
	several: .02, views: []event.View{event.Ascending, event.Sorted}, event: JointEvent,
	phrase: func(in *Input, e *Event) withheld.Text {
		return withheld.Sprintf("differences of columns or groups that share their noise, %s", partWords(e.Parts))
	},
}

type contrast struct{ combination }

func (m *contrast) fit(in *Input, s *Series) (past [2][]code.Code, differ bool) {
	if len(in.Slots) < 2 {
		return past, false
	}
	m.combination = in.learnContrast(m.stays(s))
	return m.ofAllPast(in)
}

func (m *contrast) weights(in *Input) []float64 {
	weights := make([]float64, len(in.Slots))
	for _, t := range m.terms[:min(2, len(m.terms))] {
		weights[t.slot] = 1
	}
	return weights
}

// Limits on the pairs of slots that are tried.
const (
	maxContrastPairs = 256 // kept pairs that are learned from
)

// A contrast is bet on when one slot explains at least half of the other's variance, and the two worlds' means of what
// it leaves unexplained differ by more than chance would make them over all pairs tried.
const (
	leastExplained = .5
	leastContrast  = 25 // squared standard errors: chance over 500 pairs makes 12
)

// moments are the sums behind the regression of x on y within the worlds.
type moments struct {
	n, x, y    [2]float64 // per world: the count, then means
	xx, yy, xy float64    // sums of squares and products around the worlds' means
}

func momentsOf(x, y *[2][]float64) (m moments) {
	for w := range x {
		var sx, sy, sxx, syy, sxy, n float64
		for i, a := range x[w] {
			b := y[w][i]
			if math.IsNaN(a + b) {
				continue
			}
			n++
			sx, sy = sx+a, sy+b
			sxx, syy, sxy = sxx+a*a, syy+b*b, sxy+a*b
		}
		if n == 0 {
			continue
		}
		m.n[w], m.x[w], m.y[w] = n, sx/n, sy/n
		m.xx, m.yy, m.xy = m.xx+sxx-sx*sx/n, m.yy+syy-sy*sy/n, m.xy+sxy-sx*sy/n
	}
	return m
}

// contrast returns the slope of the regression, the part of the variance that it explains, and by how many squared
// standard errors the worlds' mean residuals differ.
func (m *moments) contrast() (slope, explained, z2 float64) {
	if m.n[0] < leastJoint || m.n[1] < leastJoint || !(m.xx > 0) || !(m.yy > 0) {
		return 0, 0, 0
	}
	slope = m.xy / m.yy
	explained = m.xy * slope / m.xx
	gap := (m.x[0] - m.x[1]) - slope*(m.y[0]-m.y[1])
	n := m.n[0] + m.n[1]
	// Rounding errors leave about 2^-50 of the variance, which must not look like a difference.
	left := max(m.xx-m.xy*slope, 0x1p-40*m.xx) / (n - 3)
	return slope, explained, gap * gap / (left * (1/m.n[0] + 1/m.n[1]))
}

// learnContrast returns the difference of the pair that separates the worlds best, without terms if there is none.
//
// It tries all pairs of up to 16 slots; with more, for every slot the one before, the same column of the group before,
// and the mean of its column, a number of pairs that grows with the slots, not with their square; and all pairs of some
// in turn.
func (in *Input) learnContrast(stay []int) combination {
	cells := in.Reader.Cells()
	p := PortionOf(len(in.Slots[0].Past[0]), maxContrastPairs)
	d := &in.standard
	d.read(in.Slots, in.inTurn(len(in.Slots), mostNeighbours, 4*cells, stay...), p, math.MaxFloat64)
	best, top := combination{}, float64(leastContrast)
	consider := func(x, y *[2][]float64, make func(slope float64) combination) {
		m := momentsOf(x, y)
		if slope, explained, z2 := m.contrast(); explained >= leastExplained && z2 > top {
			top, best = z2, make(slope)
		}
	}
	pair := func(i, j int) {
		consider(&d.values[i], &d.values[j], func(slope float64) combination {
			return combination{
				terms:  []term{d.term(i, 1, math.MaxFloat64), d.term(j, -slope, math.MaxFloat64)},
				unit:   max(0x1p-32, d.rounding(i, 1), d.rounding(j, slope)),
				strict: true,
			}
		})
	}
	few := make([]int, 0, mostPaired) // of d.slots
	for i, slot := range d.slots {
		if slices.Contains(stay, slot) {
			few = append(few, i)
		}
	}
	few = in.inTurn(len(d.slots), mostPaired, 1, few...)
	for i := range few {
		for j := range i {
			pair(few[i], few[j])
		}
	}
	if len(d.slots) <= mostPaired {
		return best
	}
	for i, slot := range d.slots {
		for j := i - 1; j >= 0 && slot-d.slots[j] <= cells; j-- {
			if back := slot - d.slots[j]; back == 1 || back == cells {
				pair(i, j)
			}
		}
	}
	for column := range cells {
		members, mean := d.columnMean(column, cells, p.N)
		for _, i := range members {
			consider(&d.values[i], &mean, func(slope float64) combination { return d.against(i, members, slope) })
		}
	}
	return best
}

// columnMean returns the standardised slots of one column and their mean per world and pair, missing ones at the
// center.
func (d *standard) columnMean(column, cells, n int) (members []int, mean [2][]float64) {
	for i, slot := range d.slots {
		if slot%cells == column {
			members = append(members, i)
		}
	}
	for w := range mean {
		mean[w] = make([]float64, n)
		for _, i := range members {
			for k, z := range d.values[i][w] {
				if !math.IsNaN(z) {
					mean[w][k] += z / float64(len(members))
				}
			}
		}
	}
	return members, mean
}

// against is a slot less slope times the mean of its column.
func (d *standard) against(i int, members []int, slope float64) combination {
	weights := make([]float64, len(d.slots))
	for _, j := range members {
		weights[j] = -slope / float64(len(members))
	}
	weights[i]++
	return d.combine(weights, math.MaxFloat64)
}
