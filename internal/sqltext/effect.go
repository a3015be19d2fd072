package sqltext

import "strings"

// Action is the effect of a completed statement on its session.
type Action uint8

// The actions. In brackets: the fields of Effect that they use.
const (
	None          Action = iota // no effect that matters here
	Set                         // sets a setting [Name, Value, Local]
	Reset                       // resets a setting to its default [Name, Local]
	Change                      // changes a setting to a value that is not known [Name, Local]
	ResetAll                    // RESET ALL
	DiscardAll                  // DISCARD ALL, which commits at once
	DiscardTemp                 // DISCARD TEMP
	Begin                       // BEGIN, START TRANSACTION
	Commit                      // COMMIT, END, PREPARE TRANSACTION [Chain]
	Rollback                    // ROLLBACK, ABORT [Chain]
	Savepoint                   // SAVEPOINT [Name]
	RollbackTo                  // ROLLBACK TO SAVEPOINT [Name]
	Release                     // RELEASE SAVEPOINT [Name]
	Prepare                     // PREPARE ... AS [Name, Types, Statement, Plain]
	Execute                     // EXECUTE [Name, Args, Plain]
	ExecuteWithin               // EXPLAIN EXECUTE, CREATE TABLE AS EXECUTE [Name, Args, Plain, Before], or text that resembles them [Name is ""]
	Deallocate                  // DEALLOCATE [Name; "" for ALL]
	DeclareCursor               // DECLARE ... CURSOR [Name, Statement, Hold, NoScroll]
	CloseCursor                 // CLOSE [Name; "" for ALL]
	Fetch                       // FETCH, MOVE: runs the statement of a cursor [Name, Rows]
	Unclear                     // an unsupported form
)

// Effect is the effect of one statement on its session. Names are as the server stores them: unquoted ones in lower
// case, truncated to 63 bytes; names of settings always in lower case, their parts joined by a dot.
type Effect struct {
	Action Action
	Name   string
	// Value is a setting's value without quotes ('0.5' becomes 0.5). The items of a list are joined by ", "; for
	// settings that are lists of identifiers (search_path) items are quoted where necessary.
	Value string
	Local bool // SET LOCAL: until the transaction ends
	Chain bool // AND CHAIN: a new transaction block begins immediately
	// Assignments are the calls of set_config in a SELECT that runs each of them once, in this order.
	Assignments []Assignment
	// Doubt is what the statement can change besides: by other calls of set_config, other functions, DO, an update of
	// pg_settings. Of PREPARE and DECLARE it is empty, or what running the cursor can change.
	Doubt Doubt
	// MayCommit is true if the statement can commit before it ends, even if it fails, or can end its transaction in the
	// middle of a pipeline: DO and CALL, and those that PostgreSQL rejects inside of a transaction block.
	MayCommit bool
	// Defines is true if the statement creates a function that may change settings.
	Defines bool
	// Temps are the changes to temporary relations, which hide others of the same name.
	Temps []TempChange
	// UnknownTemp is true if the statement can create a temporary object whose name is unknown.
	UnknownTemp bool

	Types     []uint32 // OIDs of the parameters that PREPARE declares
	Statement string   // the statement that PREPARE prepares, or the whole DECLARE
	Args      []Arg    // arguments of EXECUTE
	Before    string   // the text before an EXECUTE within another statement
	// Plain is true if all types of a PREPARE are supported, or if all arguments of an EXECUTE are literals. Otherwise
	// Types and Args are nil.
	Plain bool

	Hold, NoScroll bool // options of DECLARE
	Rows           Rows // what FETCH reads
}

// Inert reports whether the statement leaves the session unchanged.
func (e Effect) Inert() bool {
	return e.Action == None && e.Doubt.None() && len(e.Assignments) == 0 && !e.MayCommit && !e.Defines && len(e.Temps) == 0 && !e.UnknownTemp
}

// Analyze returns the effect of the single statement in sql. Unrecognised text has no effect.
func Analyze(sql string) Effect {
	p := newParser(sql, 0)
	p.advance()
	first := p.tok
	keyword := Lower(sql[first.start:first.end])
	e := p.statement()
	if e.Action == Prepare { // it does not run its statement
		return e
	}
	switch keyword {
	case "set", "reset", "discard", "begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "deallocate", "close":
		return e
	case "do":
		e.block(sql, first.end)
		return e
	case "create":
		e.Defines = definesSetter(sql)
	}
	if !e.Plain { // the arguments of an EXECUTE are literals
		e.runs(sql, keyword, first.end)
	}
	change, unknown := temporary(sql, keyword)
	e.UnknownTemp = unknown
	if change != nil {
		change.SQL = sql
		e.Temps = []TempChange{*change}
	}
	return e
}

// parser reads statements.
type parser struct{ expressions }

// newParser returns a parser of a text from a position on, before its first token.
func newParser(sql string, at int) parser {
	return parser{expressions{names{tokens{lexer: lexer{sql: sql, pos: at}}}}}
}

// expressions reads values and simple expressions.
type expressions struct{ names }

// names reads the names of objects.
type names struct{ tokens }

// tokens reads a text token by token.
type tokens struct {
	lexer
	tok token // the next one
}

func (p *tokens) advance() { p.tok = p.next() }

func (p *tokens) text() string { return p.sql[p.tok.start:p.tok.end] }

// is reports whether the next token is the unquoted word w (lower case). It does not consume the token.
func (p *tokens) is(w string) bool { return p.tok.kind == word && strings.EqualFold(p.text(), w) }

// accept consumes the next token if it is one of words, and reports whether it did.
func (p *tokens) accept(words ...string) bool {
	for _, w := range words {
		if p.is(w) {
			p.advance()
			return true
		}
	}
	return false
}

// acceptSymbol consumes the next token if it is the single byte c.
func (p *tokens) acceptSymbol(c byte) bool {
	if !p.isSymbol(c) {
		return false
	}
	p.advance()
	return true
}

// isSymbol reports whether the next token is the single byte c.
func (p *tokens) isSymbol(c byte) bool { return p.tok.kind == symbol && p.sql[p.tok.start] == c }

func (p *parser) statement() Effect {
	if p.tok.kind != word {
		return Effect{}
	}
	keyword := Lower(p.text())
	p.advance()
	switch keyword {
	case "set":
		return p.set()
	case "reset":
		return p.reset()
	case "discard":
		switch {
		case p.is("all"):
			return Effect{Action: DiscardAll}
		case p.is("temp"), p.is("temporary"):
			return Effect{Action: DiscardTemp}
		}
	case "begin":
		return Effect{Action: Begin}
	case "start":
		return Effect{Action: Begin}
	case "commit", "end":
		return p.finish(Commit)
	case "rollback", "abort":
		return p.finish(Rollback)
	case "call", "vacuum", "reindex", "cluster":
		return Effect{MayCommit: true}
	case "drop", "alter":
		return Effect{MayCommit: p.immediate()}
	case "fetch", "move":
		return p.fetch()
	case "savepoint":
		return p.named(Savepoint)
	case "release":
		p.skipUnlessLast("savepoint")
		return p.named(Release)
	case "prepare":
		return p.prepare()
	case "execute":
		return p.execute()
	case "deallocate":
		p.skipUnlessLast("prepare")
		return p.namedOrAll(Deallocate)
	case "declare":
		return p.declare()
	case "close":
		return p.namedOrAll(CloseCursor)
	case "explain", "create":
		if containsAround(p.sql, "", "execute") {
			return p.executeWithin(keyword == "explain")
		}
		return Effect{MayCommit: p.immediate()}
	}
	return Effect{}
}

// immediate reports whether the rest of CREATE, ALTER or DROP may be one that commits at once, as far as words show it.
func (p *parser) immediate() bool {
	return p.is("database") || p.is("tablespace") || p.is("subscription") || p.is("system") || containsAround(p.sql, "", "concurrently")
}

// finish reads the rest of COMMIT or ROLLBACK.
func (p *parser) finish(action Action) Effect {
	p.accept("work", "transaction")
	switch {
	case p.is("prepared"):
		return Effect{MayCommit: true} // it concerns another transaction, and commits its own
	case p.accept("to"):
		p.skipUnlessLast("savepoint")
		return p.named(RollbackTo)
	case p.accept("and"):
		return Effect{Action: action, Chain: p.is("chain")}
	}
	return Effect{Action: action}
}

// skipUnlessLast consumes the optional word w. At the end of the statement w is a name.
func (p *parser) skipUnlessLast(w string) {
	if !p.is(w) {
		return
	}
	at := *p
	p.advance()
	if p.tok.kind == end {
		*p = at
	}
}

func (p *names) named(action Action) Effect {
	name, ok := p.identifier()
	if !ok {
		return Effect{Action: Unclear}
	}
	return Effect{Action: action, Name: name}
}

func (p *names) namedOrAll(action Action) Effect {
	if p.is("all") {
		return Effect{Action: action}
	}
	return p.named(action)
}

// containsAround reports whether s contains before+after (both lower case), ignoring case. It searches for the first
// byte of after if that is an underscore, which is fast because underscores are rare.
func containsAround(s, before, after string) bool {
	for i := 0; i+len(after) <= len(s); i++ {
		if after[0] == '_' {
			next := strings.IndexByte(s[i:], '_')
			if next < 0 {
				return false
			}
			i += next
		}
		if i < len(before) || i+len(after) > len(s) {
			continue
		}
		if strings.EqualFold(s[i-len(before):i], before) && strings.EqualFold(s[i:i+len(after)], after) {
			return true
		}
	}
	return false
}
