package tap

import (
	"bytes"
	"strings"
	"unsafe"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// inspection reads a body that is not recorded, piece by piece, for what it may do to the session.
type inspection struct {
	text   bool // a Query or Parse message
	tag    bool // CommandComplete
	err    bool // ErrorResponse
	fields fields
	risk   sqltext.Risk
	first  [maxReport]byte // the beginning of another body
	bytes  int
	last   [sqltext.MentionLen - 1]byte // the end of the text so far
	kept   int
}

// begin starts a body.
func (i *inspection) begin(typ byte, server bool) {
	i.text, i.tag, i.err = !server && (typ == 'Q' || typ == 'P'), server && typ == 'C', server && typ == 'E'
	i.fields = fields{}
	i.risk, i.bytes, i.kept = 0, 0, 0
	if !server {
		switch typ {
		case 'C':
			i.risk = sqltext.RiskNames
		case 'F':
			i.risk = sqltext.RiskSettings
		}
	}
}

// add reads a piece.
func (i *inspection) add(b []byte) {
	switch {
	case i.err:
		i.fields.add(b)
		return
	case !i.text:
		i.bytes += copy(i.first[i.bytes:], b)
		return
	case len(b) == 0:
		return
	}
	i.risk |= sqltext.Mentions(unsafe.String(&b[0], len(b)))
	var seam [2 * len(i.last)]byte // around the boundary of two pieces
	n := copy(seam[:], i.last[:i.kept])
	n += copy(seam[n:], b[:min(len(b), len(i.last))])
	i.risk |= sqltext.Mentions(unsafe.String(&seam[0], n))
	if len(b) >= len(i.last) {
		i.kept = copy(i.last[:], b[len(b)-len(i.last):])
	} else {
		i.kept = copy(i.last[:], seam[max(0, n-len(i.last)):n])
	}
}

// fields reads the fields of an error, of which only the names are looked at.
type fields struct {
	value  bool // within the value of a field
	ended  bool
	placed bool // one is the place in the statement
}

func (f *fields) add(b []byte) {
	for len(b) > 0 && !f.ended {
		if !f.value {
			f.value, f.ended, f.placed = true, b[0] == 0, f.placed || b[0] == 'P'
			b = b[1:]
			continue
		}
		end := bytes.IndexByte(b, 0)
		if end < 0 {
			return
		}
		f.value, b = false, b[end+1:]
	}
}

// beginning returns the beginning of a body that is no text.
func (i *inspection) beginning() []byte { return i.first[:i.bytes] }

// end returns the risk of the whole body.
func (i *inspection) end() sqltext.Risk {
	if !i.tag {
		return i.risk
	}
	tag, _, whole := strings.Cut(string(i.beginning()), "\x00")
	if !whole {
		return sqltext.AllRisks
	}
	return i.risk | sqltext.TagRisk(tag)
}
