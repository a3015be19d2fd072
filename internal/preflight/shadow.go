package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Shadow checks the shadow database as the replay role.
func Shadow(o Options) Task {
	return func(ctx context.Context) []Check {
		ctx, cancel := context.WithTimeout(ctx, queryTimeout)
		defer cancel()
		s := open(ctx, "shadow.dsn", o.Shadow, o.ConnectTimeout)
		if s.conn == nil {
			s.add("shadow database", "copies, public tables, functions, rights", Unchecked, "the replay role cannot connect", "")
			return s.checks
		}
		defer s.close()
		s.rolePaths = rolePaths(ctx, &o)
		s.copies(ctx, &o)
		s.twin(ctx, &o)
		if len(o.Public) > 0 {
			s.public(ctx, &o)
		}
		path := s.schemas(ctx, "shadow.search_path", o.SearchPath, "correct shadow.search_path, or create the schema")
		for _, schema := range o.ClientPath {
			if !slices.Contains(path, schema) {
				path = append(path, schema)
			}
		}
		if o.Beside {
			s.add("claims.functions", "claims.functions and claims.safe_functions", Unchecked, "the engine is beside the database, and its functions are its own", "")
		} else {
			s.functions(ctx, &o, path)
		}
		s.temporary(ctx, &o)
		role := ident.Quote(s.cfg.User)
		s.definers(ctx, o.declared())
		s.ways(ctx, "foreign data", foreignQuery, "functions, tables and servers",
			"reach other databases, files or programs through these: a replay that calls one leaves the read-only sandbox",
			func(string) string { return "REVOKE EXECUTE, SELECT or USAGE on them from PUBLIC and from " + role }, o.declared())
		return s.checks
	}
}

// temporary checks the privilege that hoisting needs.
func (s *session) temporary(ctx context.Context, o *Options) {
	if !o.Hoist {
		return
	}
	may, err := connect.Value[bool](ctx, s.conn, "SELECT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMPORARY')")
	switch {
	case err != nil:
		s.failed("audit.hoist", err)
	case may:
		s.add("audit.hoist", "temporary tables", OK, "the role may create them", "")
	default:
		s.add("audit.hoist", "temporary tables", Warning, "the role may not create them: every trial runs the whole query, which is slower",
			fmt.Sprintf("GRANT TEMPORARY ON DATABASE %s TO %s", ident.Quote(s.cfg.Database), ident.Quote(s.cfg.User)))
	}
}

// maxNamed is the maximal number of functions named in one warning.
const maxNamed = 20

// named formats a list of names, cut at maxNamed.
func named(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		names = append(slices.Clone(names[:maxNamed]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// definers reports functions that run with their owner's rights. Those that are declared in claims must stay callable.
func (s *session) definers(ctx context.Context, declared []string) {
	const consequence = "call functions that run with their owner's rights: a replay that calls one does what its owner may"
	s.ways(ctx, "security definer", definersQuery+"NOT "+isDeclared+" ORDER BY 1", "functions", consequence, func(names string) string {
		return "REVOKE EXECUTE ON ROUTINE " + names + " FROM PUBLIC, " + ident.Quote(s.cfg.User) + ", unless functions of claims call them"
	}, declared)
	own, err := connect.Values[string](ctx, s.conn, definersQuery+isDeclared+" ORDER BY 1", declared)
	if err != nil {
		s.failed("security definer", err)
	}
	for _, name := range own {
		s.add("security definer", name, Warning, "a function of claims that runs with its owner's rights: a replay that calls it does what its owner may",
			"ALTER ROUTINE "+name+" SECURITY INVOKER, in the shadow database; if it then lacks rights, let a role own it that may only read")
	}
}

// declared returns the names of the declared functions as the configuration has them.
func (o *Options) declared() []string {
	names := append([]string{}, o.Safe...) // not nil, which would be NULL
	for _, f := range o.Functions {
		names = append(names, f.Name)
	}
	return names
}

// isDeclared is the condition that the name of the function f of the schema n is among $1, with or without the schema.
const isDeclared = "coalesce(f.proname = ANY ($1) OR n.nspname || '.' || f.proname = ANY ($1), false)"

// definersQuery is the beginning of a query of the SECURITY DEFINER functions that the role may call, including those
// of extensions; a condition follows.
const definersQuery = `SELECT f.oid::regprocedure::text FROM pg_catalog.pg_proc f JOIN pg_catalog.pg_namespace n ON n.oid = f.pronamespace
	WHERE f.prosecdef AND f.proowner <> (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user)
	AND ` + callable + ` AND `

// foreignQuery returns ways out of the database: functions of extensions that connect elsewhere or run programs,
// built-in functions that read or write files of the server (a superuser may call all of them, which is reported
// elsewhere), functions in untrusted languages, foreign tables and servers. The declared functions are the operator's
// choice.
const foreignQuery = `SELECT f.oid::regprocedure::text FROM pg_catalog.pg_proc f
	JOIN pg_catalog.pg_namespace n ON n.oid = f.pronamespace JOIN pg_catalog.pg_language l ON l.oid = f.prolang
	LEFT JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = f.oid AND d.deptype = 'e'
	LEFT JOIN pg_catalog.pg_extension e ON d.refclassid = 'pg_catalog.pg_extension'::regclass AND e.oid = d.refobjid
	WHERE ` + callable + ` AND NOT ` + isDeclared + `
	AND f.prorettype NOT IN ('pg_catalog.fdw_handler'::regtype, 'pg_catalog.language_handler'::regtype, 'pg_catalog.trigger'::regtype)
	AND (e.extname IN ('dblink', 'postgres_fdw', 'file_fdw', 'oracle_fdw', 'mysql_fdw', 'tds_fdw', 'mongo_fdw', 'redis_fdw', 'multicorn',
			'plproxy', 'http', 'pg_net', 'adminpack', 'pg_cron', 'pg_background')
		OR f.proname LIKE 'dblink%' OR l.lanname NOT IN ('c', 'internal') AND NOT l.lanpltrusted
		OR n.nspname = 'pg_catalog' AND NOT (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) AND f.proname IN ('pg_read_file', 'pg_read_binary_file', 'pg_ls_dir', 'pg_file_write', 'lo_import', 'lo_export'))
	UNION ALL
	SELECT 'foreign table ' || c.oid::regclass::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind = 'f' AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT')
	UNION ALL
	SELECT 'foreign server ' || pg_catalog.quote_ident(srvname) FROM pg_catalog.pg_foreign_server WHERE pg_catalog.has_server_privilege(oid, 'USAGE')
	ORDER BY 1`

// ways reports what a query finds, one name in each row, as means by which a replay may leave its sandbox.
func (s *session) ways(ctx context.Context, name, query, objects, consequence string, fix func(names string) string, declared []string) {
	names, err := connect.Values[string](ctx, s.conn, query, declared)
	switch {
	case err != nil:
		s.failed(name, err)
	case len(names) == 0:
		s.add(name, objects, OK, "the role may use none", "")
	default:
		s.add(name, named(names), Warning, "the role may "+consequence, fix(named(names)))
	}
}
