package analysis

import (
	"fmt"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/curve"
)

// This file holds what a claim that is a curve adds: its points are nulls that all must hold. Each has a process of its
// own, on the same bets and with an equal part of the error rate. So the average of their wealths is an e-process for the
// curve, and a point whose own wealth makes the average reach 1/alpha is refuted at the level alpha, whichever of the
// others hold, and however it was chosen. The bound is at one point's delta: at first that of the curve's headline, from
// a violation on that of the point that is refuted. All points of all bounds are rejected at their part of the error
// rate, so that the choice needs no further correction.

// side is a point of a curve other than the one of the bound.
type side struct {
	point int // index in Claim.points
	lead  book.Lead
}

// begin starts an epoch.
func (v *evidence) begin(e *book.Epoch) {
	v.epoch = e
	v.lead.Begin(&v.book, e)
	e.Opened = v.lead.Total()
	e.Sides = make([]book.Side, len(v.sides))
	for i := range v.sides {
		v.sides[i].lead.Begin(&v.book, e)
		e.Sides[i].Opened = v.sides[i].lead.Total()
	}
}

// endLeads books the current block at the points of the claim.
func (v *evidence) endLeads() {
	v.lead.End(&v.book, v.epoch)
	v.epoch.Claim = v.lead.Latest
	if v.claimAt < 0 {
		v.epoch.Claim = math.Inf(-1)
	}
	for i := range v.sides {
		l := &v.sides[i].lead
		l.End(&v.book, v.epoch)
		v.epoch.Sides[i].Claim = l.Latest
	}
}

// lookAll reads the wealth at all points, and returns the index of the strongest one among the sides; -1 = it is the
// lead's.
func (v *evidence) lookAll() int {
	most, at := v.lead.Look(&v.book, v.epoch), -1
	for i := range v.sides {
		if w := v.sides[i].lead.Look(&v.book, v.epoch); w > most {
			most, at = w, i
		}
	}
	return at
}

// leadAt returns the process of a side, or that of the bound for -1.
func (v *evidence) leadAt(i int) *book.Lead {
	if i < 0 {
		return &v.lead
	}
	return &v.sides[i].lead
}

// strongest returns the process with the most wealth at the last look.
func (v *evidence) strongest() *book.Lead {
	l := &v.lead
	for i := range v.sides {
		if s := &v.sides[i].lead; s.Latest > l.Latest {
			l = s
		}
	}
	return l
}

// highest returns the highest wealth of any point.
func (v *evidence) highest() float64 {
	most := v.lead.Highest
	for i := range v.sides {
		most = max(most, v.sides[i].lead.Highest)
	}
	return most
}

// lowFor returns a number of pairs before which no point's wealth reaches a level, see book.Lead.LowFor.
func (v *evidence) lowFor(level float64) int {
	n := v.lead.LowFor(&v.book, v.epoch, level)
	for i := range v.sides {
		n = min(n, v.sides[i].lead.LowFor(&v.book, v.epoch, level))
	}
	return n
}

// parts returns the log of the number of points: each has so much less of the error rate.
func (v *evidence) parts() float64 { return math.Log(float64(1 + len(v.sides))) }

// wealth returns the log of the average wealth at the last look.
func (v *evidence) wealth() float64 {
	all := v.lead.Latest
	for i := range v.sides {
		all = eprocess.LogAdd(all, v.sides[i].lead.Latest)
	}
	return all - v.parts()
}

// named moves the bound to the point of a side, from the first pair on.
func (v *evidence) named(i int, points []curve.Point) {
	if i < 0 {
		return
	}
	s := &v.sides[i]
	v.at, s.point = s.point, v.at
	v.lead, s.lead = s.lead, v.lead
	for _, e := range append(slices.Clone(v.book.Epochs), v.epoch) {
		own := &e.Sides[i]
		e.Opened, own.Opened = own.Opened, e.Opened
		e.Claim, own.Claim = own.Claim, e.Claim
	}
	v.place(points, false)
	v.drawn = 0
	v.require(v.threshold)
}

// place sets the point of the bound.
func (v *evidence) place(points []curve.Point, noClaim bool) {
	p := points[v.at]
	v.delta = p.Delta
	v.grid, v.claimAt = eprocess.NewGrid(p.Epsilon, noClaim)
}

// null returns the null of a point of a claim: the lead's has the epsilon that is on the grid.
func null(p curve.Point, noClaim bool) eprocess.Null {
	epsilon := p.Epsilon
	if grid, at := eprocess.NewGrid(p.Epsilon, noClaim); at >= 0 {
		epsilon = grid[at]
	}
	return eprocess.NewNull(epsilon, p.Delta)
}

// forget drops the points that were not refuted: the confirmation is about the refuted one alone.
func (v *evidence) forget() {
	v.sides = nil
	for _, e := range append(slices.Clone(v.book.Epochs), v.epoch) {
		e.Sides = nil
	}
}

// sidesState describes which points of the claim have which process.
func (v *evidence) sidesState(c *state.Codec, points int) {
	state.Num(c, &v.at)
	state.List(c, &v.sides, func(s *side) { state.Num(c, &s.point) })
	if !c.Reading {
		return
	}
	c.Check(len(v.sides) == 0 || len(v.sides) == points-1)
	taken := make([]bool, points)
	take := func(i int) {
		if c.Check(i >= 0 && i < points && !taken[i]); c.Err == nil {
			taken[i] = true
		}
	}
	take(v.at)
	for i := range v.sides {
		take(v.sides[i].point)
	}
}

// here returns the claim at the point of the bound.
func (a *Audit) here() Claim {
	c := a.claim
	if c.Curve != "" {
		p := c.points()[a.evidence.at]
		c.Epsilon, c.Delta = p.Epsilon, p.Delta
	}
	return c
}

// exceeded says what a violation refutes.
func (a *Audit) exceeded() string {
	c := a.here()
	if c.Curve == "" {
		return fmt.Sprintf("epsilon is above %.4g", c.Epsilon)
	}
	return fmt.Sprintf("%s does not hold: at delta %.4g epsilon is above %.4g", c, c.Delta, c.Epsilon)
}
