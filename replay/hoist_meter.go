package replay

import (
	"slices"
	"time"
)

// meterBatches is the number of latest batches from which the time of a round is computed.
const meterBatches = 15

// meter measures the time of rounds. The median is not affected when a busy machine delays some batches.
type meter struct {
	rounds int
	spent  time.Duration
	each   []time.Duration // time of a round, by batch
}

// add records a batch.
func (m *meter) add(rounds int, took time.Duration) {
	if rounds == 0 {
		return
	}
	m.rounds += rounds
	m.spent += took
	if len(m.each) == meterBatches {
		m.each = slices.Delete(m.each, 0, 1)
	}
	m.each = append(m.each, took/time.Duration(rounds))
}

// round returns the time of a round: the median over the batches, at least 1 ns.
func (m *meter) round() time.Duration {
	if len(m.each) == 0 {
		return 1
	}
	sorted := slices.Sorted(slices.Values(m.each))
	return max(sorted[len(sorted)/2], 1)
}
