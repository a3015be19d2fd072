package replay

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/builtin"
	"github.com/dpwatch/dpwatch/replay/hoist"
)

// maxViewDepth bounds the nesting of views that is followed.
const maxViewDepth = 32

// namesQuery returns the operators and the types that are not built in, with the functions of the operators, of the casts to
// a type and of the checks of a domain, and with a text that names further ones.
const namesQuery = `SELECT o.oprname AS name, o.oprcode::pg_catalog.oid AS function,
		pg_catalog.concat_ws(' ', o.oprcode, o.oprleft::pg_catalog.regtype, o.oprright::pg_catalog.regtype) AS text
	FROM pg_catalog.pg_operator o WHERE o.oid >= 16384
	UNION ALL SELECT t.typname, c.castfunc, c.castfunc::pg_catalog.regproc::pg_catalog.text
	FROM pg_catalog.pg_cast c JOIN pg_catalog.pg_type t ON t.oid = c.casttarget WHERE c.oid >= 16384 AND c.castfunc <> 0
	UNION ALL SELECT t.typname, 0, pg_catalog.concat_ws(' ', t.typbasetype::pg_catalog.regtype, pg_catalog.pg_get_constraintdef(c.oid))
	FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_constraint c ON c.contypid = t.oid WHERE t.typtype = 'd' AND t.oid >= 16384`

// knowledge reads the catalog facts that hoisting needs from the shadow database: the properties of all functions,
// operators and types, and of the relations that the queries read. noise lists DP functions, which count as volatile whatever
// their declaration, as do functions of pg_catalog that package builtin does not list: they may depend on anything.
func knowledge(ctx context.Context, conn *pgconn.PgConn, noise []string, sqls ...string) (hoist.Knowledge, error) {
	k := hoist.Knowledge{Functions: map[string]hoist.Traits{}, Relations: map[hoist.Relation]bool{}, Views: map[hoist.Relation]string{}}
	const op = "read the volatility of functions"
	// View definitions qualify the names of relations that are not in this path.
	if _, err := ask(ctx, conn, op, 1, "SELECT pg_catalog.set_config('search_path', 'pg_catalog', false)"); err != nil {
		return k, err
	}
	// The catalog declares every aggregate immutable; the volatility of its support functions counts.
	rows, err := ask(ctx, conn, op, 5, `SELECT name, pg_catalog.bool_or(volatile), pg_catalog.bool_or(kind IN ('a', 'w')), pg_catalog.bool_or(set), pg_catalog.bool_or(builtin)
		FROM (
			SELECT p.proname AS name, p.provolatile = 'v' OR coalesce(parts.volatile, false) AS volatile, p.prokind AS kind, p.proretset AS set,
				p.pronamespace = 'pg_catalog'::regnamespace AND NOT 'internal'::regtype = ANY (p.proargtypes) AS builtin
			FROM pg_catalog.pg_proc p LEFT JOIN (
				SELECT a.aggfnoid, pg_catalog.bool_or(f.provolatile = 'v') AS volatile
				FROM pg_catalog.pg_aggregate a JOIN pg_catalog.pg_proc f ON f.oid IN (a.aggtransfn, a.aggfinalfn, a.aggcombinefn,
					a.aggserialfn, a.aggdeserialfn, a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn)
				GROUP BY a.aggfnoid) parts ON parts.aggfnoid = p.oid
			UNION ALL SELECT n.name, coalesce(p.provolatile = 'v', false), ' ', false, false
			FROM (`+namesQuery+`) n LEFT JOIN pg_catalog.pg_proc p ON p.oid = n.function) all_names
		GROUP BY name`)
	if err != nil {
		return k, err
	}
	for _, r := range rows {
		unlisted := isTrue(r[4]) && builtin.Of(string(r[0])) == builtin.Unlisted
		k.Functions[string(r[0])] = hoist.Traits{Volatile: isTrue(r[1]) || unlisted, Aggregate: isTrue(r[2]), ReturnsSet: isTrue(r[3])}
	}
	if err := readBodies(ctx, conn, k); err != nil {
		return k, err
	}
	for _, name := range noise {
		traits := k.Functions[name]
		traits.Volatile = true
		k.Functions[name] = traits
	}
	reader := relationReader{conn: conn, know: &k, seen: map[hoist.Relation]bool{}}
	for _, sql := range sqls {
		if err := reader.all(ctx, sql, 0); err != nil {
			return k, err
		}
	}
	return k, nil
}

// relationReader finds the relations that may give different rows in two trials.
type relationReader struct {
	conn *pgconn.PgConn
	know *hoist.Knowledge
	seen map[hoist.Relation]bool
}

// all reads the relations of a query, and of the views in it, into r.know.
func (r *relationReader) all(ctx context.Context, sql string, depth int) error {
	relations, err := hoist.Relations(sql)
	if err != nil {
		return nil //nolint:nilerr // Split returns the same error as the reason not to hoist
	}
	for _, relation := range relations {
		if r.seen[relation] {
			continue
		}
		r.seen[relation] = true
		r.know.Relations[relation] = true // until the views that it reads, which may read it, have been followed
		varies, err := r.varies(ctx, relation, depth)
		if err != nil {
			return err
		}
		r.know.Relations[relation] = varies
	}
	return nil
}

// varies reports whether one relation may give different rows in two trials. Tables without row security and
// materialized views do not; a view does if its query does.
func (r *relationReader) varies(ctx context.Context, relation hoist.Relation, depth int) (bool, error) {
	rows, err := ask(ctx, r.conn, "read the kind of a relation", 3, `SELECT c.relkind, c.relrowsecurity,
		coalesce(CASE WHEN c.relkind = 'v' THEN pg_catalog.pg_get_viewdef(c.oid) END, '')
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname = $2`, relation.Schema, relation.Name)
	if err != nil {
		return true, err
	}
	if len(rows) != 1 || isTrue(rows[0][1]) {
		return true, nil
	}
	switch string(rows[0][0]) {
	case "r", "p", "m":
		return false, nil
	case "v":
		definition := string(rows[0][2])
		r.know.Views[relation] = definition
		if depth == maxViewDepth {
			return true, nil
		}
		if err := r.all(ctx, definition, depth+1); err != nil {
			return true, err
		}
		return !hoist.Deterministic(definition, *r.know), nil
	}
	return true, nil
}
