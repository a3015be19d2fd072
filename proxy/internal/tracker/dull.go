package tracker

import (
	"unsafe"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// dull is what a tracker keeps of statements that are neither interesting (Config.Interesting) nor change the
// session: one statement that stands for all of them, so that neither their texts nor their parameters are copied.
// They are most of the traffic in front of a database that holds more than protected tables.
type dull struct {
	statement statement // stands for every dull prepared statement; never changed
	pieces    []string  // scratch
	blank     []string  // as many "" as a simple query has statements
	spare     *portal   // of a dull statement, to be used again
}

// interesting reports whether a statement may have to be captured.
func (t *Tracker) interesting(sql string) bool {
	return t.cfg.Interesting == nil || t.cfg.Interesting(sql)
}

// dullQuery reports whether a simple query, whose text passed the gate, is dull, and how many statements it has.
func (t *Tracker) dullQuery(text []byte, skip Reason) (statements int, ok bool) {
	if t.cfg.Interesting == nil || skip != captured {
		return 0, false
	}
	sql := unsafe.String(unsafe.SliceData(text), len(text)) // the record is there for as long as this call
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

// dullStatement reports whether the statement of a Parse message is dull. Text that the gate does not let through
// never is: what it says is not known.
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

// bindDull begins a Bind message of a dull statement, whose parameters are of no interest; false when it is another.
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

// executedDull counts the first Execute of a dull statement's portal; false when it is another's.
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

// blanks returns n empty texts.
func (d *dull) blanks(n int) []string {
	for len(d.blank) < n {
		d.blank = append(d.blank, "")
	}
	return d.blank[:n]
}

// own returns a statement that may be changed.
func (d *dull) own(s *statement) *statement {
	if s != &d.statement {
		return s
	}
	return &statement{skip: Unprotected}
}

// spared takes a portal that was forgotten. Nothing refers to it any more when the next Bind message begins.
func (d *dull) spared(p *portal) {
	if p.statement == &d.statement {
		d.spare = p
	}
}

// maxScratch is how many texts the scratch may have room for between two calls of Feed.
const maxScratch = 16

// forget gives the memory back that an unusual query took.
func (d *dull) forget() {
	if cap(d.pieces) > maxScratch {
		d.pieces = nil
	}
	if cap(d.blank) > maxScratch {
		d.blank = nil
	}
}
