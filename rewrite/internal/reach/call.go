package reach

import (
	"cmp"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"github.com/dpwatch/dpwatch/internal/pg/builtin"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

// call handles the call of a function: by its name, by what it may be a cast to, and by the texts that it executes.
func (w *walker) call(n *pg_query.FuncCall) {
	schema, name := pgparse.Name(n.GetFuncname())
	through := "function " + name
	if resolve.IsTempSchema(schema) && !w.isPlanned() {
		w.found(true, true, "the temporary function "+name+", whose body is not known")
	}
	declared := !w.isPlanned() && w.declared(schema, name)
	if declared {
		w.found(false, w.isProtected(schema, name), through)
		w.answer.Function, w.answer.Calls = cmp.Or(w.answer.Function, through), append(w.answer.Calls, n)
	}
	var executes, may bool // a text
	for _, f := range w.overloads(n, schema, name) {
		if w.isPlanned() && f.Volatility != "volatile" && f.Language != "sql" && !isConstant(n) {
			continue // not called before the statement is executed
		}
		w.found(w.functions.Functions[f] && !declared, w.protected.Functions[f], through)
		executes = executes || w.question.executors.Functions[f]
		may = may || f.Language != "sql" && f.Language != "plpgsql" && f.Language != "internal"
	}
	if len(n.GetArgs()) == 1 {
		w.cast(n.GetFuncname(), n.GetArgs()[0])
	}
	if unknown := w.question.options.Catalog == nil && schema != "pg_catalog" && builtin.Of(name) == builtin.Unlisted; unknown {
		may = true
		if w.statement.Beside {
			w.found(true, false, through+", of which nothing is known without privacy.catalog")
		}
	}
	if executes = executes || Executes(name); executes || may {
		w.texts(n, name, executes)
	}
}

// declared reports whether a name may be that of a declared DP function.
func (w *walker) declared(schema, name string) bool {
	for _, t := range w.question.options.Declared {
		if t.Name == name && (t.Schema == "" || w.inPath(schema, t.Schema)) {
			return true
		}
	}
	return false
}

// isProtected reports whether a function of a name, which the catalog may have elsewhere, reaches a protected relation.
func (w *walker) isProtected(schema, name string) bool {
	return schema != "" && w.protected.Has(Table{Schema: schema, Name: name})
}

// overloads returns the functions to which a call may refer.
func (w *walker) overloads(n *pg_query.FuncCall, schema, name string) (all []*catalog.Function) {
	if w.question.options.Catalog == nil {
		return nil
	}
	for _, f := range w.question.options.Catalog.Functions[name] {
		if w.inPath(schema, f.Schema) && w.values.Callable(f, n) && !(len(n.GetArgs()) > 0 && len(f.Takes) == 0 && f.Arguments == "") {
			all = append(all, f)
		}
	}
	return all
}

// isConstant reports whether a call has only constant arguments.
func isConstant(n *pg_query.FuncCall) bool {
	constant := true
	pgparse.Inspect(n.ProtoReflect(), func(m proto.Message) bool {
		switch m.(type) {
		case *pg_query.ColumnRef, *pg_query.SubLink:
			constant = false
		}
		return constant
	})
	return constant
}

// texts handles the texts among the arguments of a function that executes one, or, unless certain, may. An argument of a
// known one that is no constant may hold anything.
func (w *walker) texts(n *pg_query.FuncCall, name string, certain bool) {
	through := "the text that " + name + " executes"
	if x := w.question.options.Catalog; x != nil && (strings.HasPrefix(name, "schema_to_xml") || strings.HasPrefix(name, "database_to_xml")) {
		schema, known := w.constant(first(n.GetArgs()))
		for t := range x.Relations {
			if strings.HasPrefix(name, "database") || !known || t.Schema == schema {
				w.found(w.functions.Relations[t], w.protected.Relations[t], through)
			}
		}
		return
	}
	var all []string
	for i, arg := range n.GetArgs() {
		text, known := w.constant(arg)
		switch {
		case known && !strings.HasPrefix(name, "cursor_to_xml"): // the query of the cursor is not known
			all = append(all, text)
		case Executes(name) && !w.isPlanned() && i == textAt(name, len(n.GetArgs())):
			w.found(true, true, through+", which is not known")
		}
	}
	w.text(all, through, certain)
}

// textAt returns which argument of a function that executes a text is the text.
func textAt(name string, arguments int) int {
	if name == "ts_rewrite" || strings.HasPrefix(name, "dblink") && arguments > 1 {
		if arguments == 3 && name == "ts_rewrite" {
			return -1 // ts_rewrite(tsquery, tsquery, tsquery) executes none
		}
		return 1
	}
	return 0
}

func first(nodes []*pg_query.Node) *pg_query.Node {
	if len(nodes) == 0 {
		return nil
	}
	return nodes[0]
}

// constant returns the text of a constant, a parameter, or several joined with ||, with casts around them.
func (w *walker) constant(n *pg_query.Node) (text string, known bool) {
	switch {
	case n.GetTypeCast() != nil:
		return w.constant(n.GetTypeCast().GetArg())
	case n.GetNamedArgExpr() != nil:
		return w.constant(n.GetNamedArgExpr().GetArg())
	case n.GetAConst() != nil:
		return n.GetAConst().GetSval().GetSval(), true
	case n.GetParamRef() != nil:
		params, at := w.statement.Query.Params, int(n.GetParamRef().GetNumber())-1
		if at < 0 || at >= len(params) {
			return "", false
		}
		return string(params[at].Value), true
	case n.GetAExpr() != nil && pgparse.Last(n.GetAExpr().GetName()) == "||":
		left, ok := w.constant(n.GetAExpr().GetLexpr())
		right, ok2 := w.constant(n.GetAExpr().GetRexpr())
		return left + right, ok && ok2
	}
	return "", false
}

// text handles texts that are executed: as statements if they can be parsed, otherwise by their words if it is certain
// that they are.
func (w *walker) text(all []string, through string, certain bool) {
	calls := len(w.answer.Calls)
	for i, text := range append(all, strings.Join(all, "")) {
		if i == len(all) && (i == 1 || len(w.answer.Calls) > calls) { // it is no text in pieces
			return
		}
		if w.depth < maxDepth && w.question.options.Limits.Exceeded(text) == "" {
			if tree, err := pgparse.Parse(text); err == nil {
				w.depth++
				for _, s := range tree.GetStmts() {
					w.run(s.GetStmt())
				}
				w.depth--
				continue
			}
		}
		if certain { // otherwise it may be a message
			w.words(text, through)
		}
	}
}

// words handles a text that is executed, and whose words may be names.
func (w *walker) words(text, through string) {
	words := bodyWords(strings.ToLower(text))
	w.found(w.functions.Speaks(words), w.protected.Speaks(words), through)
}
