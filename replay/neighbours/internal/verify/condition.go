package verify

import (
	"context"
	"fmt"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// unexpectedObjects lists objects that no copy may have, because they change what statements read or do. $1 is the
// schema.
const unexpectedObjects = `SELECT format('row security is on for %s', c.relname) FROM pg_class c
		WHERE c.relnamespace = to_regnamespace($1) AND (c.relrowsecurity OR c.relforcerowsecurity)
	UNION ALL SELECT format('%s has the row security policy %s', c.relname, p.polname) FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
		WHERE c.relnamespace = to_regnamespace($1)
	UNION ALL SELECT format('%s has the rule %s', c.relname, w.rulename) FROM pg_rewrite w JOIN pg_class c ON c.oid = w.ev_class
		WHERE c.relnamespace = to_regnamespace($1) AND w.rulename <> '_RETURN'
	UNION ALL SELECT format('%s has the trigger %s', c.relname, t.tgname) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
		WHERE c.relnamespace = to_regnamespace($1) AND NOT t.tgisinternal
	ORDER BY 1`

// missingRights lists the privileges that the roles $2 lack to read the schema $1.
const missingRights = `WITH roles AS (SELECT r.oid, r.rolname FROM pg_roles r WHERE r.rolname = ANY($2::text[]))
	SELECT format('role %s does not exist', t) FROM unnest($2::text[]) t WHERE t NOT IN (SELECT rolname FROM roles)
	UNION ALL SELECT format('role %s lacks USAGE on the schema', rolname) FROM roles WHERE NOT has_schema_privilege(oid, to_regnamespace($1)::oid, 'USAGE')
	UNION ALL SELECT format('role %s lacks SELECT on %s', r.rolname, string_agg(c.relname, ', ' ORDER BY c.relname)) FROM roles r, pg_class c
		WHERE c.relnamespace = to_regnamespace($1) AND c.relkind IN ('r', 'p', 'v', 'm') AND NOT has_table_privilege(r.oid, c.oid, 'SELECT') GROUP BY r.rolname
	UNION ALL SELECT format('role %s lacks EXECUTE on function %s', r.rolname, string_agg(f.proname, ', ' ORDER BY f.proname)) FROM roles r, pg_proc f
		WHERE f.pronamespace = to_regnamespace($1) AND NOT has_function_privilege(r.oid, f.oid, 'EXECUTE') GROUP BY r.rolname`

// missingStatistics lists the tables of the schema $1 with rows (their names are $2, those with rows below them $3)
// that lack the statistics of ANALYZE. An empty sample, for example of a type whose values cannot be compared, still
// has a row in pg_stats.
const missingStatistics = `WITH columns AS (SELECT c.oid, c.relname, a.attname, false AS inherited FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
			AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> 'v' AND coalesce(a.attstattarget::int, -1) <> 0
			WHERE c.relnamespace = to_regnamespace($1) AND c.relname = ANY($2::text[])
		UNION ALL SELECT c.oid, c.relname, a.attname, true FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
			AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> 'v' AND coalesce(a.attstattarget::int, -1) <> 0
			WHERE c.relnamespace = to_regnamespace($1) AND c.relname = ANY($3::text[]))
	SELECT format('%s has no statistics of %s', relname, string_agg(DISTINCT attname, ', ')) FROM columns k
		WHERE NOT EXISTS (SELECT FROM pg_stats s WHERE s.schemaname = $4 AND s.tablename = k.relname AND s.attname = k.attname AND s.inherited = k.inherited) GROUP BY relname
	UNION ALL SELECT format('%s is known to have no rows', c.relname) FROM pg_class c
		WHERE c.relnamespace = to_regnamespace($1) AND c.relname = ANY($2::text[]) AND c.reltuples <= 0
	UNION ALL SELECT format('%s has no data of the extended statistics %s', c.relname, x.stxname) FROM pg_statistic_ext x JOIN pg_class c ON c.oid = x.stxrelid
		WHERE x.stxnamespace = to_regnamespace($1) AND coalesce(x.stxstattarget::int, -1) <> 0 AND (c.relname = ANY($2::text[]) OR c.relname = ANY($3::text[]))
		AND NOT EXISTS (SELECT FROM pg_stats_ext s WHERE s.statistics_schemaname = $4 AND s.statistics_name = x.stxname)
	ORDER BY 1`

// labels lists the security labels in the schema $1; an engine may mask columns by them.
const labels = `SELECT format('security label of %s, column %s: %s %s', c.relname, l.objsubid, l.provider, l.label)
	FROM pg_seclabel l JOIN pg_class c ON c.oid = l.objoid WHERE l.classoid = 'pg_class'::regclass AND c.relnamespace = to_regnamespace($1)`

// condition lists the faults of a schema of copies that show without comparison with other schemas or the source.
func (v *verifier) condition(ctx context.Context, schema string, sums *worldSums) ([]string, error) {
	faults, err := connect.Values[string](ctx, v.Conn, unexpectedObjects, ident.Quote(schema))
	if err != nil {
		return nil, err
	}
	roles := v.Options.Grant
	if len(roles) == 0 {
		roles = []string{v.Conn.Config().User}
	}
	lacks, err := connect.Values[string](ctx, v.Conn, missingRights, ident.Quote(schema), roles)
	if err != nil {
		return nil, err
	}
	for _, l := range lacks {
		faults = append(faults, l+": replays cannot read the copies: run `dpwatch neighbours create --replace`, or grant it")
	}
	if v.set.Method == spec.View && schema != v.set.D0 {
		return faults, nil
	}
	var filled, above []string
	for _, r := range v.m.Tables() {
		if r.Stores() && sums.all[r.Name].Rows > 0 {
			filled = append(filled, r.Name)
		}
		for _, x := range v.m.Tables() {
			if x != r && x.Stores() && sums.all[x.Name].Rows > 0 && v.m.Within(x, r) {
				above = append(above, r.Name)
				break
			}
		}
	}
	empty, err := connect.Values[string](ctx, v.Conn, missingStatistics, ident.Quote(schema), nonNil(filled), nonNil(above), schema)
	for _, e := range empty {
		faults = append(faults, fmt.Sprintf("%s: plans differ from those at the source: run VACUUM (ANALYZE) on the tables of %s", e, schema))
	}
	return faults, err
}

func nonNil(names []string) []string { return append([]string{}, names...) }
