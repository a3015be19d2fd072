package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Grants returns the statements that give the replay role exactly what it needs. An administrator runs them in the
// shadow database. The last two are the privilege that only hoisting needs, and a limit for temporary files. schemas
// are those of D0 and of every neighbour.
func (p *Player) Grants(schemas []string) []string {
	role := ident.Quote(p.cfg.User)
	copies := ident.List(schemas)
	grants := []string{
		fmt.Sprintf("GRANT CONNECT ON DATABASE %s TO %s", ident.Quote(p.cfg.Database), role),
		fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", copies, role),
		fmt.Sprintf("GRANT SELECT ON ALL TABLES IN SCHEMA %s TO %s", copies, role),
	}
	if len(p.opt.SearchPath) > 0 {
		engine := ident.List(p.opt.SearchPath)
		grants = append(grants,
			fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", engine, role),
			fmt.Sprintf("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA %s TO %s", engine, role))
	}
	return append(grants, fmt.Sprintf("GRANT TEMPORARY ON DATABASE %s TO %s /* only for hoisting, which makes trials faster */",
		ident.Quote(p.cfg.Database), role), p.spillLimit(role))
}

// spillLimit returns the statement that bounds the temporary files of sorts and hashes of one session. Only a superuser
// can set it. Hoisted tables do not count there; they have a limit of their own.
func (p *Player) spillLimit(role string) string {
	return fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET temp_file_limit = '%dMB' /* as a superuser; bounds what sorts and hashes of a replay write to disk, per session */",
		role, ident.Quote(p.cfg.Database), max(p.opt.HoistBytes/sessionShare>>20, 1))
}

// rightsQuery returns one row for each privilege that a replay role should not have: a description, and the statement
// that revokes it. $1 is an array of the schemas of the copies, that of D0 first, $2 those and the engine's, $3 the
// public tables as schema.table. A schema with the same relations as D0 is assumed to be the copy of another neighbour,
// which this role may read. For a superuser, there is only the row that says so.
const rightsQuery = `WITH me AS (SELECT * FROM pg_catalog.pg_roles WHERE rolname = current_user),
	copies AS (SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = ANY ($1::text[]) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')),
	others AS (SELECT n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') GROUP BY n.nspname
		HAVING pg_catalog.array_agg(c.relname ORDER BY c.relname) =
			(SELECT pg_catalog.array_agg(relname ORDER BY relname) FROM copies WHERE nspname = ($1::text[])[1]))
SELECT 'is a SUPERUSER, whom nothing stops from reading the server''s files or from writing',
	'make a role of its own for them (dpwatch doctor then prints what to grant)' FROM me WHERE rolsuper
UNION ALL
SELECT pg_catalog.format('has %s', word), pg_catalog.format('ALTER ROLE %I NO%s', rolname, word)
	FROM me, (VALUES ('BYPASSRLS'), ('CREATEROLE'), ('CREATEDB'), ('REPLICATION')) AS attribute (word)
	WHERE NOT rolsuper AND CASE word WHEN 'BYPASSRLS' THEN rolbypassrls WHEN 'CREATEROLE' THEN rolcreaterole
		WHEN 'CREATEDB' THEN rolcreatedb ELSE rolreplication END
UNION ALL
SELECT pg_catalog.format('is a member of %s', r.rolname), pg_catalog.format('REVOKE %I FROM %I', r.rolname, me.rolname)
	FROM me, pg_catalog.pg_roles r WHERE NOT me.rolsuper AND pg_catalog.pg_has_role(r.oid, 'MEMBER')
	AND r.rolname IN ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program', 'pg_read_all_data',
		'pg_write_all_data', 'pg_signal_backend', 'pg_maintain', 'pg_checkpoint')
UNION ALL
SELECT pg_catalog.format('may create in schema %I', n.nspname),
	pg_catalog.format('REVOKE CREATE ON SCHEMA %I FROM %I, PUBLIC', n.nspname, me.rolname)
	FROM me, pg_catalog.pg_namespace n
	WHERE NOT me.rolsuper AND n.nspname = ANY ($2::text[]) AND pg_catalog.has_schema_privilege(n.oid, 'CREATE')
UNION ALL
SELECT pg_catalog.format('may write to %s table(s), %I.%I one of them', count(*), min(nspname), min(relname)),
	pg_catalog.format('REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA %s FROM %I, PUBLIC; the copies must belong to another role',
		pg_catalog.string_agg(DISTINCT pg_catalog.quote_ident(nspname), ', '), min(me.rolname))
	FROM me, copies WHERE NOT me.rolsuper AND pg_catalog.has_table_privilege(copies.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
	HAVING count(*) > 0
UNION ALL
SELECT pg_catalog.format('may read %s table(s) outside the copies, %I.%I one of them', count(*), min(n.nspname), min(c.relname)),
	pg_catalog.format('REVOKE SELECT ON ALL TABLES IN SCHEMA %s FROM %I, PUBLIC',
		pg_catalog.string_agg(DISTINCT pg_catalog.quote_ident(n.nspname), ', '), min(me.rolname))
	FROM me, pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE NOT me.rolsuper AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> ALL ($2::text[])
	AND n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'
	AND n.nspname NOT IN (SELECT nspname FROM others) AND n.nspname || '.' || c.relname <> ALL ($3::text[])
	AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT')
	HAVING count(*) > 0`

// Excess is a privilege of the replay role beyond reading the copies.
type Excess struct {
	What string // "has BYPASSRLS"
	Fix  string // the statement that revokes it
}

// Excess returns all privileges that the replay role has and should not have; schemas are those of D0 and of every
// neighbour.
func (p *Player) Excess(ctx context.Context, schemas []string) ([]Excess, error) {
	conn, err := p.connect(ctx, Statement{})
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	return p.excess(ctx, conn, schemas)
}

func (p *Player) excess(ctx context.Context, conn *pgconn.PgConn, schemas []string) ([]Excess, error) {
	rows, err := ask(ctx, conn, "check the replay role", 2, rightsQuery, array(schemas), array(slices.Concat(schemas, p.opt.SearchPath)), array(p.opt.Public))
	if err != nil {
		return nil, err
	}
	all := make([]Excess, len(rows))
	for i, row := range rows {
		all[i] = Excess{What: string(row[0]), Fix: string(row[1])}
	}
	return all, nil
}

// rights returns a warning for each Excess.
func (p *Player) rights(ctx context.Context, conn *pgconn.PgConn, schemas []string) ([]string, error) {
	all, err := p.excess(ctx, conn, schemas)
	warnings := make([]string, len(all))
	for i, e := range all {
		warnings[i] = fmt.Sprintf("the replay role %s %s: replays need SELECT on the copies alone: %s", p.cfg.User, e.What, e.Fix)
	}
	return warnings, err
}

// array formats names as a value of type text[].
func array(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
	}
	return "{" + strings.Join(quoted, ",") + "}"
}
