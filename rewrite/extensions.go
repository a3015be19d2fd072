package rewrite

import "slices"

// contrib are the extensions that come with PostgreSQL and whose immutable functions compute on their arguments alone, with the names
// of their functions that are only stable and were checked by hand: they depend on the extension's own dictionary or settings.
var contrib = map[string][]string{
	"btree_gin": nil, "btree_gist": nil, "citext": nil, "cube": nil, "earthdistance": nil, "fuzzystrmatch": nil, "hstore": {"populate_record"},
	"intarray": nil, "isn": nil, "ltree": nil, "pgcrypto": nil, "seg": nil, "unaccent": {"unaccent"}, "uuid-ossp": nil,
	"pg_trgm": {
		"show_limit", "similarity_op", "word_similarity_op", "word_similarity_commutator_op",
		"strict_word_similarity_op", "strict_word_similarity_commutator_op",
	},
}

// isContrib reports whether a function is one of these extensions' that is safe to replay without a declaration.
func isContrib(f *Function) bool {
	stable, known := contrib[f.Extension]
	if !known {
		return false
	}
	if f.Volatility == "immutable" {
		return true
	}
	return f.Volatility == "stable" && slices.Contains(stable, f.Name)
}

// allContrib reports whether every one of some functions is of these.
func allContrib(found []*Function) bool {
	return !slices.ContainsFunc(found, func(f *Function) bool { return !isContrib(f) })
}
