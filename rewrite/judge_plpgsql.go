package rewrite

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// plpgsqlBody judges a PL/pgSQL body by its tokens: its parser in libpg_query can end the process, and the body of a
// catalog is read again at every start. PL/pgSQL shares SQL's scanner, so whatever a body reads or calls stands in it as
// a name, unless it is built at run time, which is a fault. A name that may be a relation's or a function's counts as one,
// wherever it stands; so a variable called like a table is a fault too, and nothing is missed.
func (j *judge) plpgsqlBody(neighbour string, f *Function, use *functionUse) string {
	path, fault := bodyPath(f)
	if fault != "" {
		return fault
	}
	if fault := j.tooLarge(f.Body); fault != "" {
		return fault
	}
	tokens, err := pgparse.Scan(f.Body)
	if err != nil {
		return "has a body that cannot be read"
	}
	b := &plpgsqlText{j: j, path: path, use: use, names: j.bodyRewriter(neighbour).names}
	for _, t := range tokens {
		if !isComment(t.GetToken()) {
			b.tokens = append(b.tokens, bodyToken(f.Body, t))
		}
	}
	return b.fault()
}

// token is one token of a body. name is what it is as an identifier, folded or unquoted; "" = it is none.
type token struct {
	text, name string
	keyword    bool // not in quotes
	escaped    bool // U&"..."
}

func bodyToken(body string, t *pg_query.ScanToken) token {
	text := body[t.GetStart():t.GetEnd()]
	switch {
	case t.GetToken() == pg_query.Token_UIDENT:
		return token{text: text, escaped: true}
	case strings.HasPrefix(text, `"`):
		name, _, _ := quotedIdentifier(text[1:])
		return token{text: text, name: name}
	case t.GetToken() == pg_query.Token_IDENT || t.GetKeywordKind() != pg_query.KeywordKind_NO_KEYWORD:
		name := cutName(foldASCII(text))
		return token{text: text, name: name, keyword: true}
	}
	return token{text: text}
}

// plpgsqlText is a body while it is judged.
type plpgsqlText struct {
	j      *judge
	path   searchPath
	use    *functionUse
	names  *names
	tokens []token
}

// The words that may not stand in a body at all, and those that may not start a statement (manual, part VI.I).
var (
	forbiddenWords = strings.Fields(`execute insert update delete merge truncate share explain show operator
		user current_user session_user system_user current_role current_catalog current_schema
		regclass regnamespace regrole regproc regprocedure regoper regoperator information_schema`)
	forbiddenCommands = strings.Fields(`abort alter analyze analyse call checkpoint cluster comment commit copy create deallocate
		discard do drop grant import listen load lock notify prepare reassign refresh reindex release reset revoke rollback
		savepoint security set start unlisten vacuum`)
	beforeStatement = []string{"", ";", ">>", "begin", "then", "else", "loop"}
	// impliedOperators are those that a body may use without writing them: IN, BETWEEN, CASE, LIKE, USING, FOR.
	impliedOperators = []string{"=", "<>", "<", "<=", ">", ">=", "~~", "~~*", "~"}
)

func (b *plpgsqlText) fault() string {
	for _, name := range impliedOperators {
		b.operator(name)
	}
	before := ""
	for i, t := range b.tokens {
		switch {
		case t.escaped:
			return "spells a name with escapes"
		case t.keyword && slices.Contains(forbiddenWords, t.name),
			t.keyword && slices.Contains(forbiddenCommands, t.name) && slices.Contains(beforeStatement, before):
			return "holds what cannot be replayed: " + strings.ToUpper(t.name)
		case t.name == "":
			b.operator(t.text)
		default:
			if fault := b.name(i); fault != "" {
				return fault
			}
		}
		before = strings.ToLower(t.text)
	}
	return ""
}

// at returns the token at a place; the zero token beyond the ends.
func (b *plpgsqlText) at(i int) token {
	if i < 0 || i >= len(b.tokens) {
		return token{}
	}
	return b.tokens[i]
}

// name judges one name as all that it may be.
func (b *plpgsqlText) name(i int) string {
	name, schema, qualified := b.at(i).name, "", b.at(i-1).text == "."
	if qualified {
		schema = b.at(i - 2).name
	}
	if isSystemColumn(name) {
		return "reads the system column " + name
	}
	for _, t := range b.j.shadow.types[name] {
		for _, f := range t.Calls {
			b.use.functions[f] = true
		}
	}
	if b.at(i+1).text == "(" {
		if fault := b.call(schema, name); fault != "" {
			return fault
		}
	} else if qualified && slices.ContainsFunc(b.j.shadow.functions[name], b.j.names.isReader) {
		return "may call the function " + name + " in attribute notation"
	}
	return b.relation(schema, name, qualified)
}

// relation notes the relation that a name may mean: with what stands before it as the schema, or by the path.
func (b *plpgsqlText) relation(schema, name string, qualified bool) string {
	if b.names.catalogs[name] || isTempSchema(name) {
		return "reads the system catalog " + name
	}
	if qualified {
		if t := (Table{schema, name}); b.j.shadow.relations[t] != nil {
			b.use.relations[t] = true
		}
		return ""
	}
	for t := range b.j.shadow.relations {
		if t.Name == name && b.path.uncertain {
			return "names relation " + name + " without its schema"
		}
	}
	for _, s := range b.path.schemas {
		if t := (Table{s, name}); b.j.shadow.relations[t] != nil {
			b.use.relations[t] = true
			break
		}
	}
	return ""
}

// call judges name( as the call of a function. A name that no function has is a keyword's or a type's.
func (b *plpgsqlText) call(schema, name string) string {
	functions := b.j.functions
	if schema == "" || schema == "pg_catalog" {
		if class, builtin := functions.builtin[name]; builtin && class != functionSafe {
			return "calls the function " + name
		}
	}
	users := b.j.shadow.functions[name]
	if schema == "" && b.path.uncertain && len(users) > 0 {
		return "names function " + name + " without its schema"
	}
	for _, f := range users {
		if f.Schema == schema || schema == "" && b.path.has(f.Schema) {
			b.use.functions[Table{f.Schema, f.Name}] = true
		}
	}
	return ""
}

// operator notes every function that an operator may call.
func (b *plpgsqlText) operator(name string) {
	for _, o := range b.j.shadow.operators[name] {
		if b.path.uncertain || b.path.has(o.Schema) {
			b.use.functions[o.Function] = true
		}
	}
}
