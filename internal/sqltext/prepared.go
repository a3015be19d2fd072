package sqltext

import "strings"

// prepare reads the rest of PREPARE.
func (p *parser) prepare() Effect {
	if p.is("transaction") {
		p.advance()
		if p.tok.kind == str {
			return Effect{Action: Commit}
		}
		return p.prepared("transaction")
	}
	name, ok := p.identifier()
	if !ok {
		return Effect{Action: Unclear}
	}
	return p.prepared(name)
}

// prepared reads the types and the statement of PREPARE.
func (p *parser) prepared(name string) Effect {
	e := Effect{Action: Prepare, Name: name, Plain: true}
	if p.acceptSymbol('(') {
		e.Types, e.Plain = p.types()
	}
	if !p.is("as") {
		return Effect{Action: Unclear}
	}
	e.Statement = strings.Trim(p.sql[p.tok.end:], " \t\n\r\f\v")
	return e
}

// types reads the list of types after its opening parenthesis, past the closing one. It returns nil, false if a type is
// not supported.
func (p *expressions) types() ([]uint32, bool) {
	var types []uint32
	known := true
	for {
		at := *p
		oid, _, ok := p.typeName()
		if !ok || !p.isSymbol(',') && !p.isSymbol(')') {
			*p, known = at, false
			p.skipItem()
		}
		types = append(types, oid)
		if p.acceptSymbol(',') {
			continue
		}
		if !p.acceptSymbol(')') || !known {
			return nil, false
		}
		return types, true
	}
}

// skipItem moves to the comma or closing parenthesis that ends an item of a list.
func (p *expressions) skipItem() {
	for depth := 0; p.tok.kind != end; p.advance() {
		switch {
		case depth == 0 && (p.isSymbol(',') || p.isSymbol(')')):
			return
		case p.isSymbol('('):
			depth++
		case p.isSymbol(')'):
			depth--
		}
	}
}

// Arg is one argument of EXECUTE: a literal, possibly with a cast.
type Arg struct {
	Value string
	Null  bool
	Type  uint32 // OID of its type; 0 for an untyped literal such as 'text'
}

// As returns the text that gives a parameter of type oid the argument's value; oid 0 is a type that the server inferred
// from the statement. ok is false if EXECUTE's conversion could give a different value.
//
// If the server inferred an integer type for a parameter, EXECUTE rounds a decimal; its text is rejected there. The
// text never represents a different value.
func (a Arg) As(oid uint32) (string, bool) {
	switch {
	case a.Null, a.Type == 0, a.Type == oid:
		return a.Value, true
	}
	text := oid == 0 || oid == oidText || oid == oidVarchar
	float := oid == oidNumeric || oid == oidFloat8 || oid == oidFloat4
	switch a.Type {
	case oidBool:
		return a.Value, text && (a.Value == "true" || a.Value == "false")
	case oidText, oidVarchar:
		return a.Value, text
	case oidInt2, oidInt4, oidInt8:
		integer := oid == oidInt2 || oid == oidInt4 || oid == oidInt8
		value, plain, ok := canonicalNumber(a.Value)
		return a.Value, ok && plain && value == a.Value && (text || float || integer)
	case oidNumeric:
		value, _, ok := canonicalNumber(a.Value)
		return a.Value, ok && value == a.Value && (text || float)
	case oidFloat8:
		return a.Value, shortFloat(a.Value, 15) && (text || oid == oidNumeric)
	case oidFloat4:
		return a.Value, shortFloat(a.Value, 6) && (text || float)
	}
	return "", false
}

// shortFloat reports whether a floating-point number with that many reliable digits prints as this text.
func shortFloat(value string, precision int) bool {
	canonical, integer, ok := canonicalNumber(value)
	size := strings.TrimPrefix(value, "-")
	return ok && canonical == value && len(size) <= precision && significant(value) <= precision &&
		(integer || !strings.HasSuffix(value, "0")) && !strings.HasPrefix(size, "0.0000")
}

// execute reads the rest of EXECUTE.
func (p *parser) execute() Effect {
	name, ok := p.identifier()
	if !ok {
		return Effect{Action: Unclear}
	}
	e := Effect{Action: Execute, Name: name, Plain: true}
	if p.tok.kind != end {
		e.Args, e.Plain = p.arguments()
	}
	return e
}

// executeWithin reads the rest of EXPLAIN or CREATE, in which the word EXECUTE occurs.
func (p *parser) executeWithin(explain bool) Effect {
	options := explain // only options of EXPLAIN so far
	for depth := 0; p.tok.kind != end; p.advance() {
		switch {
		case p.isSymbol('('):
			depth++
		case p.isSymbol(')'):
			depth--
		case depth > 0:
		case options && p.is("execute"), p.accept("as"):
			if !p.is("execute") {
				return Effect{Action: ExecuteWithin}
			}
			before := p.sql[:p.tok.start]
			p.advance()
			e := p.execute()
			if e.Action != Execute {
				return Effect{Action: ExecuteWithin}
			}
			e.Action, e.Before = ExecuteWithin, before
			return e
		case !p.is("analyze") && !p.is("analyse") && !p.is("verbose"):
			options = false
		}
	}
	return Effect{Action: ExecuteWithin}
}

// arguments reads a list of literals to the end of the statement.
func (p *expressions) arguments() ([]Arg, bool) {
	if !p.acceptSymbol('(') {
		return nil, false
	}
	var args []Arg
	for {
		a, ok := p.argument()
		if !ok {
			return nil, false
		}
		args = append(args, a)
		if p.acceptSymbol(',') {
			continue
		}
		if !p.acceptSymbol(')') || p.tok.kind != end {
			return nil, false
		}
		return args, true
	}
}

// argument reads literal, literal::type, CAST(literal AS type) or type 'literal', in parentheses or without: some
// clients put every value in parentheses.
func (p *expressions) argument() (Arg, bool) {
	depth := p.parentheses()
	a, ok := p.castLiteral()
	for ; ok && depth > 0; depth-- {
		if ok = p.acceptSymbol(')'); ok {
			a, ok = p.castAfter(a)
		}
	}
	return a, ok
}

// parentheses moves past opening ones and returns their number.
func (p *expressions) parentheses() (depth int) {
	for p.acceptSymbol('(') {
		depth++
	}
	return depth
}

// castLiteral reads what argument does, without the parentheses.
func (p *expressions) castLiteral() (Arg, bool) {
	if p.accept("cast") {
		if !p.acceptSymbol('(') {
			return Arg{}, false
		}
		a, ok := p.constant()
		if !ok || !p.accept("as") {
			return Arg{}, false
		}
		a, ok = p.castTo(a)
		return a, ok && p.acceptSymbol(')')
	}
	a, ok := p.constant()
	if !ok {
		return Arg{}, false
	}
	return p.castAfter(a)
}

// castAfter reads ::type, if it follows.
func (p *expressions) castAfter(a Arg) (Arg, bool) {
	if !p.acceptSymbol(':') {
		return a, true
	}
	if !p.acceptSymbol(':') {
		return Arg{}, false
	}
	return p.castTo(a)
}

// castTo reads a type and gives the argument that type. The server converts the value of an unquoted number; such a
// cast is accepted only if the value cannot change.
func (p *expressions) castTo(a Arg) (Arg, bool) {
	oid, modified, ok := p.typeName()
	if !ok || modified || oid == oidBpchar {
		return Arg{}, false
	}
	value, ok := a.As(oid)
	return Arg{Value: value, Null: a.Null, Type: oid}, ok
}

// constant reads one literal with its sign, or type 'literal'.
func (p *expressions) constant() (Arg, bool) {
	switch {
	case p.accept("null"):
		return Arg{Null: true}, true
	case p.accept("true"):
		return Arg{Value: "true", Type: oidBool}, true
	case p.accept("false"):
		return Arg{Value: "false", Type: oidBool}, true
	case p.tok.kind == str:
		v, ok := unquote(p.text())
		p.advance()
		return Arg{Value: v}, ok
	case p.tok.kind == word:
		oid, modified, ok := p.typeName()
		if !ok || modified || oid == oidBpchar || p.tok.kind != str {
			return Arg{}, false
		}
		v, ok := unquote(p.text())
		p.advance()
		return Arg{Value: v, Type: oid}, ok
	}
	text, ok := p.item()
	if !ok {
		return Arg{}, false
	}
	value, integer, ok := canonicalNumber(text)
	if integer {
		return Arg{Value: value, Type: oidInt4}, ok
	}
	return Arg{Value: value, Type: oidNumeric}, ok
}
