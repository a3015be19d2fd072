package rewrite

import (
	"crypto/sha256"
	"errors"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// wireSchema describes the wire format of pg_query's tree: the meaning of each field number per message. It is built
// from the library's own descriptors. Reading the wire format takes a fifth of the time of decoding it into Go structs,
// and a rewritten text is read only for comparison.
type wireSchema struct {
	root, rangeVar, columnRef, funcCall *wireMessage
	stringNode                          protowire.Number // Node.string
	shapes                              *shapeSchema
}

type wireMessage struct {
	fields map[protowire.Number]wireField
}

type wireField struct {
	message  *wireMessage // nil = scalar
	location bool         // a position in the text, without meaning
}

func newWireSchema() *wireSchema {
	made := map[protoreflect.FullName]*wireMessage{}
	descriptor := func(m protoreflect.ProtoMessage) protoreflect.MessageDescriptor { return m.ProtoReflect().Descriptor() }
	root := wireMessageOf(descriptor(&pg_query.ParseResult{}), made)
	return &wireSchema{
		root:       root,
		shapes:     newShapeSchema(root, made),
		rangeVar:   wireMessageOf(descriptor(&pg_query.RangeVar{}), made),
		columnRef:  wireMessageOf(descriptor(&pg_query.ColumnRef{}), made),
		funcCall:   wireMessageOf(descriptor(&pg_query.FuncCall{}), made),
		stringNode: descriptor(&pg_query.Node{}).Fields().ByName("string").Number(),
	}
}

func wireMessageOf(d protoreflect.MessageDescriptor, made map[protoreflect.FullName]*wireMessage) *wireMessage {
	if m, ok := made[d.FullName()]; ok {
		return m
	}
	m := &wireMessage{fields: map[protowire.Number]wireField{}}
	made[d.FullName()] = m
	for i := range d.Fields().Len() {
		fd := d.Fields().Get(i)
		f := wireField{location: pgparse.IsLocation(fd)}
		if fd.Kind() == protoreflect.MessageKind {
			f.message = wireMessageOf(fd.Message(), made)
		}
		m.fields[fd.Number()] = f
	}
	return m
}

// canonical is a tree as bytes, without locations, equal for two statements exactly when their trees are. The schemas
// of protected tables are holes in it: the bytes are the segments with a schema between each two.
type canonical struct {
	segments [][]byte
	tables   []Table // of the holes
}

// fill returns the bytes with the result of schema in each hole.
func (c *canonical) fill(schema func(Table) string) []byte {
	var out []byte
	for i, s := range c.segments {
		out = append(out, s...)
		if i < len(c.tables) {
			out = protowire.AppendString(out, schema(c.tables[i]))
		}
	}
	return out
}

// hash returns the SHA-256 of the bytes with each table's own schema in its hole.
func (c *canonical) hash() [sha256.Size]byte {
	return sha256.Sum256(c.fill(func(t Table) string { return t.Schema }))
}

var errWire = errors.New("the wire format of the syntax tree cannot be decoded")

// maxDepth bounds the recursion over a tree, as protobuf's own limit does.
const maxDepth = 10_000

// canonicalizer writes the canonical form of one tree, with the edits applied.
type canonicalizer struct {
	schema *wireSchema
	edits  map[editKey]edit
	out    canonical
	now    []byte // the segment being written
	edited int    // edits met
}

// canonicalize returns the canonical form of a parse result and how many nodes the edits were applied to.
func (s *wireSchema) canonicalize(wire []byte, edits map[editKey]edit) (*canonical, int, error) {
	c := &canonicalizer{schema: s, edits: edits, now: make([]byte, 0, len(wire))}
	if err := c.message(s.root, wire, 0); err != nil {
		return nil, 0, err
	}
	c.out.segments = append(c.out.segments, c.now)
	return &c.out, c.edited, nil
}

// message writes tag and value of every field, then a zero, which is never a tag.
func (c *canonicalizer) message(m *wireMessage, wire []byte, depth int) error {
	if depth > maxDepth {
		return errWire
	}
	skip := c.open(m, wire)
	for len(wire) > 0 {
		number, kind, n := protowire.ConsumeTag(wire)
		if n < 0 {
			return errWire
		}
		wire = wire[n:]
		if n = protowire.ConsumeFieldValue(number, kind, wire); n < 0 {
			return errWire
		}
		value := wire[:n]
		wire = wire[n:]
		field, known := m.fields[number]
		switch {
		case !known:
			return errWire
		case field.location:
		case skip[number] > 0:
			skip[number]--
		case field.message == nil:
			c.now = append(protowire.AppendTag(c.now, number, kind), value...)
		default:
			inner, _ := protowire.ConsumeBytes(value)
			c.now = protowire.AppendTag(c.now, number, kind)
			if err := c.message(field.message, inner, depth+1); err != nil {
				return err
			}
		}
	}
	c.now = append(c.now, 0)
	return nil
}

// The field numbers of the messages that an edit changes; a test compares them with the descriptors.
const (
	rangeVarCatalog  protowire.Number = 1 // RangeVar.catalogname
	rangeVarSchema   protowire.Number = 2 // RangeVar.schemaname
	rangeVarLocation protowire.Number = 7
	columnFields     protowire.Number = 1 // ColumnRef.fields
	columnLocation   protowire.Number = 2
	callName         protowire.Number = 1 // FuncCall.funcname
	callLocation     protowire.Number = 11
	stringValue      protowire.Number = 1 // String.sval
)

// open writes the schema of a node that an edit changes, and returns how many elements of which field it replaces.
func (c *canonicalizer) open(m *wireMessage, wire []byte) map[protowire.Number]int {
	switch {
	case len(c.edits) == 0:
	case m == c.schema.rangeVar:
		if e, ok := c.edits[editKey{nodeRangeVar, wireInt32(wire, rangeVarLocation)}]; ok {
			c.hole(e, protowire.AppendTag(nil, rangeVarSchema, protowire.BytesType), nil)
			return map[protowire.Number]int{rangeVarCatalog: 1, rangeVarSchema: 1}
		}
	case m == c.schema.columnRef:
		if e, ok := c.edits[editKey{nodeColumnRef, wireInt32(wire, columnLocation)}]; ok {
			c.listHole(e, columnFields)
			return map[protowire.Number]int{columnFields: e.qualifiers}
		}
	case m == c.schema.funcCall:
		if e, ok := c.edits[editKey{nodeFuncCall, wireInt32(wire, callLocation)}]; ok {
			c.listHole(e, callName)
			return map[protowire.Number]int{callName: e.qualifiers}
		}
	}
	return nil
}

// listHole writes a schema as the first element of a list of names.
func (c *canonicalizer) listHole(e edit, list protowire.Number) {
	before := protowire.AppendTag(nil, list, protowire.BytesType)
	before = protowire.AppendTag(before, c.schema.stringNode, protowire.BytesType)
	before = protowire.AppendTag(before, stringValue, protowire.BytesType)
	c.hole(e, before, []byte{0, 0})
}

// hole writes a schema: a hole for a protected table, the table's own schema for another.
func (c *canonicalizer) hole(e edit, before, after []byte) {
	c.edited++
	c.now = append(c.now, before...)
	if e.protected {
		c.out.segments = append(c.out.segments, c.now)
		c.out.tables = append(c.out.tables, e.table)
		c.now = nil
	} else {
		c.now = protowire.AppendString(c.now, e.table.Schema)
	}
	c.now = append(c.now, after...)
}

// wireInt32 returns the last value of an int32 field, 0 if it is absent.
func wireInt32(wire []byte, want protowire.Number) int32 {
	var result int32
	for len(wire) > 0 {
		number, kind, n := protowire.ConsumeTag(wire)
		if n < 0 {
			return result
		}
		wire = wire[n:]
		if number == want && kind == protowire.VarintType {
			if v, used := protowire.ConsumeVarint(wire); used > 0 {
				result = int32(v) //nolint:gosec // protobuf's int32 is the low half
			}
		}
		if n = protowire.ConsumeFieldValue(number, kind, wire); n < 0 {
			return result
		}
		wire = wire[n:]
	}
	return result
}
