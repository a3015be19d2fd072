package shadow

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
)

// CheckRoles rejects roles for Options.Grant that the server does not have, before anything is copied.
func (s *DB) CheckRoles(ctx context.Context) error {
	var faults []error
	for _, role := range s.Options.Grant {
		var there bool
		if err := s.Conn.QueryRow(ctx, "SELECT to_regrole($1) IS NOT NULL", ident.Quote(role)).Scan(&there); err != nil {
			return err
		}
		if !there {
			faults = append(faults, fmt.Errorf("role %s, which is to read the copies, does not exist in the shadow database: create it, or correct shadow.dsn or neighbours.grant", role))
		}
	}
	return errors.Join(faults...)
}

// CheckNames rejects existing schemas with the set's names, unless they belong to the current set.
func (s *DB) CheckNames(ctx context.Context, current Set) error {
	ours := map[string]bool{current.D0: true}
	for _, name := range current.D1 {
		ours[name] = true
	}
	var faults []error
	for _, name := range append([]string{s.Options.D0}, s.Options.D1...) {
		var there bool
		if err := s.Conn.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL", ident.Quote(name)).Scan(&there); err != nil {
			return err
		}
		if there && !ours[name] {
			faults = append(faults, fmt.Errorf("schema %s of the shadow database was not made by `dpwatch neighbours`: drop it, or give shadow.d0 and shadow.d1 other names", name))
		}
	}
	return errors.Join(faults...)
}

// CheckPublicRights returns the privileges that the owner of the copies lacks to read public tables in views.
func (s *DB) CheckPublicRights(ctx context.Context) (lacks, err error) {
	names := []string{}
	for _, t := range s.Options.Public {
		names = append(names, t.SQL())
	}
	grants, err := connect.Values[string](ctx, s.Conn, `SELECT format('GRANT SELECT ON %s TO %I', p, current_user) FROM unnest($1::text[]) p
		WHERE to_regclass(p) IS NOT NULL AND NOT has_table_privilege(to_regclass(p), 'SELECT')`, names)
	if len(grants) > 0 {
		lacks = fmt.Errorf("the role of neighbours.target lacks rights in the shadow database: run there: %s", strings.Join(grants, "; "))
	}
	return lacks, err
}

// CheckExtensions returns the fault of a shadow database that lacks extensions or has them in other schemas.
func (s *DB) CheckExtensions(ctx context.Context, needs []source.Extension) (lacks, err error) {
	var faults []error
	for _, e := range needs {
		var schema string
		err := s.Conn.QueryRow(ctx, "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = $1", e.Name).Scan(&schema)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			faults = append(faults, fmt.Errorf("extension %s is missing in the shadow database: run there, as an administrator: CREATE SCHEMA IF NOT EXISTS %s; CREATE EXTENSION %s SCHEMA %s", e.Name, ident.Quote(e.Schema), ident.Quote(e.Name), ident.Quote(e.Schema)))
		case err != nil:
			return nil, err
		case schema != e.Schema && e.Schema != "pg_catalog":
			faults = append(faults, fmt.Errorf("extension %s is in schema %s of the shadow database and in %s at the source, where definitions name it: ALTER EXTENSION %s SET SCHEMA %s", e.Name, schema, e.Schema, ident.Quote(e.Name), ident.Quote(e.Schema)))
		}
	}
	return errors.Join(faults...), nil
}
