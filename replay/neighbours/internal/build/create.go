// Package build creates sets of copies: the plan with all faults that are known in advance, D0 with the rows of the
// source, and the neighbours D1.
package build

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/shadow"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/units"
	"github.com/dpwatch/dpwatch/replay/neighbours/owners"
)

// ErrTooLarge reports that the source's tables are larger than Options.MostBytes.
var ErrTooLarge = errors.New("the tables are too large to make copies anew")

// prepare checks what can be checked in advance, removes leftovers, and returns a Builder, to be closed.
func prepare(ctx context.Context, o *spec.Options, refresh bool) (b *Builder, err error) {
	o.ReportProgress("plan", 0, 0)
	p := newPlanner(o)
	s := p.inspect(ctx, refresh)
	if s == nil {
		return nil, p.err(ctx)
	}
	defer func() {
		if err != nil {
			s.Close(ctx)
		}
	}()
	o.Guard = p.o.Guard // none if the tables are too large for one
	s.Options = o       // further notes go to the plan
	there, err := s.Exists(ctx)
	if err == nil && there && len(p.plan.Faults) == 0 { // types left by a killed command may differ from the source's present ones
		err = s.RemoveLeftovers(ctx)
	}
	if err != nil {
		return nil, s.Explain(err)
	}
	if most := o.MostBytes; most > 0 && p.b != nil && p.b.Model.Bytes() > most {
		return nil, ErrTooLarge
	}
	p.dryRun(ctx, s)
	if err := p.err(ctx); err != nil {
		return nil, err
	}
	if !there {
		if err := s.MakeRecords(ctx); err != nil {
			return nil, s.Explain(err)
		}
	}
	current, err := s.Current(ctx)
	if err != nil && !errors.Is(err, shadow.ErrNoSet) {
		return nil, err
	}
	return &Builder{DB: s, Options: o, current: current, found: p.found}, nil
}

// Create creates a set, or replaces the current one: see neighbours.Create and neighbours.Refresh.
func Create(ctx context.Context, o spec.Options, refresh bool) (shadow.Set, error) {
	b, err := prepare(ctx, &o, refresh)
	if err != nil {
		return shadow.Set{}, err
	}
	defer b.Close(ctx)
	if err = b.makeBase(ctx); err == nil {
		err = b.makeNeighbours(ctx)
	}
	var accounts []shadow.Account
	if err == nil {
		accounts, err = b.account(ctx)
	}
	if err != nil {
		return shadow.Set{}, b.undo(ctx, b.Explain(err))
	}
	b.progress.report("put in place")
	if err := b.swap(ctx, b.current, accounts); err != nil {
		return shadow.Set{}, b.undo(ctx, b.Explain(err))
	}
	// From here on the new set is current; the old one's rows are no longer needed.
	b.progress.report("clean up")
	if err := b.RemoveLeftovers(ctx); err != nil {
		o.Notef("the new set is current, but the rows of the previous set could not be removed: %v; the next command removes them", err)
	}
	return b.DB.Current(ctx)
}

// Builder builds one set under staging names.
type Builder struct {
	*shadow.DB
	Options *spec.Options
	Model   *source.Model
	current shadow.Set    // the set to replace; zero = none
	found   *owners.Found // columns that name units; nil = not searched
	g       *source.Graph
	units   []units.Chosen
	part    string // table of the rows of D0 that copies are made of; "" = all: see Part

	// Plan sets the following.
	method   spec.Method
	staging  *staging
	objects  *objects
	progress *progress
}

// makeBase makes D0 and chooses the units.
func (b *Builder) makeBase(ctx context.Context) error {
	src, err := source.Open(ctx, b.Options)
	if err != nil {
		return err
	}
	defer src.Close(ctx)
	b.Model = src.Model
	if b.current.Epoch != 0 && b.Options.Note != nil {
		if err := b.noteStale(ctx, src.Tx, b.current); err != nil {
			return err
		}
	}
	if err := b.noteCollation(ctx, src.Tx); err != nil {
		return err
	}
	if b.g, err = source.NewGraph(b.Model, b.Options); err != nil {
		return err
	}
	if err := source.CheckMeasures(b.Model, b.Options); err != nil {
		return err
	}
	if err := b.Plan(); err != nil {
		return err
	}
	if b.staging.epoch, err = b.Begin(ctx, b.Model.Database, b.method, b.objects.tables()); err != nil {
		return err
	}
	types, err := source.ReadTypes(ctx, src.Conn, b.Model.Types, b.Model.Collations)
	if err != nil {
		return fmt.Errorf("read the source's types: %w", src.Explain(err))
	}
	err = pgx.BeginFunc(ctx, b.Conn, func(tx pgx.Tx) error {
		m := typeMaker{b.DB, b.Options}
		return m.makeTypes(ctx, tx, types, m.recorded(ctx, tx, b.staging.epoch))
	})
	if err != nil {
		return err
	}
	if err := b.makeD0(ctx, src); err != nil {
		return fmt.Errorf("copy the source into d0: %w", err)
	}
	src.Close(ctx) // its snapshot blocks vacuum at the source
	if err := b.analyze(ctx, 0); err != nil {
		return err
	}
	if _, err := b.Conn.Exec(ctx, "CREATE SCHEMA "+ident.Quote(b.staging.work())); err != nil {
		return err
	}
	b.progress.report("choose units")
	w := &units.Ownership{Graph: b.g, Conn: b.Conn, World: b.staging.stage(0), Work: b.staging.work(), Acts: b.Options.Relation == spec.Remove}
	if err := w.Create(ctx, "UNLOGGED"); err != nil {
		return err
	}
	b.units, err = units.Choose(ctx, w, b.Options)
	return err
}

// makeNeighbours builds the D1 schemas, the twin and the guard, several at a time.
func (b *Builder) makeNeighbours(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, b.Options.Workers))
	for i := range len(b.Options.Schemas()) - 1 {
		g.Go(func() error {
			var unit *units.Chosen
			if i < len(b.units) {
				unit = &b.units[i]
			}
			if err := b.makeD1(ctx, i+1, unit); err != nil {
				return err
			}
			return b.analyze(ctx, i+1)
		})
	}
	return g.Wait()
}

// undo removes what the build created, even if ctx is done, and returns fault.
func (b *Builder) undo(ctx context.Context, fault error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	s := b.DB
	if s.Conn.IsClosed() { // the fault, or the end of ctx, closed the session
		fresh, err := shadow.Open(ctx, b.Options, true)
		if err != nil {
			return fmt.Errorf("%w (the objects created before it could not be removed: %w; the next command removes them)", fault, err)
		}
		defer fresh.Close(ctx)
		s = fresh
	}
	if err := s.RemoveLeftovers(ctx); err != nil {
		return fmt.Errorf("%w (the objects created before it could not be removed: %w; the next command removes them)", fault, err)
	}
	return fault
}

// swap replaces the old set by the new one. Renaming a schema does not lock its objects: running replays end on the
// copies with which they began.
func (b *Builder) swap(ctx context.Context, current shadow.Set, accounts []shadow.Account) error {
	tx, err := b.Conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // after Commit there is nothing to undo
	run := func(sql string, args ...any) {
		if err == nil {
			_, err = tx.Exec(ctx, sql, args...)
		}
	}
	if current.Epoch != 0 {
		err = b.Retire(ctx, tx, current)
	}
	for i := range b.Options.Schemas() {
		run(fmt.Sprintf("ALTER SCHEMA %s RENAME TO %s", ident.Quote(b.staging.stage(i)), ident.Quote(b.staging.final(i))))
	}
	for i, u := range b.units {
		run("INSERT INTO "+b.Record("neighbour_unit")+" (epoch, schema, key, why, rows, account) VALUES ($1, $2, $3, $4, $5, $6::jsonb)",
			b.staging.epoch, b.staging.final(i+1), u.Key, u.Why, u.Rows, accounts[i].JSON())
	}
	run("UPDATE "+b.Record("neighbour_set")+" SET state = 'current', made = clock_timestamp() WHERE epoch = $1", b.staging.epoch)
	if err == nil {
		err = b.Grant(ctx, tx, b.Options.Schemas())
	}
	if err != nil {
		return fmt.Errorf("put the new set in place: %w", err)
	}
	return tx.Commit(ctx)
}
