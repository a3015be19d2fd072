package judge

import (
	"slices"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
)

// contrib lists extensions distributed with PostgreSQL whose immutable functions depend only on their arguments, with the
// names of their functions that are only stable and were reviewed: they depend on the extension's own dictionary or
// settings.
var contrib = map[string][]string{
	"btree_gin": nil, "btree_gist": nil, "citext": nil, "cube": nil, "earthdistance": nil, "fuzzystrmatch": nil, "hstore": {"populate_record"},
	"intarray": nil, "isn": nil, "ltree": nil, "pgcrypto": nil, "seg": nil, "unaccent": {"unaccent"}, "uuid-ossp": nil,
	"pg_trgm": {
		"show_limit", "similarity_op", "word_similarity_op", "word_similarity_commutator_op",
		"strict_word_similarity_op", "strict_word_similarity_commutator_op",
	},
}

// isContrib reports whether a function belongs to one of these extensions and is safe to replay without a declaration.
func isContrib(f *catalog.Function) bool {
	stable, known := contrib[f.Extension]
	if !known {
		return false
	}
	if f.Volatility == "immutable" {
		return true
	}
	return f.Volatility == "stable" && slices.Contains(stable, f.Name)
}

// allContrib reports whether isContrib holds for all of the functions.
func allContrib(found []*catalog.Function) bool {
	return !slices.ContainsFunc(found, func(f *catalog.Function) bool { return !isContrib(f) })
}
