package judge

import (
	"slices"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
)

// contrib lists extensions distributed with PostgreSQL whose immutable functions depend only on their arguments, with
// the names of their other functions that were reviewed: they depend on the extension's own dictionary or settings or
// on the encoding of the client, or draw random values.
var contrib = map[string][]string{
	"btree_gin": nil, "btree_gist": nil, "citext": {"citextrecv", "citextsend"}, "cube": nil, "earthdistance": nil, "fuzzystrmatch": nil, "hstore": {"populate_record"},
	"intarray": nil, "isn": nil, "ltree": nil, "pgcrypto": {wrapped, "gen_random_bytes"}, "seg": nil, "unaccent": {"unaccent"}, "uuid-ossp": {"uuid_generate_v4"},
	"pg_trgm": {
		"show_limit", "similarity_op", "word_similarity_op", "word_similarity_commutator_op",
		"strict_word_similarity_op", "strict_word_similarity_commutator_op",
	},
}

// isContrib reports whether a function belongs to one of these extensions and is safe to replay without a declaration.
func isContrib(f *catalog.Function) bool {
	reviewed, known := contrib[f.Extension]
	return known && (f.Volatility == "immutable" || slices.Contains(reviewed, f.Name))
}

// wrapped is the function of pgcrypto that calls the built-in one of its name. So it does not matter which of them a
// call refers to.
const wrapped = "gen_random_uuid"

// withoutWrappers returns the functions that are no wrapper of a built-in one.
func withoutWrappers(found []*catalog.Function) []*catalog.Function {
	return slices.DeleteFunc(slices.Clone(found), func(f *catalog.Function) bool { return f.Name == wrapped && f.Extension == "pgcrypto" })
}

// allContrib reports whether isContrib holds for all of the functions.
func allContrib(found []*catalog.Function) bool {
	return !slices.ContainsFunc(found, func(f *catalog.Function) bool { return !isContrib(f) })
}
