package sqltext

import (
	"slices"
	"strings"
)

// Doubt says what a statement, or the code that it runs, can change in a way that its text does not show. Names are
// those of settings.
type Doubt struct {
	Any   bool     // every setting
	Names []string // these settings
	// Calls are functions and procedures that may run, by names without schemas: what they change depends on their
	// bodies. Those with the name of a common built-in function are left out (Common).
	Calls []string
}

// None reports whether nothing is in doubt.
func (d Doubt) None() bool { return !d.Any && len(d.Names) == 0 && len(d.Calls) == 0 }

// With returns both doubts together.
func (d Doubt) With(other Doubt) Doubt {
	d.Names, d.Calls = slices.Clip(d.Names), slices.Clip(d.Calls)
	d.add(other)
	return d
}

func (d *Doubt) name(name string) {
	if !slices.Contains(d.Names, name) {
		d.Names = append(d.Names, name)
	}
}

func (d *Doubt) call(name string) {
	if !slices.Contains(d.Calls, name) {
		d.Calls = append(d.Calls, name)
	}
}

// add adds what another doubt holds.
func (d *Doubt) add(other Doubt) {
	d.Any = d.Any || other.Any
	for _, name := range other.Names {
		d.name(name)
	}
	for _, name := range other.Calls {
		d.call(name)
	}
}

// Code is what a body of SQL or PL/pgSQL can do to the session that runs it, by its words: a body that does less is
// possible, one that does more is not.
type Code struct {
	Doubt
	Dynamic bool     // it executes texts that are built at run time
	Commits bool     // it may end the transaction
	Reads   []string // the settings that it reads by current_setting('name')

	temps       []TempChange
	unknownTemp bool
}

// Temporaries returns the names of the temporary relations that the body can create, and whether it can create others.
func (c *Code) Temporaries(body string) (names []string, others bool) {
	for _, t := range c.temps {
		for _, name := range [...]string{t.Made, t.View, t.New} {
			if name != "" {
				names = append(names, name)
			}
		}
	}
	return names, c.unknownTemp || c.Dynamic && mentionsTemp(body)
}

// maxNestedCode limits texts inside of texts.
const maxNestedCode = 16

// ReadCode reads the body of a function, a procedure or a DO block.
func ReadCode(body string) Code { return readBody(body, 0) }

func readBody(body string, depth int) Code {
	r := codeReader{parser: newParser(body, 0), body: true, depth: depth}
	r.read()
	r.code.add(r.settings)
	return r.code
}

// codeReader reads a statement, or the statements of a body.
type codeReader struct {
	parser
	body     bool
	depth    int
	code     Code
	settings Doubt // by set_config, apart from the rest
	updates  bool  // the words UPDATE and pg_settings
	catalog  bool
}

func (r *codeReader) read() {
	var before token // the token before a possibly qualified name
	var last token
	for r.advance(); r.tok.kind != end; r.advance() {
		switch r.tok.kind {
		case escaped:
			r.code.Any = r.code.Any || r.sql[r.tok.start+2] == '"'
		case symbol:
			if r.isSymbol('(') && (last.kind == word || last.kind == quoted) {
				r.call(r.sql[last.start:last.end], last.kind == quoted, r.sql[before.start:before.end])
			}
		case word, quoted:
			if last.kind != symbol || r.sql[last.start] != '.' {
				before = last
			}
			if r.tok.kind == word {
				r.keyword(r.text(), r.sql[last.start:last.end])
			}
		}
		last = r.tok
	}
	r.code.Any = r.code.Any || r.updates && r.catalog
}

// call reads a name before a parenthesis.
func (r *codeReader) call(name string, quotes bool, before string) {
	if noFunctionAfter(before) || r.isWith() {
		return
	}
	if quotes {
		name = strings.ReplaceAll(name[1:max(1, len(name)-1)], `""`, `"`)
	} else {
		name = Lower(name)
	}
	name = cut(name)
	switch {
	case name == "set_config":
		if setting, ok := r.firstArgument(); ok {
			r.settings.name(setting)
		} else {
			r.settings.Any = true
		}
	case name == "current_setting":
		if setting, ok := r.firstArgument(); ok && !slices.Contains(r.code.Reads, setting) {
			r.code.Reads = append(r.code.Reads, setting)
		}
	case runsText(name):
		r.code.Any = true
	case !Common(name) || quotes && isKeyword(name):
		r.code.call(name)
	}
}

// isWith reports whether the parenthesis begins the list of columns of a WITH query: (a, b) AS (SELECT ...
func (r *codeReader) isWith() bool {
	p := r.parser
	for more := true; more; more = p.isSymbol(',') {
		p.advance()
		if _, ok := p.identifier(); !ok {
			return false
		}
	}
	if !p.acceptSymbol(')') || !p.accept("as") {
		return false
	}
	p.accept("not")
	p.accept("materialized")
	return p.acceptSymbol('(') && (p.is("select") || p.is("with") || p.isSymbol('('))
}

// firstArgument returns the name of a setting if it is the constant after the parenthesis.
func (r *codeReader) firstArgument() (string, bool) {
	p := r.parser
	p.advance()
	a, ok := p.argument()
	return Lower(a.Value), ok && !a.Null && a.Value != "" && (p.isSymbol(',') || p.isSymbol(')'))
}

// keyword reads a word that can begin a statement in a body, and is preceded by another token.
func (r *codeReader) keyword(w, before string) {
	r.updates = r.updates || strings.EqualFold(w, "update")
	r.catalog = r.catalog || strings.EqualFold(w, "pg_settings")
	if !r.body {
		return
	}
	p := r.parser
	p.advance()
	switch Lower(w) {
	case "set":
		r.effect(p.set())
	case "reset":
		r.effect(p.reset())
	case "discard":
		r.code.Any = true
	case "execute":
		r.executes(p)
	case "do":
		r.nested(p)
	case "call", "commit", "rollback":
		r.code.Commits = r.code.Commits || !strings.EqualFold(before, "on") // CREATE TABLE ... ON COMMIT DROP
	case "create":
		change, unknown := p.created()
		r.temp(change, unknown)
	case "alter":
		switch change := p.renamed(); {
		case change != nil && change.New != "":
			r.temp(&TempChange{View: change.New}, false)
		default:
			r.temp(change, false)
		}
	case "into":
		if mentionsTemp(r.sql) {
			change, unknown, _ := p.into()
			r.temp(change, unknown)
		}
	}
}

// effect records SET or RESET. Other uses of these words (UPDATE t SET a = 1) may look like them, which does no harm.
func (r *codeReader) effect(e Effect) {
	switch e.Action {
	case Set, Reset, Change:
		r.code.name(e.Name)
	case ResetAll:
		r.code.Any = true
	}
}

// temp records a temporary relation that a body may create. It may also fail to: so it counts until the session ends.
func (r *codeReader) temp(change *TempChange, unknown bool) {
	r.code.unknownTemp = r.code.unknownTemp || unknown
	if change != nil {
		change.DropOnCommit = false
		r.code.temps = append(r.code.temps, *change)
	}
}

// executes reads what follows EXECUTE.
func (r *codeReader) executes(p parser) {
	switch {
	case p.is("function"), p.is("procedure"), p.is("on"): // of a trigger, or a privilege
	case p.tok.kind != str:
		r.code.Dynamic = true
	default:
		text, ok := unquote(p.text())
		p.advance()
		if whole := p.tok.kind == end || p.isSymbol(';') || p.is("into") || p.is("using"); ok && whole {
			r.run(text)
		} else {
			r.code.Dynamic = true
		}
	}
}

// nested reads a DO statement inside of a body.
func (r *codeReader) nested(p parser) {
	if p.tok.kind == str || p.is("language") {
		body, ok := p.block()
		if !ok {
			r.code.Any = true
			return
		}
		r.run(body)
	}
}

// run adds the code of a text that the body executes.
func (r *codeReader) run(text string) {
	if r.depth >= maxNestedCode {
		r.code.Dynamic = true
		return
	}
	inner := readBody(text, r.depth+1)
	r.code.add(inner.Doubt)
	r.code.Dynamic, r.code.Commits = r.code.Dynamic || inner.Dynamic, r.code.Commits || inner.Commits
	r.code.Reads = append(r.code.Reads, inner.Reads...)
	r.code.temps, r.code.unknownTemp = append(r.code.temps, inner.temps...), r.code.unknownTemp || inner.unknownTemp
}

// block reads the rest of DO and returns its body. ok is false if it is not in PL/pgSQL or SQL, or cannot be read.
func (p *expressions) block() (body string, ok bool) {
	for ; p.tok.kind != end; p.advance() {
		switch {
		case p.accept("language"):
			language, named := p.text(), p.tok.kind == word || p.tok.kind == quoted || p.tok.kind == str
			if !named || Lower(strings.Trim(language, `"'`)) != "plpgsql" {
				return "", false
			}
		case p.tok.kind == str && !ok:
			if body, ok = unquote(p.text()); !ok {
				return "", false
			}
		default:
			return body, ok
		}
	}
	return body, ok
}
