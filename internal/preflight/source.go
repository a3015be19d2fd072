package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Catalog checks the engine's database, whose catalog is read, and that the copies match its present tables.
func Catalog(o Options) Task {
	return func(ctx context.Context) []Check {
		if o.Catalog == "" {
			return []Check{{
				Name: "privacy.catalog", Object: "the engine's database", Status: Unchecked,
				Message: "not configured: whether protected tables, views and functions exist in production under their names is not known", Fix: "set privacy.catalog",
			}}
		}
		ctx, cancel := context.WithTimeout(ctx, queryTimeout)
		defer cancel()
		s := open(ctx, "privacy.catalog", o.Catalog, o.ConnectTimeout)
		if s.conn == nil {
			return s.checks
		}
		defer s.close()
		s.listed(ctx, "privacy.protected", o.Protected)
		s.listed(ctx, "privacy.public", o.Public)
		var names []string
		for _, f := range o.Functions {
			names = append(names, f.Name)
		}
		s.declared(ctx, names)
		s.compare(ctx, &o)
		return s.checks
	}
}

// listed checks that tables of the configuration exist.
func (s *session) listed(ctx context.Context, key string, names []string) {
	found, err := s.relations(ctx, schemasOf(names))
	if err != nil {
		s.failed(key, err)
		return
	}
	for _, name := range names {
		if _, ok := found[ident.ParseTable(name)]; !ok {
			s.add(key, name, Fault, "does not exist in the engine's database "+s.cfg.Database, "correct the name: schema.table, as in the catalog")
		}
	}
}

// declared checks that DP functions exist in the engine's database.
func (s *session) declared(ctx context.Context, names []string) {
	all, err := s.allFunctions(ctx, names)
	if err != nil {
		s.failed("claims.functions", err)
		return
	}
	for _, name := range names {
		bare := ident.Bare(name)
		if !slices.ContainsFunc(all, func(f function) bool { return f.Name == bare && (bare == name || f.Schema+"."+f.Name == name) }) {
			s.add("claims.functions", name, Fault, "does not exist in the engine's database "+s.cfg.Database+": no query can call it", "correct the name")
		}
	}
}

// compare checks that D0 has the columns of the engine's tables. A missing shadow database is reported elsewhere.
func (s *session) compare(ctx context.Context, o *Options) {
	shadow := open(ctx, "shadow.dsn", o.Shadow, o.ConnectTimeout)
	if shadow.conn == nil {
		s.add("copies", "columns of the engine's tables", Unchecked, "the shadow database cannot be reached", "")
		return
	}
	defer shadow.close()
	source, err := s.relations(ctx, schemasOf(o.Protected))
	if err != nil {
		s.failed("copies", err)
		return
	}
	copies, err := shadow.relations(ctx, []string{o.D0})
	if err != nil {
		s.failed("copies", err)
		return
	}
	for _, name := range o.Protected {
		table := ident.ParseTable(name)
		a, inSource := source[table]
		b, inShadow := copies[ident.Table{Schema: o.D0, Name: table.Name}]
		if inSource && inShadow && a.Columns != b.Columns {
			s.add("copies", b.String(), Fault, fmt.Sprintf("its columns differ from those of %s in the engine's database (%s against %s)", name, b.Columns, a.Columns),
				"run `dpwatch neighbours create --replace`, or create the copies again")
		}
	}
}

func schemasOf(names []string) []string {
	var schemas []string
	for _, name := range names {
		schemas = append(schemas, ident.ParseTable(name).Schema)
	}
	return schemas
}

// rolePaths returns the search_path settings of roles, databases and the server at the start of clients' sessions, as
// one text; "" if they are not known.
func rolePaths(ctx context.Context, o *Options) string {
	if o.Catalog == "" {
		return ""
	}
	s := open(ctx, "privacy.catalog", o.Catalog, o.ConnectTimeout)
	if s.conn == nil {
		return "" // Catalog reports it
	}
	defer s.close()
	settings, err := connect.Values[string](ctx, s.conn, `SELECT setting FROM pg_catalog.pg_db_role_setting, pg_catalog.unnest(setconfig) setting
		WHERE setting LIKE 'search_path=%' AND setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()))
		UNION ALL SELECT reset_val FROM pg_catalog.pg_settings WHERE name = 'search_path'`)
	if err != nil {
		return ""
	}
	return strings.Join(settings, "\n")
}
