package sqltext

import (
	"strconv"
	"strings"
)

// Assignment is one call of set_config(name, value, is_local).
type Assignment struct{ Name, Value, Local Operand }

// Operand is a constant, or a bound parameter.
type Operand struct {
	Value string
	Null  bool
	Param int // n of $n; 0 = a constant
}

// assignments reads the list of a SELECT after that word, to the end of the statement. ok is false unless each call of
// set_config is an item by itself, with constants and parameters, and the statement has no other clause: then each runs
// once.
func (p *parser) assignments() (list []Assignment, ok bool) {
	p.accept("all")
	for {
		at := *p
		a, assigns := p.assignment()
		if assigns {
			p.alias()
			list, assigns = append(list, a), p.isSymbol(',') || p.tok.kind == end
		}
		if !assigns {
			*p = at
			if !p.harmlessItem() {
				return nil, false
			}
		}
		if !p.acceptSymbol(',') {
			return list, p.tok.kind == end
		}
	}
}

// alias reads [AS] name.
func (p *names) alias() {
	as := p.accept("as")
	if p.tok.kind == quoted || p.tok.kind == word && (as || !endsList(Lower(p.text()))) {
		p.advance()
	}
}

// harmlessItem moves past an item without set_config; false if it has one, or if another clause begins.
func (p *expressions) harmlessItem() bool {
	for depth := 0; p.tok.kind != end; p.advance() {
		switch {
		case depth == 0 && p.isSymbol(','):
			return true
		case p.isSymbol('('):
			depth++
		case p.isSymbol(')'):
			depth--
		case p.tok.kind == word && depth == 0 && endsList(Lower(p.text())), p.tok.kind == escaped:
			return false
		case p.tok.kind == word || p.tok.kind == quoted:
			if strings.EqualFold(strings.Trim(p.text(), `"`), "set_config") {
				return false
			}
		}
	}
	return true
}

// endsList reports whether a word ends the list of a SELECT.
func endsList(w string) bool {
	switch w {
	case "from", "where", "group", "having", "window", "order", "limit", "offset", "fetch", "for", "union", "intersect", "except", "into", "distinct":
		return true
	}
	return false
}

// assignment reads [pg_catalog.]set_config(name, value, is_local).
func (p *parser) assignment() (Assignment, bool) {
	name, ok := p.identifier()
	if ok && name == "pg_catalog" && p.acceptSymbol('.') {
		name, ok = p.identifier()
	}
	if !ok || name != "set_config" || !p.acceptSymbol('(') {
		return Assignment{}, false
	}
	var operands [3]Operand
	for i := range operands {
		if i > 0 && !p.acceptSymbol(',') {
			return Assignment{}, false
		}
		if operands[i], ok = p.operand(i == 2); !ok {
			return Assignment{}, false
		}
	}
	a := Assignment{operands[0], operands[1], operands[2]}
	if a.Local.Param == 0 && !a.Local.Null {
		if _, ok := ParseBool(a.Local.Value); !ok {
			return Assignment{}, false
		}
	}
	return a, p.acceptSymbol(')')
}

// operand reads a constant or $n, in parentheses or without, with casts or without, of type text or, for the last
// operand, bool.
func (p *expressions) operand(last bool) (Operand, bool) {
	at := *p
	for p.acceptSymbol('(') || p.accept("cast") {
	}
	bound := p.tok.kind == param
	*p = at
	if bound {
		return p.parameter(last)
	}
	a, ok := p.argument()
	typed := a.Type == 0 || last && a.Type == oidBool || !last && isText(a.Type)
	return Operand{Value: a.Value, Null: a.Null}, ok && typed
}

// parameter reads $n in the forms of argument.
func (p *expressions) parameter(last bool) (Operand, bool) {
	depth := p.parentheses()
	cast := p.accept("cast") && p.acceptSymbol('(')
	if p.tok.kind != param {
		return Operand{}, false
	}
	n, err := strconv.Atoi(p.text()[1:])
	p.advance()
	ok := err == nil && n > 0
	if cast {
		ok = ok && p.accept("as") && p.keepsValue(last) && p.acceptSymbol(')')
	} else {
		ok = ok && p.keepsValueAfter(last)
	}
	for ; ok && depth > 0; depth-- {
		ok = p.acceptSymbol(')') && p.keepsValueAfter(last)
	}
	return Operand{Param: n}, ok
}

// keepsValue reads the type of a cast; false unless it is that of the operand.
func (p *expressions) keepsValue(last bool) bool {
	oid, modified, ok := p.typeName()
	return ok && !modified && (last && oid == oidBool || !last && isText(oid))
}

// keepsValueAfter reads ::type, if it follows.
func (p *expressions) keepsValueAfter(last bool) bool {
	return !p.acceptSymbol(':') || p.acceptSymbol(':') && p.keepsValue(last)
}

func isText(oid uint32) bool { return oid == oidText || oid == oidVarchar }

// ParseBool returns the value of a boolean's text, as the server reads it: unique prefixes of true, false, yes, no, on
// and off in any case, 1 and 0.
func ParseBool(text string) (value, ok bool) {
	text = strings.ToLower(strings.Trim(text, " \t\n\r\f\v"))
	switch text {
	case "1", "on":
		return true, true
	case "0", "of", "off":
		return false, true
	case "", "o":
		return false, false
	}
	for _, word := range [...]string{"true", "yes"} {
		if strings.HasPrefix(word, text) {
			return true, true
		}
	}
	return false, strings.HasPrefix("false", text) || strings.HasPrefix("no", text)
}
