package replay

import (
	"context"
	"fmt"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// place returns the place of a world among the copies: see Places.
func (s *Statement) place(world int) int {
	if s.Places == nil || world >= len(s.Places) { // a step of a separate trial has one world
		return world
	}
	return s.Places[world]
}

// twinQuery returns the first relation of D0 (schema $1) that the role may read and whose copy in the twin (schema $2)
// it may not use, with the reason.
const twinQuery = `WITH copies AS (SELECT n.nspname, c.relname, pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT') AS readable,
		(SELECT pg_catalog.string_agg(pg_catalog.format('%s %s', a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY a.attnum)
			FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname IN ($1, $2) AND c.relkind IN ('r', 'p', 'v', 'm', 'f'))
	SELECT d.relname, CASE WHEN t.relname IS NULL THEN 'missing' WHEN t.readable THEN 'columns' ELSE 'rights' END
	FROM copies d LEFT JOIN copies t ON t.nspname = $2 AND t.relname = d.relname
	WHERE d.nspname = $1 AND d.readable AND (t.relname IS NULL OR NOT t.readable OR t.columns IS DISTINCT FROM d.columns) ORDER BY t.relname IS NOT NULL, 1 LIMIT 1`

// TwinFault returns why the twin of D0 (schema d0) cannot be used, and what to do; "" = it can, or there is none.
// Audits go on without it, and their violations are not controlled.
// guard reports whether the guard can be used, too.
func (p *Player) TwinFault(ctx context.Context, d0 string) (fault string, guard bool, err error) {
	if p.opt.Twin == "" {
		return "", false, nil
	}
	conn, err := p.connect(ctx, Statement{})
	if err != nil {
		return "", false, err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	query := func(columns int, sql string, args ...string) ([][][]byte, error) {
		return ask(ctx, conn, "check the twin", columns, sql, args...)
	}
	fault, err = p.twinFault(query, d0)
	if err != nil || fault != "" || p.opt.Guard == "" {
		return fault, false, err
	}
	rows, err := query(2, twinQuery, d0, p.opt.Guard)
	return "", err == nil && len(rows) == 0, err
}

func (p *Player) twinFault(query func(int, string, ...string) ([][][]byte, error), d0 string) (string, error) {
	if p.opt.Twin == "" {
		return "", nil
	}
	rows, err := query(2, twinQuery, d0, p.opt.Twin)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	name := p.opt.Twin + "." + string(rows[0][0])
	const again = "run `dpwatch neighbours create --replace`, create the copy, or set shadow.twin: none"
	what := map[string]string{
		"missing": name + " does not exist: " + again,
		"columns": fmt.Sprintf("%s has other columns than %s.%s: %s", name, d0, rows[0][0], again),
		"rights": fmt.Sprintf("the replay role may not read %s: GRANT USAGE ON SCHEMA %[2]s TO %[3]s; GRANT SELECT ON ALL TABLES IN SCHEMA %[2]s TO %[3]s",
			name, ident.Quote(p.opt.Twin), ident.Quote(p.cfg.User)),
	}[string(rows[0][1])]
	return "violations are not controlled with a twin of D0, so that noise which belongs to a copy of the data may look like a leak: " + what, nil
}
