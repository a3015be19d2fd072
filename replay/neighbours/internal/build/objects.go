package build

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/ddl"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/shadow"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// objects creates the objects of a world, all but the rows.
type objects struct {
	db       *shadow.DB
	options  *spec.Options
	model    *source.Model
	method   spec.Method
	d        *ddl.Definitions
	names    *ddl.Names
	staging  *staging
	progress *progress
}

// start creates the schema and the objects that tables need.
func (o *objects) start(ctx context.Context, tx pgx.Tx, world int) error {
	if _, err := tx.Exec(ctx, "CREATE SCHEMA "+ident.Quote(o.staging.stage(world))); err != nil {
		return err
	}
	return o.run(ctx, tx, world, o.d.Sequences)
}

// finish creates the objects that come after the rows.
func (o *objects) finish(ctx context.Context, tx pgx.Tx, world int) error {
	o.progress.report("index " + o.staging.final(world))
	for _, statements := range [][]ddl.Statement{o.d.Indexes, o.d.Keys, o.d.Filled} {
		if err := o.run(ctx, tx, world, statements); err != nil {
			return err
		}
	}
	return o.makeViews(ctx, tx, world)
}

// run executes definitions with the names of a world.
func (o *objects) run(ctx context.Context, tx pgx.Tx, world int, statements []ddl.Statement) error {
	for _, s := range statements {
		sql, err := o.names.Rename(s.SQL, o.staging.stage(world), s.Defined)
		if err != nil {
			return fmt.Errorf("%s: %w", s.About, err)
		}
		if _, err := tx.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", s.About, err)
		}
	}
	return nil
}

// reads rejects a world that reads anything except itself, D0 (if it consists of views), and public tables.
func (o *objects) reads(ctx context.Context, tx pgx.Tx, world int) error {
	public := make([]string, len(o.options.Public))
	for i, t := range o.options.Public {
		public[i] = t.SQL()
	}
	allowed := []string{o.staging.stage(world)}
	if world > 0 && o.method == spec.View {
		allowed = append(allowed, o.staging.stage(0))
	}
	var what string
	err := tx.QueryRow(ctx, `SELECT format('%I reads %I.%I', o.name, n.nspname, c.relname) FROM (
		SELECT 'pg_rewrite'::regclass AS classid, w.oid, v.relname AS name FROM pg_rewrite w JOIN pg_class v ON v.oid = w.ev_class
			WHERE v.relnamespace = to_regnamespace($1)
		UNION ALL SELECT 'pg_attrdef'::regclass, x.oid, v.relname FROM pg_attrdef x JOIN pg_class v ON v.oid = x.adrelid WHERE v.relnamespace = to_regnamespace($1)
		UNION ALL SELECT 'pg_constraint'::regclass, k.oid, k.conname FROM pg_constraint k WHERE k.connamespace = to_regnamespace($1)
		UNION ALL SELECT 'pg_proc'::regclass, f.oid, f.proname FROM pg_proc f WHERE f.pronamespace = to_regnamespace($1)) o
		JOIN pg_depend d ON d.classid = o.classid AND d.objid = o.oid AND d.refclassid = 'pg_class'::regclass
		JOIN pg_class c ON c.oid = d.refobjid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind <> 'c' AND n.nspname <> ALL($2::text[]) AND n.nspname NOT IN ('pg_catalog', 'information_schema')
		AND c.oid NOT IN (SELECT to_regclass(p) FROM unnest($3::text[]) p WHERE to_regclass(p) IS NOT NULL)
		UNION ALL SELECT format('materialized view %I calls function %I, which reads tables when it runs: write its query in the view', v.relname, f.proname)
		FROM pg_class v JOIN pg_rewrite w ON w.ev_class = v.oid JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
			AND d.refclassid = 'pg_proc'::regclass JOIN pg_proc f ON f.oid = d.refobjid
		WHERE v.relkind = 'm' AND v.relnamespace = to_regnamespace($1) AND f.pronamespace = v.relnamespace AND f.prosqlbody IS NULL
		LIMIT 1`, ident.Quote(o.staging.stage(world)), allowed, public).Scan(&what)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("a copy would depend on other schemas: %s", what)
}

// makeViews creates functions and views, which may depend on each other in any order: a definition that fails because
// another is missing is tried again as long as new ones succeed. What is then left cannot be created in the shadow
// database: D0 and the neighbours are built without it, unless the configuration lists it.
func (o *objects) makeViews(ctx context.Context, tx pgx.Tx, world int) error {
	todo, err := o.functionsFor(o.staging.final(world))
	if err != nil {
		return err
	}
	todo = append(todo, o.d.Views...)
	for len(todo) > 0 {
		var left []ddl.Making
		var faults []error
		for _, s := range todo {
			err := pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error { return o.run(ctx, inner, world, []ddl.Statement{s.Statement}) })
			if err == nil {
				continue
			}
			if !ofDefinition(err) {
				return err
			}
			left, faults = append(left, s), append(faults, err)
		}
		if len(left) == len(todo) {
			if world > 0 {
				return faults[0]
			}
			if err := o.without0(left, faults); err != nil {
				return err
			}
			if o.staging.epoch == 0 { // a dry run
				break
			}
			_, err := tx.Exec(ctx, "UPDATE "+o.db.Record("neighbour_set")+" SET tables = $1 WHERE epoch = $2", o.tables(), o.staging.epoch)
			if err != nil {
				return err
			}
			break
		}
		todo = left
	}
	return o.reads(ctx, tx, world)
}

// tables returns the names of the relations of the set.
func (o *objects) tables() []string {
	var out []string
	for _, r := range o.model.Relations {
		out = append(out, r.Copy)
	}
	return out
}

// functionsFor returns the functions, whose bodies name the relations of a schema.
func (o *objects) functionsFor(schema string) ([]ddl.Making, error) {
	var out []ddl.Making
	for i, f := range o.model.Functions {
		definition := f.Definition
		if f.Body != "" {
			// A body is text that is resolved when it runs, when the set has its final name.
			body, reads, err := ddl.RenameBody(f, o.model, o.options, schema)
			if err != nil {
				return nil, err
			}
			at := strings.LastIndex(definition, f.Body)
			if at < 0 {
				return nil, fmt.Errorf("function %s: its definition does not hold its body", f.Table)
			}
			if reads {
				definition = definition[:at] + body + definition[at+len(f.Body):]
			}
		}
		out = append(out, ddl.Making{Statement: ddl.Statement{About: "function " + f.Name, SQL: definition, Defined: "FUNCTION"}, Function: i})
	}
	return out, nil
}

// ofDefinition reports whether an error is caused by the definition itself or by something that the shadow database
// lacks: a syntax or access error (class 42, except missing privileges), an unsupported feature, or the data that a
// materialised view is computed from.
func ofDefinition(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code == "42501" || len(e.Code) != 5 {
		return false
	}
	return slices.Contains([]string{"42", "0A", "22", "P0", "3F"}, e.Code[:2])
}

// without0 removes definitions that cannot be created from the set, with a note, unless they are listed. Objects
// created while these were tried do not depend on them.
func (o *objects) without0(left []ddl.Making, faults []error) error {
	gone, functions := map[*source.Relation]bool{}, map[int]bool{}
	for i, s := range left {
		text := strings.ReplaceAll(faults[i].Error(), o.staging.stage(0), o.staging.final(0))
		if s.View == nil {
			functions[s.Function] = true
			o.options.Notef("function %s is not copied: %s", o.model.Functions[s.Function].Table, text)
			continue
		}
		if slices.Contains(o.options.Protected, s.View.Table) || strings.HasPrefix(s.About, "index ") { // the view itself exists
			return faults[i]
		}
		if !gone[s.View] {
			o.options.Notef("view %s is not copied: %s", s.View.Table, text)
		}
		gone[s.View] = true
	}
	var kept []source.Function
	for i, f := range o.model.Functions {
		if !functions[i] {
			kept = append(kept, f)
		}
	}
	o.model.Functions = kept
	o.model.Relations = slices.DeleteFunc(o.model.Relations, func(r *source.Relation) bool { return gone[r] })
	o.d.Views = slices.DeleteFunc(o.d.Views, func(s ddl.Making) bool { return gone[s.View] })
	return nil
}
