package sqltext

import "strings"

// temporary reports whether the statement sql, whose first word is keyword, may make a temporary object.
func temporary(sql, keyword string) bool {
	switch keyword {
	case "create", "select", "with", "explain", "do":
	default:
		return false
	}
	if !mentionsTemp(sql) {
		return false
	}
	switch keyword {
	case "create":
		return createsTemp(sql)
	case "explain", "do":
		return true // what runs is inside
	}
	return selectsIntoTemp(sql)
}

// mentionsTemp reports whether "temp" is in s, in any case.
func mentionsTemp(s string) bool {
	for i := 0; i+3 < len(s); i++ {
		if s[i]|0x20 == 't' && s[i+1]|0x20 == 'e' && s[i+2]|0x20 == 'm' && s[i+3]|0x20 == 'p' {
			return true
		}
	}
	return false
}

// createsTemp looks at the words between CREATE and the kind of the object, then for names in pg_temp.
func createsTemp(sql string) bool {
	p := parser{lexer: lexer{sql: sql}}
	p.advance()
	p.advance()
	for p.accept("or", "replace", "global", "local", "unlogged", "recursive") {
	}
	if p.is("temp") || p.is("temporary") {
		return true
	}
	for ; p.tok.kind != end; p.advance() {
		if p.inTempSchema() {
			return true
		}
	}
	return false
}

// selectsIntoTemp looks for INTO TEMP and INTO pg_temp.
func selectsIntoTemp(sql string) bool {
	p := parser{lexer: lexer{sql: sql}}
	for p.advance(); p.tok.kind != end; p.advance() {
		if !p.is("into") {
			continue
		}
		p.advance()
		p.accept("global", "local")
		if p.is("temp") || p.is("temporary") || p.inTempSchema() {
			return true
		}
	}
	return false
}

// inTempSchema reports whether the next token names a session's temporary schema, or may do so.
func (p *parser) inTempSchema() bool {
	if p.tok.kind == escaped {
		return true
	}
	at := *p
	name, ok := p.identifier()
	*p = at
	return ok && IsTempSchema(name)
}

// IsTempSchema reports whether the name is pg_temp, or the name behind that alias, pg_temp_3.
func IsTempSchema(name string) bool {
	return name == "pg_temp" || strings.HasPrefix(name, "pg_temp_")
}
