package shadow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/catalog/read"
	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/session"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// Requirements are what a set needs in the shadow database.
type Requirements struct {
	conn    *pgx.Conn
	options *spec.Options
}

// Requirements returns the requirements, for checks in this session.
func (s *DB) Requirements() Requirements { return Requirements{s.Conn, s.Options} }

// CheckRoles rejects roles for Options.Grant that the server does not have, before anything is copied.
func (r Requirements) CheckRoles(ctx context.Context) error {
	missing, err := connect.Values[string](ctx, r.conn, "SELECT r FROM unnest($1::text[]) r WHERE to_regrole(quote_ident(r)) IS NULL", append([]string{}, r.options.Grant...))
	faults := []error{session.Explain(&r.conn.Config().Config, err)}
	for _, role := range missing {
		faults = append(faults, fmt.Errorf("role %s of neighbours.grant does not exist in the shadow database: create it, or correct shadow.dsn or neighbours.grant", role))
	}
	return errors.Join(faults...)
}

// CheckNames rejects existing schemas with the set's names, unless they belong to the current set.
func (s *DB) CheckNames(ctx context.Context, current Set) error {
	names := s.Options.Schemas()
	there, err := read.Schemas(ctx, s.Conn, names...)
	faults := []error{s.Explain(err)}
	for _, name := range names {
		if _, taken := there[name]; !taken || slices.Contains(current.Schemas(), name) {
			continue
		}
		faults = append(faults, fmt.Errorf("schema %s of the shadow database was not created by `dpwatch neighbours`: drop it, or give shadow.d0, shadow.d1, shadow.twin and shadow.guard other names", name))
	}
	return errors.Join(faults...)
}

// CheckRights rejects a role of neighbours.target that cannot create the schemas and the records of a set.
func (r Requirements) CheckRights(ctx context.Context) error {
	return r.checkGrants(ctx, `SELECT format('GRANT CREATE ON DATABASE %I TO %I', current_database(), current_user) WHERE NOT has_database_privilege(current_database(), 'CREATE')
		UNION ALL SELECT format('GRANT USAGE, CREATE ON SCHEMA %I TO %I', nspname, current_user) FROM pg_namespace
			WHERE nspname = $1 AND NOT (has_schema_privilege(oid, 'USAGE') AND has_schema_privilege(oid, 'CREATE'))`, r.options.Control)
}

// publicTables is the part of a query that finds the tables named by the arrays $1 and $2 without any privilege on
// their schemas.
const publicTables = ` FROM unnest($1::text[], $2::text[]) t(s, n) LEFT JOIN pg_namespace n ON n.nspname = t.s LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.n `

// CheckPublicRights rejects a role of neighbours.target that cannot read public tables in views.
func (r Requirements) CheckPublicRights(ctx context.Context) error {
	schemas, names := split(r.options.Public)
	return r.checkGrants(ctx, `SELECT format('GRANT USAGE ON SCHEMA %I TO %I', n.nspname, current_user)`+publicTables+`
			WHERE c.oid IS NOT NULL AND NOT has_schema_privilege(n.oid, 'USAGE')
		UNION SELECT format('GRANT SELECT ON TABLE %I.%I TO %I', n.nspname, c.relname, current_user)`+publicTables+`
			WHERE c.oid IS NOT NULL AND NOT has_table_privilege(c.oid, 'SELECT') ORDER BY 1 DESC`, schemas, names)
}

// NotePublic notes the public tables that the shadow database lacks.
func (r Requirements) NotePublic(ctx context.Context) error {
	schemas, names := split(r.options.Public)
	missing, err := connect.Structs[ident.Table](ctx, r.conn, "SELECT t.s, t.n"+publicTables+"WHERE c.oid IS NULL", schemas, names)
	for _, t := range missing {
		r.options.Notef("table %s of privacy.public does not exist in the shadow database, where replays and views read it: run %s", t, t.CopyCommand())
	}
	return session.Explain(&r.conn.Config().Config, err)
}

func split(tables []ident.Table) (schemas, names []string) {
	schemas, names = []string{}, []string{}
	for _, t := range tables {
		schemas, names = append(schemas, t.Schema), append(names, t.Name)
	}
	return schemas, names
}

// CheckTypeRights rejects a role of neighbours.target that cannot use the schemas of types, or not create in those that
// lack a type.
func (r Requirements) CheckTypeRights(ctx context.Context, types []source.TypeDefinition) error {
	schemas, names := []string{}, []string{}
	for _, t := range types {
		schemas, names = append(schemas, t.Schema), append(names, t.Name)
	}
	return r.checkGrants(ctx, `WITH w AS (SELECT n.oid, n.nspname, NOT EXISTS (SELECT FROM pg_type x WHERE x.typnamespace = n.oid AND x.typname = t.n)
			AND NOT EXISTS (SELECT FROM pg_collation x WHERE x.collnamespace = n.oid AND x.collname = t.n) AS new
			FROM unnest($1::text[], $2::text[]) t(s, n) JOIN pg_namespace n ON n.nspname = t.s)
		SELECT format('GRANT USAGE%s ON SCHEMA %I TO %I', CASE WHEN bool_or(new) THEN ', CREATE' END, nspname, current_user) FROM w GROUP BY oid, nspname
		HAVING NOT has_schema_privilege(oid, 'USAGE') OR bool_or(new) AND NOT has_schema_privilege(oid, 'CREATE') ORDER BY 1`, schemas, names)
}

// checkGrants returns an error with the GRANT statements that a query returns.
func (r Requirements) checkGrants(ctx context.Context, query string, args ...any) error {
	grants, err := connect.Values[string](ctx, r.conn, query, args...)
	if len(grants) > 0 {
		cfg := r.conn.Config()
		return fmt.Errorf("role %s of neighbours.target lacks rights in the shadow database %s: run there: %s", cfg.User, cfg.Database, strings.Join(grants, "; "))
	}
	return session.Explain(&r.conn.Config().Config, err)
}

// CheckExtensions rejects a shadow database that lacks extensions or has them in other schemas.
func (r Requirements) CheckExtensions(ctx context.Context, needs []source.Extension) error {
	var faults []error
	for _, e := range needs {
		schema, err := connect.Value[string](ctx, r.conn, "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = $1", e.Name)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			faults = append(faults, fmt.Errorf("extension %s is missing in the shadow database: run there, as an administrator: CREATE SCHEMA IF NOT EXISTS %s; CREATE EXTENSION %s SCHEMA %s", e.Name, ident.Quote(e.Schema), ident.Quote(e.Name), ident.Quote(e.Schema)))
		case err != nil:
			return session.Explain(&r.conn.Config().Config, err)
		case schema != e.Schema && e.Schema != "pg_catalog":
			faults = append(faults, fmt.Errorf("extension %s is in schema %s of the shadow database and in %s at the source, where definitions name it: ALTER EXTENSION %s SET SCHEMA %s", e.Name, schema, e.Schema, ident.Quote(e.Name), ident.Quote(e.Schema)))
		}
	}
	return errors.Join(faults...)
}
