package replay

import (
	"context"
	"fmt"
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

// rightsQuery returns one row for each privilege that a replay role should not have: whether it is one on an original
// that can be revoked, a description, and the statement that revokes it. For a superuser, there is only the row that
// says so. Its arguments are those of kindsOfRelations. Whether the role may use the schema of an original is of no
// interest: the body of a function may hold the table itself, not its name.
const rightsQuery = kindsOfRelations + `, me AS (SELECT * FROM pg_catalog.pg_roles WHERE rolname = current_user),
	copies AS (SELECT * FROM relations WHERE nspname = ANY ($1::text[])),
	named AS (SELECT o.oid, c.relowner, c.relacl, pg_catalog.format('%I.%I', r.nspname, r.relname) AS name
		FROM originals o JOIN relations r ON r.oid = o.oid JOIN pg_catalog.pg_class c ON c.oid = o.oid),
	readers AS (SELECT n.name, a.grantee FROM named n, pg_catalog.aclexplode(coalesce(n.relacl, pg_catalog.acldefault('r', n.relowner))) a
			WHERE a.privilege_type = 'SELECT'
		UNION SELECT n.name, a.grantee FROM named n JOIN pg_catalog.pg_attribute t ON t.attrelid = n.oid AND t.attacl IS NOT NULL, pg_catalog.aclexplode(t.attacl) a
			WHERE a.privilege_type = 'SELECT' AND NOT t.attisdropped
		UNION SELECT n.name, r.oid FROM named n, pg_catalog.pg_roles r WHERE r.rolname = 'pg_read_all_data'),
	beyond AS (SELECT c.oid, c.relowner, c.relacl, c.relkind, pg_catalog.format('%I.%I', n.nspname, c.relname) AS name
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN relations r ON r.oid = c.oid
		WHERE (r.oid IS NOT NULL OR c.relkind = 'S' AND pg_catalog.left(n.nspname::text, 3) <> 'pg_') AND n.nspname <> ALL ($1::text[])
		AND n.nspname NOT IN (SELECT nspname FROM others) AND NOT coalesce(r.public, false) AND c.oid NOT IN (SELECT oid FROM originals)
		AND c.oid NOT IN (SELECT oid FROM own) AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
		AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')),
	besides AS (SELECT b.name, a.grantee FROM beyond b, pg_catalog.aclexplode(coalesce(b.relacl, pg_catalog.acldefault(CASE b.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", b.relowner))) a
			WHERE a.privilege_type = 'SELECT'
		UNION SELECT b.name, a.grantee FROM beyond b JOIN pg_catalog.pg_attribute t ON t.attrelid = b.oid AND t.attacl IS NOT NULL, pg_catalog.aclexplode(t.attacl) a
			WHERE a.privilege_type = 'SELECT' AND NOT t.attisdropped),
	groups AS (SELECT r.oid, r.rolname FROM me JOIN pg_catalog.pg_auth_members m ON m.member = me.oid JOIN pg_catalog.pg_roles r ON r.oid = m.roleid)
SELECT false, 'is a SUPERUSER, whom nothing stops from reading the originals of the copies and the server''s files, or from writing',
	'make a role of its own for them (dpwatch doctor then prints what to grant)' FROM me WHERE rolsuper
UNION ALL
SELECT true, pg_catalog.format('may read %s original(s) of the copies, as PUBLIC may, %s one of them', count(*), min(name)),
	pg_catalog.format('REVOKE SELECT ON TABLE %s FROM PUBLIC', pg_catalog.string_agg(name, ', ' ORDER BY name))
	FROM me, readers WHERE NOT me.rolsuper AND grantee = 0 HAVING count(*) > 0
UNION ALL
SELECT true, pg_catalog.format('may read %s original(s) of the copies, %s one of them', count(*), min(name)),
	pg_catalog.format('REVOKE SELECT ON TABLE %s FROM %I', pg_catalog.string_agg(name, ', ' ORDER BY name), me.rolname)
	FROM me JOIN readers ON grantee = me.oid WHERE NOT me.rolsuper AND name NOT IN (SELECT name FROM named WHERE relowner = me.oid) GROUP BY me.rolname
UNION ALL
SELECT true, pg_catalog.format('may read %s original(s) of the copies as a member of %I, %s one of them', count(DISTINCT name), groups.rolname, min(name)),
	pg_catalog.format('REVOKE %I FROM %I', groups.rolname, me.rolname)
	FROM me, groups JOIN readers ON grantee <> 0 AND pg_catalog.pg_has_role(groups.oid, grantee, 'MEMBER') WHERE NOT me.rolsuper GROUP BY groups.rolname, me.rolname
UNION ALL
SELECT false, pg_catalog.format('owns %s original(s) of the copies, %s one of them, and may read them whatever is revoked', count(*), min(name)),
	'make a role of its own for replays (dpwatch doctor then prints what to grant)'
	FROM me JOIN named ON relowner = me.oid WHERE NOT me.rolsuper HAVING count(*) > 0
UNION ALL
SELECT false, pg_catalog.format('has %s', word), pg_catalog.format('ALTER ROLE %I NO%s', rolname, word)
	FROM me, (VALUES ('BYPASSRLS'), ('CREATEROLE'), ('CREATEDB'), ('REPLICATION')) AS attribute (word)
	WHERE NOT rolsuper AND CASE word WHEN 'BYPASSRLS' THEN rolbypassrls WHEN 'CREATEROLE' THEN rolcreaterole
		WHEN 'CREATEDB' THEN rolcreatedb ELSE rolreplication END
UNION ALL
SELECT false, pg_catalog.format('is a member of %s', r.rolname), pg_catalog.format('REVOKE %I FROM %I', r.rolname, me.rolname)
	FROM me, pg_catalog.pg_roles r WHERE NOT me.rolsuper AND pg_catalog.pg_has_role(r.oid, 'MEMBER')
	AND r.rolname IN ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program', 'pg_read_all_data',
		'pg_write_all_data', 'pg_signal_backend', 'pg_maintain', 'pg_checkpoint')
UNION ALL
SELECT false, pg_catalog.format('may create in schema %I', n.nspname),
	pg_catalog.format('REVOKE CREATE ON SCHEMA %I FROM %I, PUBLIC', n.nspname, me.rolname)
	FROM me, pg_catalog.pg_namespace n
	WHERE NOT me.rolsuper AND n.nspname = ANY ($1::text[] || $2::text[]) AND pg_catalog.has_schema_privilege(n.oid, 'CREATE')
UNION ALL
SELECT false, pg_catalog.format('may write to %s table(s), %I.%I one of them', count(*), min(nspname), min(relname)),
	pg_catalog.format('REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA %s FROM %I, PUBLIC; the copies must belong to another role',
		pg_catalog.string_agg(DISTINCT pg_catalog.quote_ident(nspname), ', '), min(me.rolname))
	FROM me, copies WHERE NOT me.rolsuper AND pg_catalog.has_table_privilege(copies.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
	HAVING count(*) > 0
UNION ALL
SELECT false, pg_catalog.format('may read besides the copies, as PUBLIC may: %s', pg_catalog.string_agg(name, ', ' ORDER BY name)),
	pg_catalog.format('REVOKE SELECT ON TABLE %s FROM PUBLIC', pg_catalog.string_agg(name, ', ' ORDER BY name))
	FROM me, besides WHERE NOT me.rolsuper AND grantee = 0 HAVING count(*) > 0
UNION ALL
SELECT false, pg_catalog.format('may read besides the copies: %s', pg_catalog.string_agg(name, ', ' ORDER BY name)),
	pg_catalog.format('REVOKE SELECT ON TABLE %s FROM %I', pg_catalog.string_agg(name, ', ' ORDER BY name), me.rolname)
	FROM me JOIN besides ON grantee = me.oid WHERE NOT me.rolsuper GROUP BY me.rolname
UNION ALL
SELECT false, pg_catalog.format('may read besides the copies, as a member of %I: %s', groups.rolname, pg_catalog.string_agg(DISTINCT name, ', ')),
	pg_catalog.format('REVOKE %I FROM %I', groups.rolname, me.rolname)
	FROM me, groups JOIN besides ON grantee <> 0 AND pg_catalog.pg_has_role(groups.oid, grantee, 'MEMBER') WHERE NOT me.rolsuper GROUP BY groups.rolname, me.rolname
UNION ALL
SELECT false, pg_catalog.format('may read tables that %I creates later%s, by default', d.owner, coalesce(' in schema ' || d.nspname, '')),
	pg_catalog.format('ALTER DEFAULT PRIVILEGES FOR ROLE %I%s REVOKE SELECT ON TABLES FROM %s', d.owner, coalesce(' IN SCHEMA ' || pg_catalog.quote_ident(d.nspname), ''),
		CASE d.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(me.rolname) END)
	FROM me JOIN (SELECT r.rolname AS owner, n.nspname, a.grantee FROM pg_catalog.pg_default_acl p JOIN pg_catalog.pg_roles r ON r.oid = p.defaclrole
		LEFT JOIN pg_catalog.pg_namespace n ON n.oid = p.defaclnamespace, pg_catalog.aclexplode(p.defaclacl) a
		WHERE p.defaclobjtype = 'r' AND a.privilege_type = 'SELECT' AND coalesce(n.nspname <> ALL ($1::text[]), true)) d ON d.grantee IN (0, me.oid)
	WHERE NOT me.rolsuper AND d.owner <> me.rolname`

// Excess is a privilege of the replay role beyond reading the copies.
type Excess struct {
	What string // "has BYPASSRLS"
	Fix  string // the statement that revokes it
	// Original reports that the role may read the original of a copy, which would be the same in all worlds: audits do
	// not begin. A superuser or an owner, from whom nothing can be revoked, is a mere warning; Run.Reads decides then.
	Original bool
}

// Excess returns all privileges that the replay role has and should not have; schemas are those of D0 and of every
// neighbour. It may read the twin, too.
func (p *Player) Excess(ctx context.Context, schemas []string) ([]Excess, error) {
	conn, err := p.connect(ctx, Statement{})
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	return excessOf(ctx, conn, &p.opt, p.opt.withTwin(schemas))
}

func excessOf(ctx context.Context, conn *pgconn.PgConn, opt *Options, schemas []string) ([]Excess, error) {
	rows, err := ask(ctx, conn, "check the replay role", 3, rightsQuery, opt.kinds(schemas)...)
	if err != nil {
		return nil, err
	}
	all := make([]Excess, len(rows))
	for i, row := range rows {
		all[i] = Excess{Original: isTrue(row[0]), What: string(row[1]), Fix: string(row[2])}
	}
	return all, nil
}

// rights returns a warning for each Excess, and an error if one is a right on an original.
func (p *Player) rights(ctx context.Context, conn *pgconn.PgConn, schemas []string) (warnings []string, err error) {
	all, err := excessOf(ctx, conn, &p.opt, schemas)
	var faults, fixes []string
	for _, e := range all {
		if e.Original {
			faults, fixes = append(faults, e.What), append(fixes, e.Fix)
			continue
		}
		warnings = append(warnings, fmt.Sprintf("the replay role %s %s: replays need SELECT on the copies alone: %s", p.cfg.User, e.What, e.Fix))
	}
	if len(faults) > 0 {
		return nil, &SetupError{
			Op:   "the replay role " + p.cfg.User + " " + strings.Join(faults, "; "),
			Hint: "a trial must not be able to read them, since they are the same in all worlds: in database " + p.cfg.Database + ", " + strings.Join(fixes, "; "),
		}
	}
	return warnings, err
}

// checkOriginals returns the error of rights.
func (p *Player) checkOriginals(ctx context.Context) error {
	conn, err := p.connect(ctx, Statement{})
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	_, err = p.rights(ctx, conn, p.opt.schemas())
	return err
}

// array formats names as a value of type text[].
func array(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
	}
	return "{" + strings.Join(quoted, ",") + "}"
}
