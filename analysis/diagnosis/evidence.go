package diagnosis

import (
	"math"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Evidence is what causes are found from.
type Evidence struct {
	Epsilon, Delta float64 // the claim
	Bound          float64 // the greatest number in the query to which a value may be clipped; 0 = not known
	Average        bool    // a column of the answer is an average

	Score, Kind, Tail string // of the event with the strongest evidence, as in the report

	Constant bool // the answers of each world never vary
	Repeated bool // exact repeats far beyond chance, in a world that varies
	Keyed    bool // the results have groups
	Columns  int  // measures per group
	Groups   int
	Slots    []Slot // the columns and groups that are looked at
	Failures [2]int // trials that failed, of Trials
	Trials   int
}

// Slot is one column of one group.
type Slot struct {
	Where         withheld.Text
	Group, Column int
	Discrete      bool // all numbers are whole
	Shared        bool // both worlds have the same noise
	// Numbers has one number per kept trial, NaN for another outcome. Trials of different slots are aligned.
	Numbers [2][]float64
	// Absent, Null, Errors and NotFinite (NaN and the infinities) count other outcomes of the kept trials; Texts counts
	// texts and booleans, aligned between the worlds.
	Absent, Null, Errors, NotFinite [2]int
	Texts                           [2][]int
}

// kept returns the number of kept trials of a world.
func (s *Slot) kept() int { return len(s.Numbers[0]) }

// shares returns the shares of counts of kept trials of each world.
func (s *Slot) shares(k [2]int) (d0, d1 float64) {
	n := float64(s.kept())
	return float64(k[0]) / n, float64(k[1]) / n
}

// finite returns the numbers of a world.
func (s *Slot) finite(world int) []float64 {
	var xs []float64
	for _, x := range s.Numbers[world] {
		if !math.IsNaN(x) {
			xs = append(xs, x)
		}
	}
	return xs
}

// leaks reports whether an outcome, or its absence, with the given counts in n trials per world is more likely in one
// world than the claim allows, beyond chance: half a count is added to each, and the logarithm of the ratio must exceed
// epsilon by 1.5 standard errors.
func (e *Evidence) leaks(k [2]int, n int) bool {
	return e.above(k, n) || e.above([2]int{n - k[0], n - k[1]}, n)
}

func (e *Evidence) above(k [2]int, n int) bool {
	x, y := float64(max(k[0], k[1]))+.5, float64(min(k[0], k[1]))+.5
	total := float64(n) + 1
	deviation := math.Sqrt(1/x - 1/total + 1/y - 1/total)
	return x-float64(n)*e.Delta >= 8 && math.Log(x/y)-e.Epsilon > min(1.5*deviation, 1)
}
