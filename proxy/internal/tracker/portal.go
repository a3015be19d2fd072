package tracker

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// portal is a statement with its parameters: of Bind, or of DECLARE. It keeps the statement that it was bound to, even
// if the statement's name is reused.
type portal struct {
	statement *statement // nil if unknown
	params    []capture.Param
	results   []int16
	bytes     int
	view      *view     // the settings at Bind or DECLARE, with which the server resolved names
	at        time.Time // of that
	skip      Reason    // why it is not captured
	ascii     bool
	named     bool // created from a named statement
	extended  bool // the statement came in the extended protocol

	// The server computes rows when they are read, with the settings in force then, and those that are read again once
	// more, unless it keeps them. So one portal can give several answers.
	read    bool  // some rows were read, or an error: an answer is captured
	missed  bool  // it may have been read so that it only counts
	again   bool  // the next rows that are read were read before
	cursor  bool  // of DECLARE
	hold    bool  // WITH HOLD
	forward bool  // NO SCROLL: no row is read twice
	last    *view // the settings at the last reading
	stored  *view // the settings at the end of the transaction, when the server computed and kept all rows WITH HOLD; nil before
}

// reads records that rows are read, while the settings of a view are in force. It returns the settings with which they
// were computed, and false if they belong to an answer that is captured already.
func (p *portal) reads(how sqltext.Rows, now *view) (*view, bool) {
	if p.stored != nil {
		now, how = p.stored, sqltext.NextRows
	}
	if how == sqltext.NoRows {
		p.again = p.read
		return now, false
	}
	own := !p.read || p.again || how != sqltext.NextRows || p.changed(now)
	p.read, p.again, p.last = true, how == sqltext.RowsBack, now
	return now, own
}

// miss records that a portal, nil if it is not known, may have been read so that it only counts.
func (p *portal) miss() {
	if p != nil {
		p.missed = true
	}
}

// changed reports whether settings can have changed since the last reading, otherwise than by the functions that the
// statement itself calls.
func (p *portal) changed(now *view) bool {
	last := p.last
	if last == nil || last == now || p.statement == nil {
		return false
	}
	own := append(slices.Clip(p.statement.effect.Doubt.Calls), capture.ImplicitCode)
	return last.app != now.app || !maps.Equal(last.settings, now.settings) || !withoutCalls(last.doubt, own).Equal(withoutCalls(now.doubt, own))
}

// withoutCalls returns what is in doubt about settings without some functions.
func withoutCalls(d capture.Doubt, functions []string) capture.Doubt {
	left := capture.Doubt{Names: d.Names}
	for _, c := range d.Calls {
		c.Functions = slices.DeleteFunc(slices.Clone(c.Functions), func(f string) bool { return slices.Contains(functions, f) })
		if len(c.Functions) > 0 {
			left.Calls = append(left.Calls, c)
		}
	}
	return left
}

// declare keeps the cursor of a DECLARE with these parameters. Skip is why it is not captured.
func (sess *session) declare(e sqltext.Effect, params []capture.Param, skip Reason) {
	s := &statement{sql: strings.Clone(e.Statement), effect: e}
	s.effect.Statement = ""
	sess.held.keep(e.Name, &portal{
		statement: s, params: params, extended: len(params) > 0, skip: skip, bytes: entryBytes + s.size(),
		view: sess.settings.current(), at: sess.out.now, cursor: true, hold: e.Hold, forward: e.NoScroll,
	})
}

// keep keeps a portal, if there is room.
func (h *held) keep(name string, p *portal) {
	h.forgetPortal(name)
	if len(h.portals) >= maxNames {
		h.unknown.add(p.statement == nil || p.statement.hides())
		return
	}
	if h.portalBytes+p.bytes > h.cfg.MaxHeldBytes/2 {
		p.params, p.results, p.skip, p.bytes = nil, nil, NotCopied, entryBytes
		if p.cursor {
			p.statement.sql = ""
		}
	}
	h.portals[name] = p
	h.portalBytes += p.bytes
	if p.hold {
		h.holds++
	}
}

// fetched returns the rows that a FETCH or MOVE reads.
func (h *held) fetched(e sqltext.Effect, now *view) execution {
	p := h.portals[e.Name]
	if p == nil {
		return execution{skip: UnknownStatement}
	}
	v, own := p.reads(e.Rows, now)
	return execution{portal: p, view: v, known: !own}
}

// endTransaction handles the end of a transaction: portals end with it. A cursor WITH HOLD stays after a commit: the
// server computes its rows now and keeps them. Unless it is NO SCROLL, those that were read are computed once more.
func (sess *session) endTransaction(committed bool) {
	if committed && sess.held.holds > 0 {
		for _, p := range sess.held.portals {
			if p.hold && p.stored == nil {
				p.stored = sess.settings.current()
				p.again = p.again || p.read && !p.forward
			}
		}
	}
	sess.held.forgetPortalsBut(true)
}

// endFailed handles the error of a commit: the server may have met it in the query of a cursor WITH HOLD.
func (sess *session) endFailed(e ending) {
	for _, name := range slices.Sorted(maps.Keys(sess.held.portals)) {
		if p := sess.held.portals[name]; p.hold && p.stored == nil {
			p.read = true
			sess.out.capturePortal(p, &e, sess.settings.current(), "")
		}
	}
}
