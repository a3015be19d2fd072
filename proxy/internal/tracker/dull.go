package tracker

import (
	"unsafe"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// dull holds the state for statements that are neither interesting (Config.Interesting) nor change the session: one
// placeholder for all of them, so that neither their texts nor their parameters are copied. They are most of the traffic in
// front of a database that holds more than protected tables.
type dull struct {
	statement statement // the placeholder for every dull prepared statement; never changed
	pieces    []string  // scratch
	blank     []string  // as many "" as the largest simple query had statements
	spare     *portal   // a portal of a dull statement, for reuse
}

// interesting reports whether a statement needs to be captured.
func (t *Tracker) interesting(sql string) bool {
	return t.cfg.Interesting == nil || t.cfg.Interesting(sql)
}

// dullQuery reports whether a simple query, whose text passed the gate, is dull, and its number of statements.
func (t *Tracker) dullQuery(text []byte, skip Reason) (statements int, ok bool) {
	if t.cfg.Interesting == nil || skip != captured {
		return 0, false
	}
	sql := unsafe.String(unsafe.SliceData(text), len(text)) // the record outlives this call
	if t.cfg.Interesting(sql) {
		return 0, false
	}
	t.dull.pieces = sqltext.AppendSplit(t.dull.pieces[:0], sql)
	defer clear(t.dull.pieces)
	if len(t.dull.pieces) > maxStatements {
		return 0, false
	}
	for _, piece := range t.dull.pieces {
		if !sqltext.Analyze(piece).Inert() {
			return 0, false
		}
	}
	return len(t.dull.pieces), true
}

// dullStatement reports whether the statement of a Parse message is dull. Text that the gate rejects never is, because its
// content is unknown.
func (t *Tracker) dullStatement(text []byte) bool {
	if t.cfg.Interesting == nil {
		return false
	}
	if unseen, skip := t.gate.text(ascii(text)); unseen != captured || skip != captured {
		return false
	}
	n, ok := t.dullQuery(text, captured)
	if n != 1 || !ok {
		return false
	}
	t.dull.statement.skip = Unprotected
	return true
}

// bindDull begins a Bind message of a dull statement and skips its parameters; false for other statements.
func (t *Tracker) bindDull(body []byte) bool {
	r := reader{b: body}
	name, of := r.cstring(), r.cstring()
	if r.bad || t.statements[string(clip(of))] != &t.dull.statement {
		return false
	}
	p := t.dull.spare
	t.dull.spare = nil
	if p == nil {
		p = new(portal)
	}
	*p = portal{statement: &t.dull.statement, bytes: entryBytes}
	t.ext.known, t.ext.name, t.ext.portal = true, string(clip(name)), p
	return true
}

// executedDull counts the first Execute of a dull statement's portal; false for other portals.
func (t *Tracker) executedDull() bool {
	p := t.ext.portal
	if !t.ext.known || p == nil || p.statement != &t.dull.statement {
		return false
	}
	if !p.done {
		p.done = true
		t.cfg.Counts.Skipped[Unprotected]++
	}
	return true
}

func (d *dull) blanks(n int) []string {
	for len(d.blank) < n {
		d.blank = append(d.blank, "")
	}
	return d.blank[:n]
}

// own returns s, or a new statement if s is the shared placeholder, which must not be changed.
func (d *dull) own(s *statement) *statement {
	if s != &d.statement {
		return s
	}
	return &statement{skip: Unprotected}
}

// spared keeps a discarded portal for reuse. Nothing refers to it once the next Bind message begins.
func (d *dull) spared(p *portal) {
	if p.statement == &d.statement {
		d.spare = p
	}
}

// maxScratch limits the texts that the scratch slices keep room for between two calls of Feed.
const maxScratch = 16

// forget releases the memory that an unusually large query took.
func (d *dull) forget() {
	if cap(d.pieces) > maxScratch {
		d.pieces = nil
	}
	if cap(d.blank) > maxScratch {
		d.blank = nil
	}
}
