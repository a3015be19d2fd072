package preflight

import (
	"context"
	"fmt"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/catalog/read"
	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// relationsQuery returns the properties of relations that matter to a role: schema, name, kind, columns in physical
// order, whether it may use the schema and read the relation, whether row security hides rows from it, and whether it
// is on.
const relationsQuery = `SELECT n.nspname, c.relname, c.relkind::text,
	coalesce((SELECT pg_catalog.string_agg(pg_catalog.format('%s %s', a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY a.attnum)
		FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), ''),
	pg_catalog.has_schema_privilege(n.oid, 'USAGE'), pg_catalog.has_table_privilege(c.oid, 'SELECT'),
	pg_catalog.row_security_active(c.oid), c.relrowsecurity
	FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname = ANY ($1) ORDER BY 1, 2`

// relation is one row of relationsQuery.
type relation struct {
	ident.Table
	Kind                                   catalog.RelationKind
	Columns                                string
	Usage, Readable, Filtered, RowSecurity bool
}

// relations reads the relations of schemas.
func (s *session) relations(ctx context.Context, schemas []string) (map[ident.Table]relation, error) {
	rows, err := connect.Structs[relation](ctx, s.conn, relationsQuery, schemas)
	found := map[ident.Table]relation{}
	for _, r := range rows {
		found[r.Table] = r
	}
	return found, err
}

// schemas checks that schemas exist and returns those that do.
func (s *session) schemas(ctx context.Context, name string, wanted []string, fix string) (there []string) {
	usage, err := read.Schemas(ctx, s.conn, wanted...)
	if err != nil {
		s.failed(name, err)
		return nil
	}
	for _, schema := range wanted {
		may, exists := usage[schema]
		switch {
		case !exists:
			s.add(name, schema, Fault, "the schema does not exist in database "+s.cfg.Database, fix)
			continue
		case !may:
			s.add(name, schema, Fault, "the role may not use the schema", s.usageOf(schema))
		default:
			s.add(name, schema, OK, "exists", "")
		}
		there = append(there, schema)
	}
	return there
}

// usageOf returns the statement that lets the role use a schema.
func (s *session) usageOf(schema string) string {
	return fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", ident.Quote(schema), ident.Quote(s.cfg.User))
}

// readGrants returns the statements that let the role read a relation.
func (s *session) readGrants(r relation) string {
	var missing []string
	if !r.Usage {
		missing = append(missing, s.usageOf(r.Schema))
	}
	if !r.Readable {
		missing = append(missing, fmt.Sprintf("GRANT SELECT ON TABLE %s TO %s", r.SQL(), ident.Quote(s.cfg.User)))
	}
	return strings.Join(missing, "\n")
}

// copies checks that every protected table has a readable copy with the same columns in every world.
func (s *session) copies(ctx context.Context, o *Options) {
	worlds := append([]string{o.D0}, o.D1...)
	there := s.schemas(ctx, "copies", worlds, "run `dpwatch neighbours create`, or correct shadow.d0 and shadow.d1")
	found, err := s.relations(ctx, worlds)
	if err != nil {
		s.failed("copies", err)
		return
	}
	s.types(ctx, worlds)
	for _, schema := range there {
		faults := len(s.checks)
		for _, protected := range o.Protected {
			s.copy(o, found, ident.Table{Schema: schema, Name: ident.ParseTable(protected).Name})
		}
		if len(s.checks) == faults {
			s.add("copies", schema, OK, fmt.Sprintf("%d tables, alike in %s and readable", len(o.Protected), o.D0), "")
		}
	}
}

// types checks that the role may use the schemas of the types of copies: a query that names such a type fails
// otherwise.
func (s *session) types(ctx context.Context, worlds []string) {
	found, err := connect.Structs[ident.Table](ctx, s.conn, `SELECT DISTINCT n.nspname, coalesce(e.typname, t.typname) FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
		JOIN pg_catalog.pg_namespace w ON w.oid = c.relnamespace JOIN pg_catalog.pg_type t ON t.oid = a.atttypid LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
		JOIN pg_catalog.pg_namespace n ON n.oid = coalesce(e.typnamespace, t.typnamespace)
		WHERE w.nspname = ANY ($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 AND NOT a.attisdropped AND NOT pg_catalog.has_schema_privilege(n.oid, 'USAGE') ORDER BY 1, 2`, worlds)
	if err != nil {
		s.failed("copies", err)
	}
	for _, t := range found {
		s.add("copies", "type "+t.String(), Warning, "the role may not use its schema: replays of queries that name the type fail", s.usageOf(t.Schema))
	}
}

// copy checks one table of one world.
func (s *session) copy(o *Options, found map[ident.Table]relation, table ident.Table) {
	name := table.String()
	r, ok := found[table]
	if !ok {
		s.add("copies", name, Fault, "does not exist", "run `dpwatch neighbours create --replace`, or create the copy; correct privacy.protected if the table has another name")
		return
	}
	if d0, ok := found[ident.Table{Schema: o.D0, Name: table.Name}]; ok && d0.Columns != r.Columns {
		s.add("copies", name, Fault, fmt.Sprintf("its columns differ from %s (%s against %s)", d0.Table, r.Columns, d0.Columns), "create the copies again, with the same columns in the same order")
	}
	if !r.Readable {
		s.add("copies", name, Fault, "the role may not read it", fmt.Sprintf("GRANT SELECT ON ALL TABLES IN SCHEMA %s TO %s", ident.Quote(table.Schema), ident.Quote(s.cfg.User)))
	}
	s.rowSecurity("copies", r)
	if r.Kind == catalog.KindForeign {
		s.add("copies", name, Warning, "a foreign table: replays read another server through it", "make a local copy")
	}
}

// rowSecurity reports that a role sees only some rows of a table.
func (s *session) rowSecurity(name string, r relation) {
	fix := fmt.Sprintf("ALTER TABLE %s DISABLE ROW LEVEL SECURITY", r.SQL())
	switch {
	case r.Filtered:
		s.add(name, r.String(), Fault, "row security is on, and filters what the role reads: replays would not see all rows", fix)
	case r.RowSecurity:
		s.add(name, r.String(), Warning, "row security is on; this role bypasses it", fix)
	}
}

// public checks that tables without personal data exist under their own names.
func (s *session) public(ctx context.Context, o *Options) {
	found, err := s.relations(ctx, schemasOf(o.Public))
	if err != nil {
		s.failed("privacy.public", err)
		return
	}
	for _, name := range o.Public {
		table := ident.ParseTable(name)
		r, ok := found[table]
		switch {
		case !ok:
			s.add("privacy.public", name, Fault, "does not exist in the shadow database, and replays read public tables in place", "create the table there with the same rows: "+table.CopyCommand()+"; or list it in privacy.protected")
			continue
		case !r.Usage || !r.Readable:
			s.add("privacy.public", name, Fault, "the role may not read it", s.readGrants(r))
		default:
			s.add("privacy.public", name, OK, "exists and is readable", "")
		}
		s.rowSecurity("privacy.public", r)
	}
}
