package build

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
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/shadow"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// typeMaker creates types in the shadow database.
type typeMaker struct {
	db      *shadow.DB
	options *spec.Options
}

// makeTypes creates the source's types that the shadow database lacks, under their own names: queries name them
// ('x'::public.mood), all worlds must share them, and they hold no rows. made is called for each type created, in tx.
// The error lists every type that cannot be created.
func (m *typeMaker) makeTypes(ctx context.Context, tx pgx.Tx, wanted []source.TypeDefinition, made func(kind, name string) error) error {
	if _, err := tx.Exec(ctx, "SET LOCAL search_path TO pg_catalog"); err != nil { // prints definitions with qualified names
		return err
	}
	var faults []error
	for _, t := range wanted {
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return m.makeType(ctx, tx, t, made) })
		if err != nil {
			faults = append(faults, m.db.Explain(err))
		}
	}
	return errors.Join(faults...)
}

func (m *typeMaker) makeType(ctx context.Context, tx pgx.Tx, t source.TypeDefinition, made func(kind, name string) error) error {
	name := ident.Quote(t.Schema, t.Name)
	find := "SELECT to_regtype($1)::oid"
	if t.Kind == "COLLATION" {
		find = "SELECT to_regcollation($1)::oid"
	}
	oid, err := connect.Value[*uint32](ctx, tx, find, name)
	if err != nil {
		return err
	}
	switch {
	case oid != nil && t.Kind == "COLLATION": // servers spell locales differently
		return nil
	case oid != nil:
		return sameType(ctx, tx, t, *oid)
	case t.SQL == "":
		return fmt.Errorf("type %s.%s is neither enum, domain, composite nor range: create it in the shadow database first", t.Schema, t.Name)
	}
	there, err := read.Schemas(ctx, tx, t.Schema)
	if _, ok := there[t.Schema]; err == nil && !ok {
		if err = connect.Run(ctx, tx, "CREATE SCHEMA "+ident.Quote(t.Schema)); err == nil {
			err = made("SCHEMA", ident.Quote(t.Schema))
		}
	}
	if err != nil {
		return err
	}
	if err := connect.Run(ctx, tx, t.SQL); err != nil {
		return fmt.Errorf("%s %s.%s: %w", strings.ToLower(t.Kind), t.Schema, t.Name, err)
	}
	for _, role := range m.options.Grant {
		if err := connect.Run(ctx, tx, "GRANT USAGE ON SCHEMA "+ident.Quote(t.Schema)+" TO "+ident.Quote(role)); err != nil {
			return err
		}
	}
	return made(t.Kind, name)
}

// recorded returns a function that records the types and schemas created for a set, in the same transaction.
func (m *typeMaker) recorded(ctx context.Context, tx pgx.Tx, epoch int64) func(kind, name string) error {
	number := 0
	return func(kind, name string) error {
		number++
		_, err := tx.Exec(ctx, "INSERT INTO "+m.db.Record("neighbour_object")+" VALUES ($1, $2, $3, $4)", epoch, number, kind, name)
		return err
	}
}

// sameType rejects a type of the shadow database that differs from the source's.
func sameType(ctx context.Context, tx pgx.Tx, want source.TypeDefinition, oid uint32) error {
	got, err := source.ReadTypes(ctx, tx.Conn(), []uint32{oid}, nil)
	if err != nil {
		return err
	}
	same := slices.ContainsFunc(got, func(t source.TypeDefinition) bool { return t == want })
	if !same && want.SQL != "" {
		return fmt.Errorf("type %s.%s of the shadow database differs from the source's: if dpwatch created it, run `dpwatch neighbours drop` and create the set again; otherwise give it the source's definition", want.Schema, want.Name)
	}
	return nil
}
