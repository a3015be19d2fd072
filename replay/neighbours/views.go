package neighbours

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// makeViews creates functions and views, which may depend on each other in any order: a definition that fails because
// another is missing is tried again as long as new ones succeed. What is then left cannot be created in the shadow
// database: D0 and the neighbours are built without it, unless the configuration lists it.
func (b *builder) makeViews(ctx context.Context, tx pgx.Tx, world int) error {
	todo, err := b.functionsFor(world)
	if err != nil {
		return err
	}
	todo = append(todo, b.d.views...)
	for len(todo) > 0 {
		var left []making
		var faults []error
		for _, s := range todo {
			err := pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error { return b.run(ctx, inner, world, []statement{s.statement}) })
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
			_, err := tx.Exec(ctx, "UPDATE "+b.record("neighbour_set")+" SET tables = $1 WHERE epoch = $2", b.tables(), b.epoch)
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
func (b *builder) tables() []string {
	var out []string
	for _, r := range b.m.relations {
		out = append(out, r.copy)
	}
	return out
}

// functionsFor returns the functions with the names of a world.
func (b *builder) functionsFor(world int) ([]making, error) {
	var out []making
	for i, f := range b.m.functions {
		definition := f.definition
		if f.body != "" {
			// A body is text that is resolved when it runs, when the set has its final name.
			body, reads, err := renameBody(f, b.m, b.o, b.final(world))
			if err != nil {
				return nil, err
			}
			at := strings.LastIndex(definition, f.body)
			if at < 0 {
				return nil, fmt.Errorf("function %s: its definition does not hold its body", f.Table)
			}
			if reads {
				definition = definition[:at] + body + definition[at+len(f.body):]
			}
		}
		out = append(out, making{statement: statement{about: "function " + f.Name, sql: definition, defined: "FUNCTION"}, function: i})
	}
	return out, nil
}

// ofDefinition reports whether an error is caused by the definition itself or by something that the shadow database lacks:
// a syntax or access error (class 42, except missing privileges), an unsupported feature, or the data that a materialised
// view is computed from.
func ofDefinition(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code == "42501" || len(e.Code) != 5 {
		return false
	}
	return slices.Contains([]string{"42", "0A", "22", "P0", "3F"}, e.Code[:2])
}

// without0 removes definitions that cannot be created from the set, with a note, unless they are listed. Objects created
// while these were tried do not depend on them.
func (b *builder) without0(left []making, faults []error) error {
	gone, functions := map[*relation]bool{}, map[int]bool{}
	for i, s := range left {
		text := strings.ReplaceAll(faults[i].Error(), b.stage(0), b.final(0))
		if s.view == nil {
			functions[s.function] = true
			b.o.note("function %s is left out: %s", b.m.functions[s.function].Table, text)
			continue
		}
		if slices.Contains(b.o.Protected, s.view.Table) || strings.HasPrefix(s.about, "index ") { // the view itself exists
			return faults[i]
		}
		if !gone[s.view] {
			b.o.note("view %s is left out: %s", s.view.Table, text)
		}
		gone[s.view] = true
	}
	var kept []function
	for i, f := range b.m.functions {
		if !functions[i] {
			kept = append(kept, f)
		}
	}
	b.m.functions = kept
	b.m.relations = slices.DeleteFunc(b.m.relations, func(r *relation) bool { return gone[r] })
	b.d.views = slices.DeleteFunc(b.d.views, func(s making) bool { return gone[s.view] })
	return nil
}
