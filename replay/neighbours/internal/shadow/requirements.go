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
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
)

// CheckRoles rejects roles for Options.Grant that the server does not have, before anything is copied.
func (s *DB) CheckRoles(ctx context.Context) error {
	missing, err := connect.Values[string](ctx, s.Conn, "SELECT r FROM unnest($1::text[]) r WHERE to_regrole(quote_ident(r)) IS NULL", append([]string{}, s.Options.Grant...))
	faults := []error{err}
	for _, role := range missing {
		faults = append(faults, fmt.Errorf("role %s of neighbours.grant does not exist in the shadow database: create it, or correct shadow.dsn or neighbours.grant", role))
	}
	return errors.Join(faults...)
}

// CheckNames rejects existing schemas with the set's names, unless they belong to the current set.
func (s *DB) CheckNames(ctx context.Context, current Set) error {
	names := append([]string{s.Options.D0}, s.Options.D1...)
	there, err := read.Schemas(ctx, s.Conn, names...)
	faults := []error{err}
	for _, name := range names {
		if _, taken := there[name]; !taken || name == current.D0 || slices.Contains(current.D1, name) {
			continue
		}
		faults = append(faults, fmt.Errorf("schema %s of the shadow database was not created by `dpwatch neighbours`: drop it, or give shadow.d0 and shadow.d1 other names", name))
	}
	return errors.Join(faults...)
}

// CheckRights rejects a role of neighbours.target that cannot create the schemas and the records of a set.
func (s *DB) CheckRights(ctx context.Context) error {
	return s.checkGrants(ctx, `SELECT format('GRANT CREATE ON DATABASE %I TO %I', current_database(), current_user) WHERE NOT has_database_privilege(current_database(), 'CREATE')
		UNION ALL SELECT format('GRANT USAGE, CREATE ON SCHEMA %I TO %I', nspname, current_user) FROM pg_namespace
			WHERE nspname = $1 AND NOT (has_schema_privilege(oid, 'USAGE') AND has_schema_privilege(oid, 'CREATE'))`, s.Options.Control)
}

// CheckPublicRights rejects a role of neighbours.target that cannot read public tables in views.
func (s *DB) CheckPublicRights(ctx context.Context) error {
	names := []string{}
	for _, t := range s.Options.Public {
		names = append(names, t.SQL())
	}
	return s.checkGrants(ctx, `SELECT format('GRANT SELECT ON %s TO %I', p, current_user) FROM unnest($1::text[]) p
		WHERE to_regclass(p) IS NOT NULL AND NOT has_table_privilege(to_regclass(p), 'SELECT')`, names)
}

// checkGrants returns an error with the GRANT statements that a query returns.
func (s *DB) checkGrants(ctx context.Context, query string, arg any) error {
	grants, err := connect.Values[string](ctx, s.Conn, query, arg)
	if len(grants) > 0 {
		return fmt.Errorf("the role of neighbours.target lacks rights in the shadow database: run there: %s", strings.Join(grants, "; "))
	}
	return err
}

// CheckExtensions rejects a shadow database that lacks extensions or has them in other schemas.
func (s *DB) CheckExtensions(ctx context.Context, needs []source.Extension) error {
	var faults []error
	for _, e := range needs {
		schema, err := connect.Value[string](ctx, s.Conn, "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = $1", e.Name)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			faults = append(faults, fmt.Errorf("extension %s is missing in the shadow database: run there, as an administrator: CREATE SCHEMA IF NOT EXISTS %s; CREATE EXTENSION %s SCHEMA %s", e.Name, ident.Quote(e.Schema), ident.Quote(e.Name), ident.Quote(e.Schema)))
		case err != nil:
			return err
		case schema != e.Schema && e.Schema != "pg_catalog":
			faults = append(faults, fmt.Errorf("extension %s is in schema %s of the shadow database and in %s at the source, where definitions name it: ALTER EXTENSION %s SET SCHEMA %s", e.Name, schema, e.Schema, ident.Quote(e.Name), ident.Quote(e.Schema)))
		}
	}
	return errors.Join(faults...)
}
