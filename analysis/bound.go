package analysis

// look updates the wealth at the claim, and finds out whether the bound has passed it. Looks that could find nothing are left out.
func (a *Audit) look() {
	a.nextLook = a.pairs + a.lookEvery()
	a.lead.look(&a.book, a.epoch)
	a.nextLook = a.pairs + a.lookEvery()
	switch {
	case a.book.places > fewPlaces:
	case a.claimAt < 0 || a.lead.highest >= a.threshold && a.detectedAt > 0:
		a.nextLook = a.nextTurn
	default:
		a.nextLook = a.pairs + a.lead.lowFor(&a.book, a.epoch, a.threshold)
	}
	if a.detectedAt == 0 && a.claimAt >= 0 && a.lead.latest >= a.threshold && a.pairs >= a.nextHold {
		if a.hold() != "" {
			a.nextHold = a.pairs + 1 + a.pairs/64
			return
		}
		if !a.reaches() {
			return
		}
		a.detectedAt = a.pairs
		a.advance()
	}
}

// reaches reports whether every point of the grid below the claim's has been rejected too, the block at hand counted.
// The points are those of an increasing sequence of hypotheses: the least that is true is rejected with probability
// at most alpha, and the bound cannot pass it before.
func (a *Audit) reaches() bool {
	for a.front < a.claimAt {
		now := *a.climber
		now.logw = append([]float64(nil), a.climber.logw...)
		now.sums = append([]float64(nil), a.climber.sums...)
		now.begin(&a.book, a.epoch)
		a.epoch.claim = a.lead.latest
		now.end(&a.book, a.epoch, &a.bet)
		if now.highest < a.threshold {
			return false
		}
		a.advance()
	}
	return true
}

// climb moves the bound up over the epochs that are finished.
func (a *Audit) climb() {
	if a.front < len(a.grid) && a.front != a.claimAt {
		a.climber.begin(&a.book, a.epoch)
		a.climber.end(&a.book, a.epoch, &a.bet)
	}
	for a.front < len(a.grid) && a.rejected() {
		a.advance()
	}
}

// rejected reports whether the point at the front is refuted. About the claim look decides.
func (a *Audit) rejected() bool {
	if a.front == a.claimAt {
		return a.detectedAt > 0
	}
	return a.climber.highest >= a.threshold
}

// advance moves the front up by one point and computes the process there over all finished epochs.
func (a *Audit) advance() {
	a.front++
	if a.front >= len(a.grid) {
		return
	}
	a.climber.reset(newNull(a.grid[a.front], a.claim.Delta), a.front < a.claimAt)
	if a.front == a.claimAt {
		return // the lead is the process there
	}
	for _, e := range a.book.epochs {
		a.climber.begin(&a.book, e)
		a.climber.end(&a.book, e, &a.bet)
	}
}

// lower returns the bound: the greatest point of the grid that is rejected together with all below it, 0 for none.
func (a *Audit) lower() float64 {
	if a.front == 0 {
		return 0
	}
	return a.grid[a.front-1]
}
