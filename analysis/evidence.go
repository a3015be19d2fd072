package analysis

import (
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
)

// evidence is the wealth of the bets against the claim and the bound that follows from it.
type evidence struct {
	threshold  float64 // log of the wealth that rejects: ln(1/alpha), see phases.wealthNeeded
	delta      float64 // of the claim's point
	detectedAt int     // pairs at which the bound passed the claim; 0 for not yet

	grid    []float64
	claimAt int           // index of the claim's point, -1 without a claim
	front   int           // index of the first point that is not rejected, as far as was climbed; all below are
	climbed int           // finished epochs that are in the climber
	drawn   int           // points of the path that have their bound
	due     bool          // the front may have to move: a block has ended
	at      int           // index in Claim.points of the point of the bound
	lead    book.Lead     // at this point
	sides   []side        // at the other points of the claim, unless the violation of one is being confirmed
	climber *book.Process // at grid[front], see climb
	book    book.Book
	epoch   *book.Epoch
	bet     book.Bet
	mix     score.Mixtures

	path []PathPoint // at the ends of blocks
}

func newEvidence(c Claim, o Options) evidence {
	points := c.points()
	v := evidence{at: len(points) - 1, mix: score.NewMixtures(o.NoClaim)}
	v.place(points, o.NoClaim)
	v.lead.Null = null(points[v.at], o.NoClaim)
	for i, p := range points[:v.at] {
		v.sides = append(v.sides, side{point: i, lead: book.Lead{Process: book.Process{Null: null(p, o.NoClaim)}}})
	}
	v.threshold = v.parts() - math.Log(o.alpha())
	v.climber = &book.Process{Null: eprocess.NewNull(v.grid[0], v.delta), Below: v.claimAt > 0}
	return v
}

// end books the current block after a number of pairs.
func (v *evidence) end(pairs int) {
	v.endLeads()
	v.closeEpoch()
	v.path, v.due = append(v.path, v.pathPoint(pairs)), true
}

// closeEpoch adds the epoch to the book, without the tables that only the claim's process bets on.
func (v *evidence) closeEpoch() {
	kept := v.epoch.Entries[:0]
	for _, en := range v.epoch.Entries {
		if en.Scope != book.ClaimAlone {
			kept = append(kept, en)
		}
	}
	v.epoch.Entries = slices.Clone(kept) // not the rest of the array
	v.book.Epochs = append(v.book.Epochs, v.epoch)
}

// restart discards the wealth with the block that was just begun.
func (v *evidence) restart() {
	v.epoch.Restart = true
	v.lead.Renew()
	v.epoch.Opened = 0
	for i := range v.sides {
		v.sides[i].lead.Renew()
		v.epoch.Sides[i].Opened = 0
	}
	v.lookAll()
	v.require(v.threshold)
}

// require sets the threshold. The bound begins again at the first point of the grid.
func (v *evidence) require(threshold float64) {
	v.threshold, v.front = threshold, -1
	v.advance()
}

// pathPoint returns the point of the path after a number of pairs, without its bound.
func (v *evidence) pathPoint(pairs int) PathPoint {
	p := PathPoint{Pairs: pairs, Wealth: v.wealth()}
	if v.claimAt < 0 {
		p.Wealth = math.NaN()
	}
	return p
}

// lookEvery returns the number of pairs between two looks at the claim: 1 if looks are cheap, else about a hundredth of
// the pairs so far.
func (v *evidence) lookEvery(pairs, since int) int {
	if v.book.Places <= fewPlaces || pairs < 64 {
		return 1
	}
	return max(1, (pairs-since)/128)
}

// reaches reports whether every point of the grid below the claim's is rejected too, including the current block. The
// points are an increasing sequence of hypotheses: the least true one is rejected with probability at most alpha, and
// the bound cannot pass it before.
func (v *evidence) reaches() bool {
	for v.ascend(); v.front < v.claimAt; v.ascend() {
		now := v.climber.Clone()
		now.Begin(&v.book, v.epoch)
		v.epoch.Claim = v.lead.Latest
		now.End(&v.book, v.epoch, &v.bet)
		if now.Highest < v.threshold {
			return false
		}
		v.advance()
	}
	return true
}

// climb moves the bound up by the finished epochs. These hold all that is needed, so that the work is deferred until
// the bound is read.
func (v *evidence) climb() {
	if v.due {
		v.ascend()
	}
}

// ascend moves the front up to the first point that the finished epochs do not reject.
func (v *evidence) ascend() {
	v.due = false
	anew := slices.IndexFunc(v.book.Epochs, func(e *book.Epoch) bool { return e.Restart }) // no point is rejected before
	if v.epoch.Restart {
		anew = len(v.book.Epochs)
	}
	for v.front < len(v.grid) && (v.front != v.claimAt || v.detectedAt > 0) { // look decides about the claim
		if v.front != v.claimAt {
			for v.climbed < len(v.book.Epochs) && !v.rejected(anew) {
				v.step()
			}
			if !v.rejected(anew) {
				break
			}
			v.draw(v.climbed - 1)
		}
		v.advance()
	}
	v.draw(len(v.path))
}

// step takes one more epoch into the climber.
func (v *evidence) step() {
	e := v.book.Epochs[v.climbed]
	v.climber.Begin(&v.book, e)
	v.climber.End(&v.book, e, &v.bet)
	v.climbed++
}

// rejected reports whether the epochs taken so far reject the point at the front.
func (v *evidence) rejected(anew int) bool {
	return v.climbed > anew && v.climber.Highest >= v.threshold
}

// advance moves the front up by one point.
func (v *evidence) advance() {
	v.front++
	v.climbed = 0
	if v.front < len(v.grid) {
		v.climber.Reset(eprocess.NewNull(v.grid[v.front], v.delta), v.front < v.claimAt)
	}
}

// draw sets the bound in the points of the path up to an epoch, before the front moves.
func (v *evidence) draw(epochs int) {
	for ; v.drawn < epochs; v.drawn++ {
		v.path[v.drawn].Line = v.atFront()
	}
}

// lower returns the bound: the greatest point of the grid that is rejected together with all below it, 0 for none.
func (v *evidence) lower() float64 {
	v.climb()
	return v.atFront()
}

// atFront returns the greatest point of the grid behind the front, 0 for none.
func (v *evidence) atFront() float64 {
	if v.front == 0 {
		return 0
	}
	return v.grid[v.front-1]
}

// replay runs a process over all trials so far, with the stakes of a book.
func (v *evidence) replay(p *book.Process, k *book.Book) {
	v.epoch.Claim = v.lead.Latest
	for _, e := range append(slices.Clone(v.book.Epochs), v.epoch) {
		p.Begin(k, e)
		p.End(k, e, &v.bet)
	}
}
