package analysis

// look updates the wealth at the claim and checks whether the bound has passed the claim. It also sets the number of
// pairs before which another look cannot find anything.
func (a *Audit) look() {
	o, v := &a.observed, &a.evidence
	v.lead.Look(&v.book, v.epoch)
	a.nextLook = o.pairs + v.lookEvery(o.pairs, a.phases.first.pairs)
	switch {
	case v.book.Places > fewPlaces:
	case v.claimAt < 0 || v.lead.Highest >= v.threshold && v.detectedAt > 0:
		a.nextLook = a.nextTurn
	default:
		a.nextLook = o.pairs + v.lead.LowFor(&v.book, v.epoch, v.threshold)
	}
	if v.detectedAt == 0 && v.claimAt >= 0 && v.lead.Latest >= v.threshold && o.pairs >= a.nextHold {
		if o.hold(a.requirements()) != "" {
			a.nextHold = o.pairs + 1 + (o.pairs-a.phases.first.pairs)/64
			return
		}
		if !v.reaches() {
			return
		}
		v.detectedAt = o.pairs
		v.advance()
	}
}
