package rewrite

import (
	"bytes"
	"crypto/sha256"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// shapeSchema lists the parts of a tree that a client can vary without changing what the query does with the data:
// constants, parameters, and the names that the query itself defines.
type shapeSchema struct {
	root      *wireMessage
	constants map[*wireMessage]bool                      // messages that represent one value
	names     map[*wireMessage]map[protowire.Number]bool // fields that define a name
}

// newShapeSchema takes the schema of a parse result and all messages below it, by name.
func newShapeSchema(root *wireMessage, made map[protoreflect.FullName]*wireMessage) *shapeSchema {
	of := func(m protoreflect.ProtoMessage) *wireMessage { return made[m.ProtoReflect().Descriptor().FullName()] }
	number := func(m protoreflect.ProtoMessage, field protoreflect.Name) protowire.Number {
		return m.ProtoReflect().Descriptor().Fields().ByName(field).Number()
	}
	x := &shapeSchema{
		root:      root,
		constants: map[*wireMessage]bool{of(&pg_query.A_Const{}): true, of(&pg_query.ParamRef{}): true},
		names:     map[*wireMessage]map[protowire.Number]bool{},
	}
	for _, d := range []struct {
		message protoreflect.ProtoMessage
		fields  []protoreflect.Name
	}{
		{&pg_query.ResTarget{}, []protoreflect.Name{"name"}},
		{&pg_query.Alias{}, []protoreflect.Name{"aliasname", "colnames"}},
		{&pg_query.CommonTableExpr{}, []protoreflect.Name{"ctename", "aliascolnames"}},
		{&pg_query.WindowDef{}, []protoreflect.Name{"name"}},
	} {
		fields := map[protowire.Number]bool{}
		for _, name := range d.fields {
			fields[number(d.message, name)] = true
		}
		x.names[of(d.message)] = fields
	}
	return x
}

// shape returns a hash of a parse result that is the same for statements that differ only in constants and parameters
// (their values, their types, and how many stand in a row), in comments and spelling, and in the names that they give
// to columns, tables, subqueries and windows.
func (s *shapeSchema) shape(wire []byte) ([sha256.Size]byte, error) {
	w := &shapeWriter{schema: s, defined: map[string]bool{}}
	if err := w.collect(s.root, wire, 0, false); err != nil {
		return [sha256.Size]byte{}, err
	}
	if err := w.write(s.root, wire, 0); err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(w.out), nil
}

type shapeWriter struct {
	schema  *shapeSchema
	defined map[string]bool
	out     []byte
}

// wireFields calls visit for every field of a message.
func wireFields(m *wireMessage, wire []byte, visit func(n protowire.Number, f wireField, k protowire.Type, value []byte) error) error {
	for len(wire) > 0 {
		number, kind, n := protowire.ConsumeTag(wire)
		if n < 0 {
			return errWire
		}
		wire = wire[n:]
		if n = protowire.ConsumeFieldValue(number, kind, wire); n < 0 {
			return errWire
		}
		field, known := m.fields[number]
		if !known {
			return errWire
		}
		if err := visit(number, field, kind, wire[:n]); err != nil {
			return err
		}
		wire = wire[n:]
	}
	return nil
}

// collect gathers the names that the query defines. inside reports that every string below defines one.
func (w *shapeWriter) collect(m *wireMessage, wire []byte, depth int, inside bool) error {
	if depth > maxDepth {
		return errWire
	}
	names := w.schema.names[m]
	return wireFields(m, wire, func(n protowire.Number, f wireField, k protowire.Type, value []byte) error {
		if k != protowire.BytesType {
			return nil
		}
		inner, _ := protowire.ConsumeBytes(value)
		defines := inside || names[n]
		if f.message != nil {
			return w.collect(f.message, inner, depth+1, defines)
		}
		if defines {
			w.defined[string(inner)] = true
		}
		return nil
	})
}

// write appends the message to out, and only one of equal consecutive elements.
func (w *shapeWriter) write(m *wireMessage, wire []byte, depth int) error {
	if depth > maxDepth {
		return errWire
	}
	before, at := protowire.Number(0), 0 // the previous field and its offset in out
	err := wireFields(m, wire, func(n protowire.Number, f wireField, k protowire.Type, value []byte) error {
		if f.location {
			return nil
		}
		start := len(w.out)
		w.out = protowire.AppendTag(w.out, n, k)
		inner, _ := protowire.ConsumeBytes(value)
		switch {
		case f.message != nil && w.schema.constants[f.message]:
			w.out = append(w.out[:start], 0) // without the tag: constants and parameters give the same bytes
		case f.message != nil:
			if err := w.write(f.message, inner, depth+1); err != nil {
				return err
			}
			if n == before && bytes.Equal(w.out[at:start], w.out[start:]) {
				w.out = w.out[:start]
				return nil
			}
		case k == protowire.BytesType && w.defined[string(inner)]:
			w.out = append(w.out, 0)
		default:
			w.out = append(w.out, value...)
		}
		before, at = n, start
		return nil
	})
	w.out = append(w.out, 0)
	return err
}
