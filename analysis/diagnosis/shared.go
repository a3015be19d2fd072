package diagnosis

import (
	"math"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Limits of the search for shared noise.
const (
	maxSharedSlots = 16
	leastShared    = .5 // correlation within a world
)

// sharedNoise looks for columns or groups of one answer whose noise is correlated within each world.
func (e *Evidence) sharedNoise() (c Cause, ok bool) {
	slots := e.Slots[:min(len(e.Slots), maxSharedSlots)]
	top := 0.0
	var pair [2]int
	for i := range slots {
		for j := range i {
			r := max(math.Abs(correlation(slots[i].Numbers[0], slots[j].Numbers[0])), math.Abs(correlation(slots[i].Numbers[1], slots[j].Numbers[1])))
			if r > top {
				top, pair = r, [2]int{j, i}
			}
		}
	}
	if top < leastShared {
		return c, false
	}
	weight := .5
	if e.Score == "difference" || e.Score == "joint_products" || e.Score == "joint_ratio" {
		weight = .94
	} else if top > .9 {
		weight = .84
	}
	return newCause(SharedNoise, weight, withheld.Sprintf("The noise of %s and of %s has a correlation of %.2g: their difference hides less than each alone.",
		slots[pair[0]].Where, slots[pair[1]].Where, top), map[string]float64{"correlation": top}), true
}

// correlation returns the correlation of two series over the trials that have both numbers. It is 0 for fewer than 10
// such trials where one does not vary, and below four standard errors.
func correlation(x, y []float64) float64 {
	var mx, my, n float64
	for i := range x {
		if !math.IsNaN(x[i] + y[i]) {
			mx, my, n = mx+x[i], my+y[i], n+1
		}
	}
	if n < leastNumbers {
		return 0
	}
	mx, my = mx/n, my/n
	var xx, yy, xy float64
	for i := range x {
		if !math.IsNaN(x[i] + y[i]) {
			dx, dy := x[i]-mx, y[i]-my
			xx, yy, xy = xx+dx*dx, yy+dy*dy, xy+dx*dy
		}
	}
	r := xy / math.Sqrt(xx*yy)
	if !(math.Abs(r) <= 1.001) || math.Abs(r) < 4/math.Sqrt(n) {
		return 0
	}
	return r
}
