package sqltext

import (
	"slices"
	"strings"
)

// Common reports whether a name, in lower case, is left out of Doubt.Calls: a keyword that can precede a parenthesis,
// or a common built-in function, none of which changes settings. A user-defined function of such a name may do so.
func Common(name string) bool { return isKeyword(name) || isBuiltin(name) }

// isKeyword reports whether a word is a keyword, or a type with a modifier.
func isKeyword(name string) bool {
	switch name {
	case "all", "and", "any", "array", "as", "asc", "between", "bit", "bpchar", "by", "case", "cast", "char", "character", "check",
		"coalesce", "collate", "columns", "conflict", "cross", "cube", "dec", "decimal", "default", "desc", "distinct", "do", "else",
		"except", "exclude", "exists", "extract", "fetch", "filter", "float", "for", "from", "full", "greatest", "group", "grouping", "having",
		"if", "ilike", "in", "inner", "intersect", "interval", "into", "is", "join", "key", "lateral", "least", "left", "like", "limit",
		"materialized", "natural", "not", "nullif", "numeric", "offset", "on", "only", "operator", "or", "order", "over",
		"overlaps", "overlay", "partition", "perform", "position", "precision", "primary", "recursive", "references", "return", "returning", "returns", "right", "rollup",
		"row", "rows", "select", "set", "sets", "similar", "some", "substring", "symmetric", "table", "tables", "then", "time", "timestamp", "treat", "trim",
		"union", "unique", "update", "using", "values", "varbit", "varchar", "varying", "view", "when", "where", "window", "with", "within":
		return true
	}
	return false
}

// isBuiltin reports whether a name is one of a common function of pg_catalog.
func isBuiltin(name string) bool {
	switch name {
	case "abs", "age", "array_agg", "array_length", "array_position", "array_to_string", "avg", "bit_and", "bit_or", "bool_and", "bool_or", "btrim",
		"cardinality", "ceil", "ceiling", "char_length", "clock_timestamp", "col_description", "concat", "concat_ws", "corr", "count", "current_schema",
		"current_database", "current_schemas", "currval", "date", "date_bin", "date_part", "date_trunc", "decode", "dense_rank", "encode", "every",
		"exp", "first_value", "floor", "format", "format_type", "gen_random_uuid", "generate_series", "generate_subscripts", "has_schema_privilege",
		"has_table_privilege", "json_agg", "json_build_array", "json_build_object", "json_object_agg", "jsonb_agg", "jsonb_array_elements", "jsonb_array_length",
		"jsonb_build_array", "jsonb_build_object", "jsonb_each", "jsonb_object_agg", "jsonb_object_keys", "jsonb_set", "jsonb_typeof", "lag", "last_value", "lastval", "lead",
		"length", "ln", "log", "lower", "lpad", "ltrim", "make_date", "make_interval", "max", "md5", "min", "mod", "mode", "nextval", "now", "ntile", "obj_description",
		"octet_length", "percentile_cont", "percentile_disc", "pg_backend_pid", "pg_get_constraintdef", "pg_get_expr", "pg_get_indexdef", "pg_get_userbyid",
		"pg_get_viewdef", "pg_table_is_visible", "pg_total_relation_size", "pg_try_advisory_lock", "pg_typeof", "plainto_tsquery", "power", "quote_ident", "quote_literal",
		"random", "rank", "regexp_match", "regexp_matches", "regexp_replace", "repeat", "replace", "reverse", "round", "row_number", "row_to_json", "rpad",
		"rtrim", "setseed", "setval", "sha256", "sign", "split_part", "sqrt", "statement_timestamp", "stddev", "stddev_pop", "stddev_samp", "string_agg", "string_to_array",
		"strpos", "substr", "sum", "to_char", "to_date", "to_json", "to_jsonb", "to_number", "to_timestamp", "to_tsquery", "to_tsvector", "translate", "trunc",
		"ts_rank", "txid_current", "unnest", "upper", "var_pop", "var_samp", "variance", "version", "websearch_to_tsquery", "width_bucket":
		return true
	}
	return false
}

// runsText reports whether a built-in function executes the text of its argument, or what a view calls.
func runsText(name string) bool {
	switch name {
	case "ts_stat", "ts_rewrite":
		return true
	}
	return strings.HasSuffix(name, "_to_xml") || strings.HasSuffix(name, "_to_xmlschema") || strings.HasSuffix(name, "_to_xml_and_xmlschema")
}

// quickCalls returns the functions that sql, a statement, calls, apart from common ones. It does not read tokens, which
// makes it fast: it looks at what precedes each parenthesis. ok is false if the tokens must be read.
func quickCalls(sql string) (calls []string, ok bool) {
	for from := 0; ; {
		i := strings.IndexByte(sql[from:], '&')
		if i < 0 {
			break
		}
		if at := from + i; at > 0 && sql[at-1]|0x20 == 'u' && at+1 < len(sql) && sql[at+1] == '"' {
			return nil, false
		}
		from += i + 1
	}
	comments := strings.Contains(sql, "--") || strings.Contains(sql, "*/")
	for from := 0; ; {
		i := strings.IndexByte(sql[from:], '(')
		if i < 0 {
			break
		}
		name, certain := nameBefore(sql[:from+i], comments)
		if !certain {
			return nil, false
		}
		if name != "" && !slices.Contains(calls, name) {
			calls = append(calls, name)
		}
		from += i + 1
	}
	return calls, calls == nil || !comments && !mayHoldStrings(sql) // in which the names may be
}

// mayHoldStrings reports whether a text may contain a string.
func mayHoldStrings(sql string) bool {
	if strings.IndexByte(sql, '\'') >= 0 {
		return true
	}
	for i := range len(sql) {
		if sql[i] == '$' && (i+1 == len(sql) || !isDigit(sql[i+1])) {
			return true
		}
	}
	return false
}

// nameBefore returns the name of the function that may be called by a parenthesis after sql, "" if there is none or it
// is common. certain is false if the tokens must be read.
func nameBefore(sql string, comments bool) (name string, certain bool) {
	at := skipBack(sql)
	if at == 0 {
		return "", true
	}
	if comments && (at != len(sql) || sql[at-1] == '/') {
		return "", false // the name may be before a comment
	}
	if c := sql[at-1]; c == '"' {
		return "", !comments && columnsOf(sql, at)
	} else if !isIdent(c) {
		return "", true
	}
	start := at
	for start > 0 && isIdent(sql[start-1]) {
		start--
	}
	if !isIdentStart(sql[start]) { // not the start of the token
		return "", false
	}
	var lower [24]byte
	name = sql[start:at]
	if len(name) <= len(lower) {
		for i := range len(name) {
			lower[i] = lowerByte(name[i])
		}
		if Common(string(lower[:len(name)])) {
			return "", true
		}
	}
	if !comments && columnsOf(sql, at) {
		return "", true
	}
	name = cut(Lower(name))
	return name, name != "set_config" && name != "current_setting" && !runsText(name)
}

// columnsOf reports whether the possibly qualified name that ends at a position follows a word after which it is no
// function.
func columnsOf(sql string, at int) bool {
	for {
		part := at
		if at > 0 && sql[at-1] == '"' {
			if at = strings.LastIndexByte(sql[:at-1], '"'); at < 0 {
				return false
			}
		} else {
			for at > 0 && isIdent(sql[at-1]) {
				at--
			}
		}
		if at == part {
			return false
		}
		if at == 0 || sql[at-1] != '.' {
			break
		}
		at--
	}
	end := skipBack(sql[:at])
	start := end
	for start > 0 && isIdent(sql[start-1]) {
		start--
	}
	return end < at && noFunctionAfter(sql[start:end])
}

// noFunctionAfter reports whether a name after a word, and before a parenthesis, is that of a relation or an alias with
// a list of columns, or of a function with the types of its arguments.
func noFunctionAfter(w string) bool {
	switch Lower(w) {
	case "into", "as", "table", "view", "exists", "references", "function", "procedure", "routine", "aggregate":
		return true
	}
	return false
}

// skipBack returns the length of s without the white space at its end.
func skipBack(s string) int {
	n := len(s)
	for n > 0 && isSpace(s[n-1]) {
		n--
	}
	return n
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
