package sqltext

// runs records what the functions that a statement calls can change; its first word, keyword, ends at the offset at.
func (e *Effect) runs(sql, keyword string, at int) {
	catalog := keyword != "select" && keyword != "insert" && containsAround(sql, "pg", "_settings")
	if calls, ok := quickCalls(sql); ok && !catalog && (calls == nil || keyword != "with") {
		e.Doubt.Calls = calls
		return
	}
	r := codeReader{parser: newParser(sql, 0)}
	r.read()
	e.Doubt = r.code.Doubt
	if r.settings.None() {
		return
	}
	if keyword == "select" {
		p := newParser(sql, at)
		p.advance()
		if assignments, ok := p.assignments(); ok {
			e.Assignments = assignments
			return
		}
	}
	e.Doubt.add(r.settings)
}

// block records what a DO statement can do; the text after DO begins at the offset at.
func (e *Effect) block(sql string, at int) {
	p := newParser(sql, at)
	p.advance()
	body, ok := p.block()
	if !ok {
		e.Doubt.Any, e.MayCommit, e.UnknownTemp = true, true, mentionsTemp(sql)
		return
	}
	code := ReadCode(body)
	e.Doubt, e.Temps, e.UnknownTemp = code.Doubt, code.temps, code.unknownTemp
	e.Doubt.Any = e.Doubt.Any || code.Dynamic
	e.MayCommit = code.Commits || code.Dynamic || code.Any
	if code.Dynamic && mentionsTemp(body) {
		e.UnknownTemp = true
	}
}

// definesSetter reports whether a CREATE statement creates a function whose body may change settings.
func definesSetter(sql string) bool {
	p := newParser(sql, 0)
	p.advance()
	p.advance()
	if p.accept("or") {
		p.accept("replace")
	}
	if !p.accept("function", "procedure") {
		return false
	}
	for ; p.tok.kind != end; p.advance() {
		if p.tok.kind != str {
			continue
		}
		body, ok := unquote(p.text())
		if code := ReadCode(body); !ok || code.Any || code.Dynamic || len(code.Names) > 0 {
			return true
		}
	}
	return containsAround(sql, "set", "_config") // in BEGIN ATOMIC
}
