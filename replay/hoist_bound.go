package replay

import (
	"context"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/builtin"
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

// readWords lists words in the body of a function that reads relations, or executes text that may.
const readWords = `from execute table update merge returning query_to_xml query_to_xmlschema query_to_xml_and_xmlschema dblink`

// word is an identifier or an operator in a function's text.
var word = regexp.MustCompile("[\\pL_][\\pL\\pN_$]*|[-+*/<>=~!@#%^&|`?]+")

// readBodies sets in k the traits of functions that their declarations do not show. Traits.Draws and Traits.Reads are
// those of the functions whose text contains the name of a volatile function, or one of readWords or the name of a
// function that reads. Functions of pg_catalog read if package builtin says so, or does not list them; those in other
// languages unless they are IMMUTABLE. Traits.Transaction is that of the functions whose result may depend on the calling
// transaction:
//
//   - functions of pg_catalog that are not IMMUTABLE, except harmlessFunctions;
//   - functions in SQL and PL/pgSQL whose text contains the name of such a function or one of transactionWords;
//   - functions in other languages except C: a C function is assumed to depend only on its arguments, random numbers and the
//     clock;
//   - aggregates built from such functions.
func readBodies(ctx context.Context, conn *pgconn.PgConn, k hoist.Knowledge) error {
	rows, err := ask(ctx, conn, "read the functions' definitions", 5, `
		SELECT p.proname, p.pronamespace = 'pg_catalog'::regnamespace, l.lanname, p.provolatile = 'i',
			coalesce(CASE WHEN p.pronamespace = 'pg_catalog'::regnamespace THEN ''
				WHEN p.prokind IN ('a', 'w') AND a.aggfnoid IS NOT NULL THEN pg_catalog.concat_ws(' ', a.aggtransfn, a.aggfinalfn, a.aggcombinefn,
					a.aggserialfn, a.aggdeserialfn, a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn)
				WHEN l.lanname IN ('sql', 'plpgsql') THEN pg_catalog.pg_get_functiondef(p.oid) END, '')
		FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang LEFT JOIN pg_catalog.pg_aggregate a ON a.aggfnoid = p.oid
		UNION ALL SELECT name, false, 'sql', false, text FROM (`+namesQuery+`) n`)
	if err != nil {
		return err
	}
	harmless, dependent, draws, reads := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, name := range strings.Fields(harmlessFunctions) {
		harmless[name] = true
	}
	for _, name := range strings.Fields(transactionWords) {
		dependent[name] = true
	}
	for _, name := range strings.Fields(readWords) {
		reads[name] = true
	}
	for name, traits := range k.Functions {
		draws[name] = traits.Volatile
	}
	texts := map[string][]string{} // of functions whose text is searched for names
	for _, r := range rows {
		name, language, text := string(r[0]), string(r[2]), string(r[4])
		switch {
		case isTrue(r[1]):
			if !isTrue(r[3]) && !harmless[name] {
				dependent[name] = true
			}
			class := builtin.Of(name)
			reads[name] = reads[name] || class != builtin.Safe && class != builtin.Volatile
		case text != "": // SQL, PL/pgSQL, aggregates, operators, types
			texts[name] = append(texts[name], text)
		default:
			dependent[name] = dependent[name] || language != "c" && language != "internal"
			reads[name] = reads[name] || !isTrue(r[3])
		}
	}
	words := map[string][]string{}
	for name, all := range texts {
		words[name] = word.FindAllString(strings.Join(all, " "), -1)
	}
	for _, marked := range []map[string]bool{dependent, draws, reads} {
		spread(words, marked)
	}
	for name, traits := range k.Functions {
		traits.Transaction, traits.Draws, traits.Reads = dependent[name], draws[name], reads[name]
		k.Functions[name] = traits
	}
	return nil
}

// spread marks the functions whose words contain a marked name, until no further one is found.
func spread(words map[string][]string, marked map[string]bool) {
	for changed := true; changed; {
		changed = false
		for name, named := range words {
			for _, w := range named {
				// An operator may end with a sign that belongs to the next word.
				if (marked[w] || marked[strings.ToLower(w)] || marked[strings.TrimRight(w, "+-")]) && !marked[name] {
					marked[name], changed = true, true
				}
			}
		}
	}
}
