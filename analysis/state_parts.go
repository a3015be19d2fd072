package analysis

import (
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/dependence"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
)

// certificateState describes the event of the fixed budget; its series is one of the scores.
func certificateState(c *state.Codec, at **certificate, scores *score.Set) {
	c.Optional(*at != nil, func() { *at = &certificate{} }, func() {
		f := *at
		if c.Reading {
			f.score = &score.Frozen{}
		}
		f.score.State(c, scores)
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
	c.Text(&o.Message)
	state.List(c, &o.Columns, func(x *Column) { c.Text(&x.Name); c.Bool(&x.Discrete); state.Num(c, &x.Type) })
	state.List(c, &o.Rows, func(row *[]Value) {
		state.List(c, row, func(v *Value) { state.Num(c, &v.Kind); state.Num(c, &v.Places); c.Float(&v.Num); c.Text(&v.Text) })
	})
}

// verify checks that the parts of a restored state fit together, so that no index is out of range.
func (v *evidence) verify(c *state.Codec, a *Audit, pairs int) {
	c.Check(pairs >= v.detectedAt && v.front <= len(v.grid))
	c.Check(v.claimAt < 0 || v.front <= v.claimAt || v.detectedAt > 0)
	c.Check(len(v.path) == len(v.book.Epochs))
	v.book.Verify(c)
	points := a.claim.points()
	v.lead.Verify(c, &v.book, null(points[v.at], a.opts.NoClaim))
	for i := range v.sides {
		v.sides[i].lead.Verify(c, &v.book, null(points[v.sides[i].point], a.opts.NoClaim))
	}
	v.climber.Verify(c, &v.book, eprocess.NewNull(v.grid[min(v.front, len(v.grid)-1)], v.delta))
	for _, e := range append(slices.Clone(v.book.Epochs), v.epoch) {
		c.Check(len(e.Sides) == len(v.sides))
		e.Verify(c, &v.book, v.mix[score.LawPrior], v.mix[score.PairedPrior])
	}
}

// state describes the phases of an audit after a number of pairs.
func (p *phases) state(c *state.Codec, pairs int, detected bool) {
	f := &p.first
	c.All(&f.pairs, &f.detectedAt, &f.kept, &f.relation, &f.slot, &f.lower, &f.level, &f.ratio)
	c.Check(f.pairs >= 0 && f.pairs <= pairs && f.detectedAt >= 0 && f.detectedAt <= f.pairs && f.kept >= 0)
	c.Check(f.pairs == 0 || f.level >= 1 && f.level <= ConfirmationLevel)
	c.Check(f.relation >= -1 && f.relation < dependence.RelationCount && f.slot >= 0)
	m := &p.measured
	c.All(&m.pairs, &m.most, &m.lower, &m.next, &m.last, &m.steady)
	c.Check(m.pairs >= 0 && m.pairs <= pairs && (m.pairs == 0 || detected) && m.steady >= 0 && m.steady <= steadyLooks)
}
