package rewrite

import (
	"fmt"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// editNode is the kind of syntax node that an edit changes.
type editNode uint8

const (
	nodeRangeVar editNode = iota
	nodeColumnRef
	nodeFuncCall
)

// editKey identifies a node of the tree by its kind and its offset in the text.
type editKey struct {
	node editNode
	at   int32
}

// edit replaces the schema of one name.
type edit struct {
	node       editNode
	at         int32 // byte offset of the name's first part
	qualifiers int   // parts before the relation's or function's name: 0, 1 (schema) or 2 (database, schema)
	table      Table // the relation, or the function
	protected  bool  // use the neighbour's schema; otherwise the table's own

	end int // the schema replaces the text from at to end (with a dot, if the text is empty)
}

// locate determines the end of every edit from the tokens, and sorts the edits by offset.
func locate(edits []edit, tokens []*pg_query.ScanToken) error {
	slices.SortFunc(edits, func(a, b edit) int { return int(a.at) - int(b.at) })
	i := 0
	for k := range edits {
		e := &edits[k]
		for i < len(tokens) && tokens[i].GetStart() < e.at {
			i++
		}
		if i == len(tokens) || tokens[i].GetStart() != e.at {
			return fmt.Errorf("no token starts at byte %d", e.at)
		}
		if k > 0 && e.at < int32(edits[k-1].end) { //nolint:gosec // below MaxBytes
			return fmt.Errorf("two names overlap at byte %d", e.at)
		}
		e.end = int(e.at)
		for dots, j := 0, i; dots < e.qualifiers; j++ {
			if j == len(tokens) {
				return fmt.Errorf("no dot follows the name at byte %d", e.at)
			}
			if tokens[j].GetToken() == pg_query.Token_ASCII_46 {
				dots++
				e.end = int(tokens[j].GetStart())
			}
		}
	}
	return nil
}

// splice returns sql with the edits applied, which must be sorted by offset.
func splice(sql string, edits []edit, schema string) string {
	var b strings.Builder
	b.Grow(len(sql) + len(edits)*(len(schema)+3))
	from := 0
	for _, e := range edits {
		b.WriteString(sql[from:e.at])
		if e.protected {
			b.WriteString(ident.Quote(schema))
		} else {
			b.WriteString(ident.Quote(e.table.Schema))
		}
		if e.qualifiers == 0 {
			b.WriteByte('.')
		}
		from = e.end
	}
	b.WriteString(sql[from:])
	return b.String()
}
