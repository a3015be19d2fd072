package analysis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/exact"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
)

// stateVersion changes whenever the format of the state or its meaning changes: only the version that saved a state can
// restore it.
const stateVersion = 22

const stateMagic = "dpwatch audit\x00"

// MarshalBinary returns the whole state of an audit. A restored audit continues bit for bit as if it had not been
// interrupted. The state holds results (counts, kept values, a few rows) and needs the protection of the raw data.
func (a *Audit) MarshalBinary() ([]byte, error) {
	c := &state.Codec{Buf: []byte(stateMagic)}
	c.Buf = append(c.Buf, stateVersion)
	for a.evidence.climb(); a.evidence.front != a.evidence.claimAt && a.evidence.front < len(a.evidence.grid) && a.evidence.climbed < len(a.evidence.book.Epochs); {
		a.evidence.step()
	}
	a.state(c)
	if c.Err != nil {
		return nil, c.Err
	}
	return binary.LittleEndian.AppendUint64(c.Buf, crc64.Checksum(c.Buf, crc64.MakeTable(crc64.ECMA))), nil
}

// UnmarshalBinary restores a state that [Audit.MarshalBinary] returned, in place of the audit's own. For anything else
// it returns an error and leaves the audit unchanged.
func (a *Audit) UnmarshalBinary(data []byte) error {
	head := len(stateMagic) + 1
	if len(data) < head+8 || string(data[:len(stateMagic)]) != stateMagic {
		return errors.New("not a saved audit")
	}
	if v := data[head-1]; v != stateVersion {
		return fmt.Errorf("the audit was saved in form %d, this version reads form %d: restart the audit", v, stateVersion)
	}
	body, sum := data[:len(data)-8], binary.LittleEndian.Uint64(data[len(data)-8:])
	if crc64.Checksum(body, crc64.MakeTable(crc64.ECMA)) != sum {
		return state.ErrDamaged
	}
	fresh, err := restored(body[head:])
	if err == nil {
		*a = *fresh
	}
	return err
}

// restored returns the audit with the body of a state.
func restored(body []byte) (*Audit, error) {
	c := &state.Codec{Reading: true, Buf: body}
	fresh := &Audit{}
	fresh.state(c)
	if c.Err == nil && len(c.Buf) > 0 {
		c.Fail()
	}
	if c.Err == nil {
		o := &fresh.observed
		fresh.evidence.verify(c, fresh, o.pairs)
		points := fresh.claim.points()
		fresh.apart.verify(c, null(points[len(points)-1], fresh.opts.NoClaim), fresh.evidence.mix[score.LawPrior], fresh.evidence.mix[score.PairedPrior])
		o.scores.Verify(c, fresh.evidence.book.Scores())
		c.Check(o.scores.Reader != nil || fresh.certificate == nil)
		c.Check(len(o.retained) <= firstRetained+latestRetained)
	}
	if c.Err != nil {
		return nil, c.Err
	}
	fresh.evidence.climbed, fresh.evidence.drawn = len(fresh.evidence.book.Epochs), len(fresh.evidence.path)
	for i := -1; i < len(fresh.evidence.sides); i++ {
		fresh.evidence.leadAt(i).Place(&fresh.evidence.book, fresh.evidence.epoch)
	}
	fresh.apart.lead.Place(&fresh.apart.book, fresh.apart.epoch)
	return fresh, nil
}

// state describes the whole state. What follows from the claim and the options is computed again.
func (a *Audit) state(c *state.Codec) {
	o, v := &a.observed, &a.evidence
	c.All(&a.claim.Epsilon, &a.claim.Delta, (*string)(&a.claim.Curve))
	a.opts.state(c)
	if c.Reading {
		if c.Err == nil && validate(a.claim, a.opts) != nil {
			c.Fail()
		}
		if c.Err != nil {
			return
		}
		v.mix = score.NewMixtures(a.opts.NoClaim)
	}
	points := a.claim.points()
	v.sidesState(c, len(points))
	if c.Err != nil {
		return
	}
	if c.Reading {
		v.place(points, a.opts.NoClaim)
	}
	for _, x := range []*int{
		&o.pairs, &v.detectedAt, &a.nextTurn, &a.nextLook, &a.nextHold, &v.front, &o.scores.Stride, &a.divideAt, &o.layoutAt,
		&o.scores.Funded, &o.failures[0], &o.failures[1], &o.cut[0], &o.cut[1], &o.unmatched, &o.monotony.pairs,
	} {
		state.Num(c, x)
		c.Check(*x >= 0 && *x <= 1<<53)
	}
	a.phases.state(c, o.pairs, v.detectedAt > 0)
	a.setThreshold()
	c.Bool(&o.misfit)
	for w := range 2 {
		c.All(&o.monotony.first[w], &o.monotony.broken[w], &o.scores.Now[w].Codes)
	}
	state.List(c, &v.path, func(p *PathPoint) { c.All(&p.Pairs, &p.Wealth, &p.Line) })
	a.pointers(c)
}

// pointers describes the parts that share others: tables belong to scores and to epochs, errors to the audit and its
// reader.
func (a *Audit) pointers(c *state.Codec) {
	o, v := &a.observed, &a.evidence
	if c.Reading {
		o.scores.Errors = code.NewDictionary(code.FirstError, code.OtherError)
		v.climber = &book.Process{}
	}
	o.scores.Errors.State(c)
	c.Check(o.scores.Errors.First == code.FirstError && o.scores.Errors.Rest == code.OtherError)
	tables := v.tables(c, &o.scores)
	o.scores.Options = a.opts.scores()
	if c.Reading {
		o.scores.Exact = exact.New(a.opts.Unordered, a.opts.FloatingPoint.lowBits() != score.Counted)
	}
	o.scores.State(c, tables, a.opts.Salt)
	v.book.State(c, v.mix[:], tables)
	state.Made(c, &v.epoch).State(c, tables)
	v.lead.State(c)
	for i := range v.sides {
		v.sides[i].lead.State(c)
	}
	v.climber.State(c)
	a.apart.state(c, v.mix[:], tables)
	o.scores.PastState(c)
	certificateState(c, &a.certificate, &o.scores)
	state.List(c, &o.retained, func(p *retained) {
		outcomeState(c, &p.worlds[0])
		outcomeState(c, &p.worlds[1])
		c.Bool(&p.cut)
	})
	o.scores.Repeats.State(c)
	o.scores.Exact.State(c)
}

func (o *Options) state(c *state.Codec) {
	c.All(&o.Confidence, &o.Share, &o.NoClaim, (*string)(&o.Deterministic), (*string)(&o.FloatingPoint), &o.Unordered, &o.Query.Bound, &o.Query.Average, &o.Suspicion, &o.PriorOdds, &o.BreachOdds)
	c.Floats(&o.Query.Constants)
	c.All(&o.MaxTrials, &o.Buckets, &o.MinCount, &o.MaxSlots, &o.Salt)
}

// tables are all tables in use, each once; scores and epochs refer to them by number.
func (v *evidence) tables(c *state.Codec, scores *score.Set) []*event.Table {
	var all []*event.Table
	if !c.Reading {
		known := map[*event.Table]bool{nil: true}
		add := func(t *event.Table) {
			if !known[t] {
				known[t] = true
				all = append(all, t)
			}
		}
		for _, e := range append(slices.Clone(v.book.Epochs), v.epoch) {
			for _, en := range e.Entries {
				add(en.Table)
			}
		}
		for _, s := range scores.All() {
			add(s.Table)
		}
	}
	state.List(c, &all, func(t **event.Table) { state.Made(c, t).State(c) })
	return all
}
