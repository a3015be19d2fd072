package plot

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// wholeTicks sets the ticks of an axis of counts: at most seven whole numbers, in steps of 1, 2 or 5 times a power of ten.
type wholeTicks struct{}

// Ticks implements [plot.Ticker].
func (wholeTicks) Ticks(lo, hi float64) (ticks []plot.Tick) {
	least := (hi - lo) / 6
	step := math.Pow(10, max(0, math.Floor(math.Log10(least))))
	switch {
	case step >= least:
	case 2*step >= least:
		step *= 2
	case 5*step >= least:
		step *= 5
	default:
		step *= 10
	}
	for i := math.Ceil(lo / step); i*step <= hi; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'f', -1, 64)})
	}
	return ticks
}
