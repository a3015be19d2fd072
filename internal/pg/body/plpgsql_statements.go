package body

// The statements of PL/pgSQL (PostgreSQL manual, part V, PL/pgSQL). A word that starts a statement but is not reserved
// may also be a variable: check for an assignment first.

// statements reads statements up to but excluding one of ends.
func (p *plpgsqlSplitter) statements(ends ...string) {
	p.depth++
	for p.at < len(p.tokens) && !p.sign(ends...) {
		if p.depth > maxNestedStatements {
			p.fail()
		}
		p.statement()
	}
	p.depth--
}

func (p *plpgsqlSplitter) statement() {
	if p.assignment() {
		return
	}
	p.label()
	switch {
	case p.sign("declare", "begin"):
		p.block()
	case p.accept("if"):
		p.conditional()
		return
	case p.accept("case"):
		p.choice()
		return
	case p.accept("loop"):
		p.loop()
		return
	case p.accept("while"):
		p.repeating(func() { p.expression("loop") })
		p.expect("loop")
		p.loop()
		return
	case p.accept("for"):
		p.forLoop()
		return
	case p.accept("foreach"):
		p.named(p.at)
		p.until("array")
		p.expect("array")
		p.expression("loop")
		p.expect("loop")
		p.loop()
		return
	case p.accept("exit", "continue"):
		p.until("when", ";")
		if p.accept("when") {
			p.expression(";")
		}
	case p.accept("return"):
		p.returned()
	case p.accept("raise"):
		p.raise()
	case p.accept("assert", "perform"):
		p.expression(";")
	case p.accept("execute"):
		p.execute()
	case p.accept("get", "close", "null"):
		p.until(";")
	case p.accept("fetch", "move"):
		if from := p.at; p.until(";") != "" && p.holds(from, "(") {
			p.fail()
		}
	case p.accept("open"):
		p.open()
	default:
		p.sql(";")
	}
	p.expect(";")
}

// assignment reads variable.field[i] := expression; it returns false if the next statement is not an assignment.
func (p *plpgsqlSplitter) assignment() bool {
	from := p.at
	if !p.isName(from) {
		return false
	}
	for p.at++; ; {
		switch {
		case p.sign(".") && p.isName(p.at+1):
			p.at += 2
			continue
		case p.accept("["):
			p.until("]")
			p.at++
			continue
		case p.sign(":=", "="):
			p.add("SELECT "+p.between(from, p.at), false) // its subscripts
			p.at++
			p.expression(";")
			p.expect(";")
			return true
		}
		p.at = from
		return false
	}
}

// conditional reads the statement after IF.
func (p *plpgsqlSplitter) conditional() {
	for more := true; more; more = p.accept("elsif", "elseif") {
		p.expression("then")
		p.expect("then")
		p.statements("elsif", "elseif", "else", "end")
	}
	if p.accept("else") {
		p.statements("end")
	}
	p.expect("end", "if", ";")
}

// choice reads the statement after CASE; its values are compared with =.
func (p *plpgsqlSplitter) choice() {
	search := p.until("when")
	for p.accept("when") {
		switch values := p.until("then"); search {
		case "":
			p.add("SELECT "+values, false)
		default:
			p.add("SELECT ("+search+"\n) IN ("+values+"\n)", false)
		}
		p.expect("then")
		p.statements("when", "else", "end")
	}
	if p.accept("else") {
		p.statements("end")
	}
	p.expect("end", "case", ";")
}

// loop reads the body of a loop.
func (p *plpgsqlSplitter) loop() {
	p.repeating(func() { p.statements("end") })
	p.expect("end", "loop")
	if !p.sign(";") {
		p.at++ // its label
	}
	p.expect(";")
}

// forLoop reads the statement after FOR: over integers, a query, a cursor or the result of EXECUTE.
func (p *plpgsqlSplitter) forLoop() {
	p.named(p.at)
	p.until("in")
	p.expect("in")
	from := p.at
	p.until("loop", "..")
	integers := p.sign("..")
	p.at = from
	switch {
	case integers:
		p.accept("reverse")
		p.expression("..")
		p.expect("..")
		p.expression("by", "loop")
		if p.accept("by") {
			p.expression("loop")
		}
	case p.sign("select", "with", "values", "table", "(", "execute", "insert", "update", "delete", "merge"):
		p.query("loop")
	default:
		p.at++
		p.arguments()
	}
	p.expect("loop")
	p.loop()
}

// arguments reads the arguments of a cursor, if any.
func (p *plpgsqlSplitter) arguments() {
	if !p.accept("(") {
		return
	}
	for p.at < len(p.tokens) && !p.accept(")") {
		if p.isName(p.at) && (p.text(p.at+1) == ":=" || p.text(p.at+1) == "=>") {
			p.at += 2
		}
		p.expression(",", ")")
		p.accept(",")
	}
}

// returned reads the statement after RETURN.
func (p *plpgsqlSplitter) returned() {
	if p.accept("query") {
		p.query(";")
		return
	}
	p.accept("next")
	p.expression(";")
}

// raise reads the statement after RAISE: a level, a format or a condition, arguments, options.
func (p *plpgsqlSplitter) raise() {
	p.accept("debug", "log", "info", "notice", "warning", "exception")
	p.until(",", "using", ";")
	for p.accept(",") {
		p.expression(",", "using", ";")
	}
	for more := p.accept("using"); more; more = p.accept(",") {
		p.at++ // the option's name
		if !p.accept("=", ":=") {
			p.fail()
		}
		p.expression(",", ";")
	}
}

// execute reads the statement after EXECUTE: an expression, INTO and USING in either order.
func (p *plpgsqlSplitter) execute() {
	p.dynamic("into", ";")
	for p.at < len(p.tokens) && !p.sign(";") {
		if p.accept("into") {
			p.until("using", ";")
			continue
		}
		p.expect("using")
		p.expression("into", ";")
	}
}

// open reads the statement after OPEN: a bound cursor with arguments, or any cursor with a query.
func (p *plpgsqlSplitter) open() {
	p.at++
	p.accept("no")
	p.accept("scroll")
	if p.accept("for") {
		p.query(";")
		return
	}
	p.arguments()
}
