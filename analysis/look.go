package analysis

// look updates the wealth at the claim and checks whether the bound has passed the claim. It also sets the number of
// pairs before which another look cannot find anything.
func (a *Audit) look() {
	o, v := &a.observed, &a.evidence
	strongest := v.lookAll()
	a.nextLook = o.pairs + v.lookEvery(o.pairs, a.phases.first.pairs)
	switch {
	case v.book.Places > fewPlaces:
	case v.claimAt < 0 || v.highest() >= v.threshold && v.detectedAt > 0:
		a.nextLook = a.nextTurn
	default:
		a.nextLook = o.pairs + v.lowFor(v.threshold)
	}
	if v.detectedAt == 0 && v.claimAt >= 0 && v.leadAt(strongest).Latest >= v.threshold && o.pairs >= a.nextHold {
		if o.hold(a.requirements()) != "" {
			a.nextHold = o.pairs + 1 + (o.pairs-a.phases.first.pairs)/64
			return
		}
		if v.named(strongest, a.claim.points()); !v.reaches() {
			return
		}
		v.detectedAt = o.pairs
		v.advance()
	}
}
