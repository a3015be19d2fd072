package build

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/replay/neighbours/internal/ddl"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
)

// makeViews creates functions and views, which may depend on each other in any order: a definition that fails because
// another is missing is tried again as long as new ones succeed. What is then left cannot be created in the shadow
// database: D0 and the neighbours are built without it, unless the configuration lists it.
func (b *Builder) makeViews(ctx context.Context, tx pgx.Tx, world int) error {
	todo, err := b.functionsFor(world)
	if err != nil {
		return err
	}
	todo = append(todo, b.d.Views...)
	for len(todo) > 0 {
		var left []ddl.Making
		var faults []error
		for _, s := range todo {
			err := pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error { return b.run(ctx, inner, world, []ddl.Statement{s.Statement}) })
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
			if err := b.without0(left, faults); err != nil {
				return err
			}
			if b.epoch == 0 { // a dry run
				break
			}
			_, err := tx.Exec(ctx, "UPDATE "+b.Record("neighbour_set")+" SET tables = $1 WHERE epoch = $2", b.tables(), b.epoch)
			if err != nil {
				return err
			}
			break
		}
		todo = left
	}
	return b.reads(ctx, tx, world)
}

// tables returns the names of the relations of the set.
func (b *Builder) tables() []string {
	var out []string
	for _, r := range b.Model.Relations {
		out = append(out, r.Copy)
	}
	return out
}

// functionsFor returns the functions with the names of a world.
func (b *Builder) functionsFor(world int) ([]ddl.Making, error) {
	var out []ddl.Making
	for i, f := range b.Model.Functions {
		definition := f.Definition
		if f.Body != "" {
			// A body is text that is resolved when it runs, when the set has its final name.
			body, reads, err := ddl.RenameBody(f, b.Model, b.Options, b.final(world))
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
func (b *Builder) without0(left []ddl.Making, faults []error) error {
	gone, functions := map[*source.Relation]bool{}, map[int]bool{}
	for i, s := range left {
		text := strings.ReplaceAll(faults[i].Error(), b.stage(0), b.final(0))
		if s.View == nil {
			functions[s.Function] = true
			b.Options.Notef("function %s is not copied: %s", b.Model.Functions[s.Function].Table, text)
			continue
		}
		if slices.Contains(b.Options.Protected, s.View.Table) || strings.HasPrefix(s.About, "index ") { // the view itself exists
			return faults[i]
		}
		if !gone[s.View] {
			b.Options.Notef("view %s is not copied: %s", s.View.Table, text)
		}
		gone[s.View] = true
	}
	var kept []source.Function
	for i, f := range b.Model.Functions {
		if !functions[i] {
			kept = append(kept, f)
		}
	}
	b.Model.Functions = kept
	b.Model.Relations = slices.DeleteFunc(b.Model.Relations, func(r *source.Relation) bool { return gone[r] })
	b.d.Views = slices.DeleteFunc(b.d.Views, func(s ddl.Making) bool { return gone[s.View] })
	return nil
}
