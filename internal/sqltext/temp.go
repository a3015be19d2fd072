package sqltext

import "strings"

// TempChange is the effect of a statement on the temporary relations of its session, by names without a schema.
type TempChange struct {
	Made         string   // a created relation; "" = none
	IsView       bool     // Made is a view
	DropOnCommit bool     // it is dropped at the end of the transaction
	View         string   // a view, which is temporary if it reads a temporary relation
	Extended     string   // a relation to which the statement may add expressions or triggers, if it is temporary
	SQL          string   // the statement; "" if it is part of a body
	Rest         string   // what follows the name of a table, Made or Extended, if all that it may run has a name there
	Dropped      []string // relations that the statement drops, if they are temporary
	Old, New     string   // a relation that is renamed, if it is temporary
}

// temporary returns the effect of the statement sql, whose first word is keyword, on temporary relations; unknown is
// true if it can create a temporary object whose name is unknown.
func temporary(sql, keyword string) (change *TempChange, unknown bool) {
	p := newParser(sql, 0)
	p.advance()
	switch keyword {
	case "create":
		p.advance()
		return p.created()
	case "drop":
		p.advance()
		return p.dropped(), false
	case "alter":
		p.advance()
		return p.renamed(), false
	case "select", "with":
		if mentionsTemp(sql) {
			return p.selectedInto()
		}
	case "explain":
		return nil, mentionsTemp(sql) // the executed statement is inside
	}
	return nil, false
}

// mentionsTemp reports whether s contains "temp", ignoring case.
func mentionsTemp(s string) bool {
	for i := 0; i+3 < len(s); i++ {
		if s[i]|0x20 == 't' && s[i+1]|0x20 == 'e' && s[i+2]|0x20 == 'm' && s[i+3]|0x20 == 'p' {
			return true
		}
	}
	return false
}

// created reads the rest of CREATE.
func (p *parser) created() (*TempChange, bool) {
	for p.accept("or", "replace", "global", "local", "unlogged") {
	}
	temp := p.accept("temp", "temporary")
	p.accept("recursive")
	if p.is("function") || p.is("procedure") {
		return nil, false
	}
	view := p.is("view")
	if p.accept("domain", "type") {
		if schema, name, ok := p.relationName(); ok && IsTempSchema(schema) {
			return &TempChange{Made: name}, false
		}
		return nil, p.anyTempName()
	}
	if !p.accept("table", "view", "sequence") {
		change := p.extended()
		return change, change == nil && (temp || p.anyTempName())
	}
	if p.accept("if") {
		p.accept("not")
		p.accept("exists")
	}
	schema, name, ok := p.relationName()
	if !ok {
		return nil, temp || p.anyTempName()
	}
	switch {
	case temp || IsTempSchema(schema):
		c := &TempChange{Made: name, IsView: view}
		start := p.tok.start
		var copies bool
		if c.DropOnCommit, copies = p.tableOptions(); !view && !copies {
			c.Rest = p.sql[start:]
		}
		return c, false
	case view:
		return &TempChange{View: name}, p.anyTempName()
	}
	return nil, p.anyTempName()
}

// extended reads the rest of CREATE {TRIGGER | RULE | POLICY | INDEX}.
func (p *parser) extended() *TempChange {
	at := *p
	defer func() { *p = at }()
	p.accept("constraint")
	p.accept("unique")
	before := "on"
	switch {
	case p.accept("trigger", "policy", "index"):
	case p.accept("rule"):
		before = "to"
	default:
		return nil
	}
	for ; p.tok.kind != end; p.advance() {
		if !p.accept(before) {
			continue
		}
		p.accept("only")
		if schema, name, ok := p.relationName(); ok && (schema == "" || IsTempSchema(schema)) {
			return &TempChange{Extended: name, Rest: p.sql[p.tok.start:]}
		}
		return nil
	}
	return nil
}

// relationName reads name or schema.name. ok is false if the name cannot be read.
func (p *names) relationName() (schema, name string, ok bool) {
	if name, ok = p.identifier(); ok && p.acceptSymbol('.') {
		schema = name
		name, ok = p.identifier()
	}
	return schema, name, ok
}

// anyTempName reports whether the rest of a statement contains a name in pg_temp.
func (p *names) anyTempName() bool {
	if !mentionsTemp(p.sql) && !strings.Contains(p.sql, "&") {
		return false
	}
	for ; p.tok.kind != end; p.advance() {
		if p.inTempSchema() {
			return true
		}
	}
	return false
}

// NamesTempSchema reports whether a statement contains the name of the schema of the session's temporary objects, or may.
func NamesTempSchema(sql string) bool {
	if !containsAround(sql, "pg", "_temp") && !strings.Contains(sql, `&"`) {
		return false
	}
	p := newParser(sql, 0)
	p.advance()
	return p.anyTempName()
}

// tableOptions reads the rest of CREATE TABLE: whether it has ON COMMIT DROP, and may take expressions from another table.
func (p *parser) tableOptions() (dropOnCommit, copies bool) {
	for ; p.tok.kind != end; p.advance() {
		copies = copies || p.is("like") || p.is("inherits") || p.is("of")
		if p.accept("on") && p.accept("commit") && p.is("drop") {
			dropOnCommit = true
		}
		if p.tok.kind == end {
			break
		}
	}
	return dropOnCommit, copies
}

// dropped reads the rest of DROP.
func (p *parser) dropped() *TempChange {
	if !p.accept("table", "view", "sequence") {
		return nil
	}
	if p.accept("if") {
		p.accept("exists")
	}
	var change TempChange
	for more := true; more; more = p.acceptSymbol(',') {
		schema, name, ok := p.relationName()
		if !ok {
			break
		}
		if schema == "" || IsTempSchema(schema) {
			change.Dropped = append(change.Dropped, name)
		}
	}
	if change.Dropped == nil {
		return nil
	}
	return &change
}

// renamed reads the rest of ALTER {TABLE | VIEW | SEQUENCE | INDEX} name.
func (p *parser) renamed() *TempChange {
	if !p.accept("table", "view", "sequence", "index") {
		return nil
	}
	if p.accept("if") {
		p.accept("exists")
	}
	p.accept("only")
	schema, old, ok := p.relationName()
	if !ok || schema != "" && !IsTempSchema(schema) {
		return nil
	}
	if !p.accept("rename") || !p.accept("to") {
		return &TempChange{Extended: old, Rest: p.sql[p.tok.start:]}
	}
	name, ok := p.identifier()
	if !ok {
		return nil
	}
	return &TempChange{Old: old, New: name}
}

// selectedInto searches for INTO TEMP name and INTO pg_temp.name.
func (p *parser) selectedInto() (*TempChange, bool) {
	for p.advance(); p.tok.kind != end; p.advance() {
		if !p.is("into") {
			continue
		}
		p.advance()
		if change, unknown, found := p.into(); found {
			return change, unknown
		}
	}
	return nil, false
}

// into reads what follows INTO; found is false if it is not a temporary relation.
func (p *parser) into() (change *TempChange, unknown, found bool) {
	p.accept("global", "local")
	temp := p.accept("temp", "temporary")
	p.accept("table")
	at := *p
	schema, name, ok := p.relationName()
	switch {
	case ok && (temp || IsTempSchema(schema)):
		return &TempChange{Made: name}, false, true
	case temp:
		return nil, true, true
	}
	*p = at
	return nil, p.tok.kind == escaped, p.tok.kind == escaped
}

// inTempSchema reports whether the next token is, or may be, the name of a session's temporary schema.
func (p *names) inTempSchema() bool {
	if p.tok.kind == escaped {
		return true
	}
	at := *p
	name, ok := p.identifier()
	*p = at
	return ok && IsTempSchema(name)
}

// IsTempSchema reports whether the name is pg_temp, or a real schema behind that alias, such as pg_temp_3.
func IsTempSchema(name string) bool {
	return name == "pg_temp" || strings.HasPrefix(name, "pg_temp_")
}
