package evidence

// Parameters of the choice of neighbours; see docs/statistics.md, "Why can several neighbours share the trials on D0?".
const (
	// favouredWealth is the log-wealth from which a neighbour has trials of its own.
	favouredWealth = 2
	// fullEvery is the number of batches of which one has trials of all neighbours.
	fullEvery = 8
)

// Spared returns the worlds, D0 first, that the nth next batch of rounds may leave out; nil = none. If the evidence of
// some neighbours has grown, these have the trials of most batches, so that a violation is found with fewer trials. No
// verdict that there is no evidence comes sooner for that: it takes the whole budget of every neighbour.
//
// The choice depends on past outcomes alone. The pairs of a neighbour are independent whatever the choice was, and its
// wealth is a nonnegative supermartingale in the rounds that have its trials and constant in others: the error rate is
// that of its share.
func (e *Evidence) Spared(n int) []bool {
	if len(e.audits) < 2 || e.Stage() != Searching || e.Measuring() {
		return nil
	}
	spared, favoured, any := make([]bool, 1+len(e.audits)), make([]bool, len(e.audits)), false
	for i, a := range e.audits {
		favoured[i] = n%fullEvery != 0 && !a.Decided() && max(a.Wealth(), e.streams.wealth(i)) >= favouredWealth
		any = any || favoured[i]
	}
	some := false
	for i := range e.audits {
		spared[i+1] = e.exhausted(i) || e.vacuous(i) || any && !favoured[i]
		some = some || spared[i+1]
	}
	if !some {
		return nil
	}
	return spared
}

// exhausted reports whether the budget of a neighbour's first trials is used: those of another one may go on.
func (e *Evidence) exhausted(i int) bool {
	return !e.Confirming() && !e.Measuring() && e.audits[i].Exhausted()
}
