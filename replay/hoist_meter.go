package replay

import (
	"slices"
	"time"
)

// meterBatches is how many batches of rounds, the latest ones, say how long a round takes.
const meterBatches = 15

// meter measures what rounds take. A stall of a busy machine lengthens some batches; the median does not follow them.
type meter struct {
	rounds int
	spent  time.Duration
	each   []time.Duration // of a round, by batch
}

// add notes a batch.
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

// round returns how long a round takes: the median of the batches, at least 1 ns.
func (m *meter) round() time.Duration {
	if len(m.each) == 0 {
		return 1
	}
	sorted := slices.Sorted(slices.Values(m.each))
	return max(sorted[len(sorted)/2], 1)
}
