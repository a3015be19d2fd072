package sqltext

import "strings"

// keyword handles a word that is a keyword at its place; false if it is a name. Only reserved words end a list: any other
// may be an alias.
func (r *NameReader) keyword(text string) bool {
	var buffer [20]byte
	if len(text) > len(buffer) {
		r.begin(text, "")
		return false
	}
	for i := range len(text) {
		buffer[i] = lowerByte(text[i])
	}
	w := string(buffer[:len(text)]) // does not escape
	if r.begin(text, w) {
		return true
	}
	if r.expect == alias && !isOneOf(w, "select", "with", "table", "not") {
		return false
	}
	expect, opens, l := anything, plain, r.level()
	switch w {
	case "from":
		if l.kind != arguments && !isOneOf(r.prev, "distinct") { // IS DISTINCT FROM
			l.kind, l.condition, expect = fromList, false, relation
		}
	case "join":
		l.kind, l.condition, expect = fromList, false, relation
	case "on":
		l.condition = true
	case "into", "table":
		expect = relation
	case "using":
		expect = source
	case "update":
		l.with = false
		if !isOneOf(r.prev, "for", "key", "do", "on", "then") {
			expect = relation
		}
	case "with":
		expect = withQuery
	case "as":
		if expect = alias; l.kind == castOf {
			expect = typeName
		}
	case "select":
		l.with, l.kind = false, plain
	case "where", "group", "order", "having", "limit", "window", "union", "except", "intersect", "returning", "offset", "for", "fetch":
		l.kind = plain
	case "set":
		if !isOneOf(r.prev, "update") { // ON CONFLICT DO UPDATE SET, MERGE
			return r.other(text, w)
		}
		l.kind = plain
	case "values", "insert", "delete", "merge":
		l.with = false
		return r.other(text, w)
	case "only", "lateral", "if", "not", "exists", "concurrently", "materialized", "temp", "temporary", "unlogged", "verbose", "recursive":
		if r.expect == anything || r.tok.kind != word && r.tok.kind != quoted {
			return r.other(text, w)
		}
		if expect = r.expect; expect == alias {
			expect = anything
		}
	case "cast", "treat", "xmlserialize":
		opens = castOf
	case "extract", "substring", "trim", "overlay", "position":
		opens = arguments
	default:
		return r.other(text, w)
	}
	r.after(afterOther)
	r.prev, r.expect, r.opens = text, expect, opens
	return true
}

// other handles a word that has no meaning of its own; false if it is a name.
func (r *NameReader) other(text, w string) bool {
	switch {
	case r.expect == anything && (r.precedesValue(w) || isOneOf(r.command, "copy") && isOfCopy(w)):
	case r.expect == typeName && isType(w):
	case r.expect == relation && isOneOf(r.command, "copy") && isOneOf(w, "stdin", "program"):
	default:
		return false
	}
	r.after(afterOther)
	r.prev = text
	return true
}

// begin handles the first word of a statement, w in lower case; false if it is to be handled like others.
func (r *NameReader) begin(text, w string) bool {
	if r.command != "" {
		return false
	}
	r.command = text
	switch w {
	case "begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "set", "reset", "show", "discard", "deallocate", "close",
		"fetch", "move", "listen", "unlisten", "notify", "checkpoint", "grant", "revoke", "comment", "drop", "prepare":
		r.skip = true
	case "truncate", "lock", "vacuum", "analyze", "analyse", "cluster", "reindex", "refresh", "copy":
		r.after(afterOther)
		if r.prev, r.expect = text, relation; w == "copy" && r.isSymbol('(') {
			r.expect = anything
		}
		if w != "copy" {
			r.level().kind = fromList
		}
	case "create", "alter", "import", "security", "do":
		r.Defines = true
		return false
	default:
		return false
	}
	return true
}

// isOneOf reports whether w is one of some words in lower case, ignoring case.
func isOneOf(w string, words ...string) bool {
	for _, x := range words {
		if strings.EqualFold(w, x) {
			return true
		}
	}
	return false
}

// precedesValue reports whether a word is a keyword that precedes a parenthesis or a string. Words that are not reserved
// can be the names of functions, except at some places.
func (r *NameReader) precedesValue(w string) bool {
	switch w {
	case "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric", "between", "both", "case", "check", "coalesce", "collate",
		"current_time", "current_timestamp", "default", "desc", "distinct", "do", "else", "end", "except", "exists", "fetch", "for", "greatest", "group", "grouping",
		"having", "ilike", "in", "intersect", "is", "lateral", "leading", "least", "like", "limit", "localtime", "localtimestamp", "natural", "normalize", "not", "null",
		"nullif", "offset", "on", "only", "operator", "or", "order", "overlaps", "placing", "returning", "row", "select", "similar", "some", "symmetric", "table",
		"tablesample", "then", "to", "trailing", "union", "using", "values", "variadic", "when", "where", "window", "with", "xmlattributes", "xmlconcat", "xmlelement",
		"xmlexists", "xmlforest", "xmlparse", "xmlpi", "xmlroot", "xmltable":
		return true
	case "over", "filter", "within", "repeatable":
		return r.before == afterParenthesis
	case "set":
		return r.before == afterName
	case "partition":
		return r.is("by")
	case "by":
		return isOneOf(r.prev, "group", "order", "partition")
	case "sets":
		return isOneOf(r.prev, "grouping")
	case "conflict":
		return isOneOf(r.prev, "on")
	case "insert":
		return isOneOf(r.prev, "then")
	case "materialized":
		return isOneOf(r.prev, "as", "not")
	case "zone":
		return isOneOf(r.prev, "time")
	case "escape", "uescape":
		return r.tok.kind == str
	case "explain", "call", "execute":
		return len(r.command) == len(w)
	}
	return isType(w)
}

// isOfCopy reports whether a word is an option of COPY.
func isOfCopy(w string) bool {
	switch w {
	case "default", "delimiter", "encoding", "escape", "force_not_null", "force_null", "force_quote", "null", "quote":
		return true
	}
	return false
}

// isType reports whether a word is the SQL name of a built-in type that the catalog has by another name.
func isType(w string) bool {
	switch w {
	case "bigint", "bit", "boolean", "char", "character", "dec", "decimal", "double", "float", "int", "integer", "interval", "national", "nchar", "numeric",
		"precision", "real", "setof", "smallint", "time", "timestamp", "varchar", "varying":
		return true
	}
	return false
}
