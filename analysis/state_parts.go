package analysis

import (
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
)

// certificateState describes the event of the fixed budget; its series is one of the audit's.
func (a *Audit) certificateState(c *state.Codec) {
	c.Optional(a.certificate != nil, func() { a.certificate = &certificate{} }, func() {
		f := a.certificate
		if c.Reading {
			f.score = &score.Frozen{}
		}
		f.score.State(c, &a.scores)
		c.All(&f.hits[0], &f.hits[1], &f.set, &f.heavy, &f.pairs)
		c.Check(f.heavy == 0 || f.heavy == 1)
		c.Check(f.pairs >= 0 && f.hits[0] >= 0 && f.hits[1] >= 0 && f.hits[0] <= f.pairs && f.hits[1] <= f.pairs)
		c.Optional(f.event != nil, func() { f.event = &Event{} }, func() {
			f.event.state(c)
		})
	})
}

func (e *Event) state(c *state.Codec) {
	c.All(&e.Score, &e.Direction, (*string)(&e.Kind), &e.Column, (*string)(&e.Tail))
	c.Withheld(&e.Partition)
	c.Withheld(&e.Description)
	c.All((*float64)(&e.D0), (*float64)(&e.D1))
}

func outcomeState(c *state.Codec, o *Outcome) {
	c.Text(&o.SQLState)
	state.List(c, &o.Columns, func(x *Column) { c.Text(&x.Name); c.Bool(&x.Discrete) })
	state.List(c, &o.Rows, func(row *[]Value) {
		state.List(c, row, func(v *Value) { state.Num(c, &v.Kind); c.Float(&v.Num); c.Text(&v.Text) })
	})
}

// verify checks that the parts of a restored state fit together, so that no index is out of range.
func (a *Audit) verify(c *state.Codec) {
	c.Check(a.pairs >= a.detectedAt && a.front <= len(a.grid))
	c.Check(a.claimAt < 0 || a.front <= a.claimAt || a.detectedAt > 0)
	c.Check(len(a.path) == len(a.book.Epochs))
	a.book.Verify(c)
	at := a.claim.Epsilon
	if a.claimAt >= 0 {
		at = a.grid[a.claimAt]
	}
	a.lead.Verify(c, &a.book, eprocess.NewNull(at, a.claim.Delta))
	a.climber.Verify(c, &a.book, eprocess.NewNull(a.grid[min(a.front, len(a.grid)-1)], a.claim.Delta))
	for _, e := range append(slices.Clone(a.book.Epochs), a.epoch) {
		e.Verify(c, &a.book, a.mix[score.LawPrior], a.mix[score.PairedPrior])
	}
	a.scores.Verify(c, a.book.Scores())
	c.Check(a.scores.Reader != nil || a.certificate == nil)
	c.Check(len(a.retained) <= firstRetained+latestRetained)
}
