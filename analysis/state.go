package analysis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/dependence"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
)

// stateVersion changes whenever the format of the state or its meaning changes: only the version that saved a state can
// restore it.
const stateVersion = 13

const stateMagic = "dpwatch audit\x00"

// MarshalBinary returns the whole state of an audit. A restored audit continues bit for bit as if it had not been
// interrupted. The state holds results (counts, kept values, a few rows) and needs the protection of the raw data.
func (a *Audit) MarshalBinary() ([]byte, error) {
	c := &state.Codec{Buf: []byte(stateMagic)}
	c.Buf = append(c.Buf, stateVersion)
	for a.climb(); a.front != a.claimAt && a.front < len(a.grid) && a.climbed < len(a.book.Epochs); {
		a.step()
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
	return a.restore(body[head:])
}

// restore reads the body of a state.
func (a *Audit) restore(body []byte) error {
	c := &state.Codec{Reading: true, Buf: body}
	fresh := &Audit{}
	fresh.state(c)
	if c.Err == nil && len(c.Buf) > 0 {
		c.Fail()
	}
	if c.Err == nil {
		fresh.verify(c)
	}
	if c.Err != nil {
		return c.Err
	}
	fresh.climbed, fresh.drawn = len(fresh.book.Epochs), len(fresh.path)
	fresh.lead.Place(&fresh.book, fresh.epoch)
	*a = *fresh
	return nil
}

// state describes the whole state. What follows from the claim and the options is computed again.
func (a *Audit) state(c *state.Codec) {
	c.All(&a.claim.Epsilon, &a.claim.Delta)
	a.opts.state(c)
	if c.Reading {
		if c.Err == nil && validate(a.claim, a.opts) != nil {
			c.Fail()
		}
		if c.Err != nil {
			return
		}
		a.mix = score.NewMixtures(a.opts.NoClaim)
		a.grid, a.claimAt = eprocess.NewGrid(a.claim.Epsilon, a.opts.NoClaim)
	}
	for _, x := range []*int{
		&a.pairs, &a.detectedAt, &a.nextTurn, &a.nextLook, &a.nextHold, &a.front, &a.scores.Stride, &a.divideAt, &a.layoutAt,
		&a.scores.Funded, &a.failures[0], &a.failures[1], &a.unmatched, &a.monotony.pairs,
	} {
		state.Num(c, x)
		c.Check(*x >= 0 && *x <= 1<<53)
	}
	f := &a.first
	c.All(&f.pairs, &f.detectedAt, &f.kept, &f.relation, &f.slot, &f.lower, &f.level, &f.ratio)
	c.Check(f.pairs >= 0 && f.pairs <= a.pairs && f.detectedAt >= 0 && f.detectedAt <= f.pairs && f.kept >= 0)
	c.Check(f.pairs == 0 || f.level >= 1 && f.level <= ConfirmationLevel)
	c.Check(f.relation >= -1 && f.relation < dependence.RelationCount && f.slot >= 0)
	m := &a.measured
	c.All(&m.pairs, &m.most, &m.lower, &m.next, &m.last, &m.steady)
	c.Check(m.pairs >= 0 && m.pairs <= a.pairs && (m.pairs == 0 || a.detectedAt > 0) && m.steady >= 0 && m.steady <= steadyLooks)
	a.threshold = a.wealthNeeded()
	c.Bool(&a.misfit)
	for w := range 2 {
		c.All(&a.monotony.first[w], &a.monotony.broken[w], &a.scores.Now[w].Codes)
	}
	state.List(c, &a.path, func(p *PathPoint) { c.All(&p.Pairs, &p.Wealth, &p.Line) })
	a.pointers(c)
}

// pointers describes the parts that share others: tables belong to scores and to epochs, errors to the audit and its
// reader.
func (a *Audit) pointers(c *state.Codec) {
	if c.Reading {
		a.scores.Errors = code.NewDictionary(code.FirstError, code.OtherError)
		a.climber = &book.Process{}
	}
	a.scores.Errors.State(c)
	c.Check(a.scores.Errors.First == code.FirstError && a.scores.Errors.Rest == code.OtherError)
	tables := a.tables(c)
	a.scores.State(c, tables, a.opts.Salt)
	a.book.State(c, a.mix[:], tables)
	state.Made(c, &a.epoch).State(c, tables)
	a.lead.State(c)
	a.climber.State(c)
	a.scores.PastState(c)
	a.certificateState(c)
	state.List(c, &a.retained, func(p *retained) {
		outcomeState(c, &p.worlds[0])
		outcomeState(c, &p.worlds[1])
		c.Bool(&p.cut)
	})
	a.scores.Repeats.State(c)
}

func (o *Options) state(c *state.Codec) {
	c.All(&o.Confidence, &o.Share, &o.NoClaim, (*string)(&o.Deterministic), &o.Unordered, &o.PriorOdds, &o.BreachOdds)
	c.All(&o.MaxTrials, &o.Buckets, &o.MinCount, &o.MaxSlots, &o.Salt)
}

// tables are all tables in use, each once; scores and epochs refer to them by number.
func (a *Audit) tables(c *state.Codec) []*event.Table {
	var all []*event.Table
	if !c.Reading {
		known := map[*event.Table]bool{nil: true}
		add := func(t *event.Table) {
			if !known[t] {
				known[t] = true
				all = append(all, t)
			}
		}
		for _, e := range append(slices.Clone(a.book.Epochs), a.epoch) {
			for _, en := range e.Entries {
				add(en.Table)
			}
		}
		for _, s := range a.scores.All() {
			add(s.Table)
		}
	}
	state.List(c, &all, func(t **event.Table) { state.Made(c, t).State(c) })
	return all
}
