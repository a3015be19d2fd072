package replay

import (
	"context"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/replay/hoist"
)

// harmlessFunctions lists functions of pg_catalog that are not declared IMMUTABLE but neither read nor change the state
// of a transaction: random functions, the clock, and functions that depend only on the session's settings. Names whose
// overloads are all IMMUTABLE need not be listed.
const harmlessFunctions = `random random_normal setseed gen_random_uuid uuidv4 clock_timestamp timeofday pg_sleep concat concat_ws format to_char
	to_timestamp to_date date_trunc date_part extract timezone generate_series array_to_string string_to_array json_agg jsonb_agg
	json_object_agg jsonb_object_agg to_json to_jsonb row_to_json json_build_object json_build_array date timestamp timestamptz
	quote_literal quote_nullable numeric money text time timetz interval name`

// transactionWords lists words in the body of a function that make its result depend on the transaction, or that may
// call functions whose names the body does not contain.
const transactionWords = `current_timestamp current_time current_date localtimestamp localtime today yesterday tomorrow execute local`

// word is an identifier in a function's text.
var word = regexp.MustCompile(`[\pL_][\pL\pN_$]*`)

// readTransactionTraits sets Traits.Transaction in k for the functions whose result may depend on the calling
// transaction:
//
//   - functions of pg_catalog that are not IMMUTABLE, except harmlessFunctions;
//   - functions in SQL and PL/pgSQL whose text contains the name of such a function or one of transactionWords;
//   - functions in other languages except C: a C function is assumed to depend only on its arguments, random numbers and the
//     clock;
//   - aggregates built from such functions.
func readTransactionTraits(ctx context.Context, conn *pgconn.PgConn, k hoist.Knowledge) error {
	rows, err := ask(ctx, conn, "read the functions' definitions", 5, `
		SELECT p.proname, p.pronamespace = 'pg_catalog'::regnamespace, l.lanname, p.provolatile = 'i',
			coalesce(CASE WHEN p.pronamespace = 'pg_catalog'::regnamespace THEN ''
				WHEN p.prokind IN ('a', 'w') AND a.aggfnoid IS NOT NULL THEN pg_catalog.concat_ws(' ', a.aggtransfn, a.aggfinalfn, a.aggcombinefn,
					a.aggserialfn, a.aggdeserialfn, a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn)
				WHEN l.lanname IN ('sql', 'plpgsql') THEN pg_catalog.pg_get_functiondef(p.oid) END, '')
		FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang LEFT JOIN pg_catalog.pg_aggregate a ON a.aggfnoid = p.oid`)
	if err != nil {
		return err
	}
	harmless, dependent := map[string]bool{}, map[string]bool{}
	for _, name := range strings.Fields(harmlessFunctions) {
		harmless[name] = true
	}
	for _, name := range strings.Fields(transactionWords) {
		dependent[name] = true
	}
	texts := map[string][]string{} // of functions whose text is searched for names
	for _, r := range rows {
		name, language, text := string(r[0]), string(r[2]), string(r[4])
		switch {
		case isTrue(r[1]):
			if !isTrue(r[3]) && !harmless[name] {
				dependent[name] = true
			}
		case text != "": // SQL, PL/pgSQL, aggregates
			texts[name] = append(texts[name], text)
		case language != "c" && language != "internal":
			dependent[name] = true
		}
	}
	words := map[string][]string{}
	for name, all := range texts {
		words[name] = word.FindAllString(strings.Join(all, " "), -1)
	}
	for changed := true; changed; { // until no further function is found to call a dependent one
		changed = false
		for name, named := range words {
			for _, w := range named {
				if (dependent[w] || dependent[strings.ToLower(w)]) && !dependent[name] {
					dependent[name], changed = true, true
				}
			}
		}
	}
	for name, traits := range k.Functions {
		traits.Transaction = dependent[name]
		k.Functions[name] = traits
	}
	return nil
}
