package analysis

import (
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
)

// look updates the wealth at the claim and checks whether the bound has passed the claim. It also sets the number of
// pairs before which another look cannot find anything.
func (a *Audit) look() {
	a.lead.Look(&a.book, a.epoch)
	a.nextLook = a.pairs + a.lookEvery()
	switch {
	case a.book.Places > fewPlaces:
	case a.claimAt < 0 || a.lead.Highest >= a.threshold && a.detectedAt > 0:
		a.nextLook = a.nextTurn
	default:
		a.nextLook = a.pairs + a.lead.LowFor(&a.book, a.epoch, a.threshold)
	}
	if a.detectedAt == 0 && a.claimAt >= 0 && a.lead.Latest >= a.threshold && a.pairs >= a.nextHold {
		if a.hold() != "" {
			a.nextHold = a.pairs + 1 + (a.pairs-a.first.pairs)/64
			return
		}
		if !a.reaches() {
			return
		}
		a.detectedAt = a.pairs
		a.advance()
	}
}

// reaches reports whether every point of the grid below the claim's is rejected too, including the current block. The
// points are an increasing sequence of hypotheses: the least true one is rejected with probability at most alpha, and
// the bound cannot pass it before.
func (a *Audit) reaches() bool {
	for a.ascend(); a.front < a.claimAt; a.ascend() {
		now := a.climber.Clone()
		now.Begin(&a.book, a.epoch)
		a.epoch.Claim = a.lead.Latest
		now.End(&a.book, a.epoch, &a.bet)
		if now.Highest < a.threshold {
			return false
		}
		a.advance()
	}
	return true
}

// climb moves the bound up by the finished epochs. These hold all that is needed, so that the work is deferred until
// the bound is read.
func (a *Audit) climb() {
	if a.due {
		a.ascend()
	}
}

// ascend moves the front up to the first point that the finished epochs do not reject.
func (a *Audit) ascend() {
	a.due = false
	anew := slices.IndexFunc(a.book.Epochs, func(e *book.Epoch) bool { return e.Restart }) // no point is rejected before
	if a.epoch.Restart {
		anew = len(a.book.Epochs)
	}
	for a.front < len(a.grid) && (a.front != a.claimAt || a.detectedAt > 0) { // look decides about the claim
		if a.front != a.claimAt {
			for a.climbed < len(a.book.Epochs) && !a.rejected(anew) {
				a.step()
			}
			if !a.rejected(anew) {
				break
			}
			a.draw(a.climbed - 1)
		}
		a.advance()
	}
	a.draw(len(a.path))
}

// step takes one more epoch into the climber.
func (a *Audit) step() {
	e := a.book.Epochs[a.climbed]
	a.climber.Begin(&a.book, e)
	a.climber.End(&a.book, e, &a.bet)
	a.climbed++
}

// rejected reports whether the epochs taken so far reject the point at the front.
func (a *Audit) rejected(anew int) bool {
	return a.climbed > anew && a.climber.Highest >= a.threshold
}

// advance moves the front up by one point.
func (a *Audit) advance() {
	a.front++
	a.climbed = 0
	if a.front < len(a.grid) {
		a.climber.Reset(eprocess.NewNull(a.grid[a.front], a.claim.Delta), a.front < a.claimAt)
	}
}

// draw sets the bound in the points of the path up to an epoch, before the front moves.
func (a *Audit) draw(epochs int) {
	for ; a.drawn < epochs; a.drawn++ {
		a.path[a.drawn].Line = a.atFront()
	}
}

// lower returns the bound: the greatest point of the grid that is rejected together with all below it, 0 for none.
func (a *Audit) lower() float64 {
	a.climb()
	return a.atFront()
}

// atFront returns the greatest point of the grid behind the front, 0 for none.
func (a *Audit) atFront() float64 {
	if a.front == 0 {
		return 0
	}
	return a.grid[a.front-1]
}
