package neighbours

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Create creates a set; there must be none. It reports the faults of MakePlan before anything is written. On any fault, and
// when ctx is done, it removes what it created. A killed process leaves records with which the next command removes the
// rest.
func Create(ctx context.Context, o Options) (Set, error) { return replaceSet(ctx, o, false) }

// Refresh creates a set beside the current one and replaces it in one transaction, under a new epoch. A fault before that
// leaves the current set unchanged.
func Refresh(ctx context.Context, o Options) (Set, error) { return replaceSet(ctx, o, true) }

func replaceSet(ctx context.Context, o Options, refresh bool) (Set, error) {
	o.progress("plan", 0, 0)
	p := newPlanner(&o)
	s := p.inspect(ctx, refresh)
	if s == nil {
		return Set{}, p.err(ctx)
	}
	defer s.close(ctx)
	s.o = &o // further notes go to the plan
	there, err := s.exists(ctx)
	if err == nil && there && len(p.plan.Faults) == 0 { // types left by a killed command may differ from the source's present ones
		err = s.leftovers(ctx)
	}
	if err != nil {
		return Set{}, explain(err)
	}
	p.dryRun(ctx, s)
	if err := p.err(ctx); err != nil {
		return Set{}, err
	}
	if !there {
		if err := s.makeRecords(ctx); err != nil {
			return Set{}, explain(err)
		}
	}
	current, err := s.current(ctx)
	if err != nil && !errors.Is(err, ErrNoSet) {
		return Set{}, err
	}
	b := &builder{shadow: s, o: &o, current: current}
	if err := b.build(ctx); err != nil {
		return Set{}, b.undo(ctx, explain(err))
	}
	o.progress("put in place", b.done.load(), b.total())
	if err := b.swap(ctx, current); err != nil {
		return Set{}, b.undo(ctx, explain(err))
	}
	// From here on the new set is current; the old one's rows are no longer needed.
	o.progress("clean up", b.done.load(), b.total())
	if err := s.leftovers(ctx); err != nil {
		o.note("the new set is in place, but the old one's rows could not be removed: %v; the next command removes them", err)
	}
	return s.current(ctx)
}

// namesFree rejects existing schemas with the set's names, unless they belong to the current set.
func (s *shadow) namesFree(ctx context.Context, current Set) error {
	ours := map[string]bool{current.D0: true}
	for _, name := range current.D1 {
		ours[name] = true
	}
	var faults []error
	for _, name := range append([]string{s.o.D0}, s.o.D1...) {
		var there bool
		if err := s.conn.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL", ident.Quote(name)).Scan(&there); err != nil {
			return err
		}
		if there && !ours[name] {
			faults = append(faults, fmt.Errorf("schema %s of the shadow database was not made by `dpwatch neighbours`: drop it, or give shadow.d0 and shadow.d1 other names", name))
		}
	}
	return errors.Join(faults...)
}

// builder builds one set under staging names.
type builder struct {
	*shadow
	o       *Options
	current Set   // the set to replace; zero = none
	epoch   int64 // 0 = a dry run, which has no record
	method  Method
	m       *model
	g       *graph
	d       *definitions
	names   *names
	units   []chosen
	rows    int64 // estimate of the rows of one world
	done    progressCount
}

// stage returns the staging name of world i, 0 = D0; final returns its final name.
func (b *builder) stage(i int) string { return fmt.Sprintf("%s%d_%d", stagePrefix, b.epoch, i) }

func (b *builder) final(i int) string {
	if i == 0 {
		return b.o.D0
	}
	return b.o.D1[i-1]
}

// work returns the staging name of the schema of work tables.
func (b *builder) work() string { return fmt.Sprintf("%s%d_work", stagePrefix, b.epoch) }

func (b *builder) build(ctx context.Context) error {
	src, err := openSource(ctx, b.o)
	if err != nil {
		return err
	}
	defer src.close(ctx)
	b.m = src.m
	if b.current.Epoch != 0 && b.o.Note != nil {
		if err := b.tellStale(ctx, src.tx, b.current); err != nil {
			return err
		}
	}
	if err := b.tellCollation(ctx, src.tx); err != nil {
		return err
	}
	if b.g, err = newGraph(b.m, b.o); err != nil {
		return err
	}
	if err := checkMeasures(b.m, b.o); err != nil {
		return err
	}
	if err := b.plan(); err != nil {
		return err
	}
	if b.epoch, err = b.begin(ctx, b.m.database, b.method, b.tables()); err != nil {
		return err
	}
	types, err := readTypes(ctx, src.conn, b.m.types, b.m.collations)
	if err != nil {
		return fmt.Errorf("read the source's types: %w", err)
	}
	err = pgx.BeginFunc(ctx, b.conn, func(tx pgx.Tx) error { return b.makeTypes(ctx, tx, types, b.recorded(ctx, tx, b.epoch)) })
	if err != nil {
		return err
	}
	if err := b.makeD0(ctx, src); err != nil {
		return fmt.Errorf("copy the source into d0: %w", err)
	}
	src.close(ctx) // its snapshot blocks vacuum at the source
	if err := b.analyze(ctx, 0); err != nil {
		return err
	}
	if _, err := b.conn.Exec(ctx, "CREATE SCHEMA "+ident.Quote(b.work())); err != nil {
		return err
	}
	b.o.progress("choose units", b.done.load(), b.total())
	w := &ownership{g: b.g, conn: b.conn, world: b.stage(0), work: b.work()}
	if err := w.create(ctx, "UNLOGGED"); err != nil {
		return err
	}
	if b.units, err = choose(ctx, w, b.o); err != nil {
		return err
	}
	return b.makeNeighbours(ctx)
}

// makeNeighbours builds the D1 schemas, several at a time.
func (b *builder) makeNeighbours(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, b.o.Workers))
	for i := range b.units {
		g.Go(func() error {
			if err := b.makeD1(ctx, i+1); err != nil {
				return fmt.Errorf("make neighbour %s: %w", b.final(i+1), err)
			}
			return b.analyze(ctx, i+1)
		})
	}
	return g.Wait()
}

// undo removes what the build created, even if ctx is done, and returns fault.
func (b *builder) undo(ctx context.Context, fault error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	s := b.shadow
	if s.conn.IsClosed() { // the fault, or the end of ctx, closed the session
		fresh, err := openShadow(ctx, b.o, true)
		if err != nil {
			return fmt.Errorf("%w (what was made could not be removed: %w; the next command removes it)", fault, err)
		}
		defer fresh.close(ctx)
		s = fresh
	}
	if err := s.leftovers(ctx); err != nil {
		return fmt.Errorf("%w (what was made could not be removed: %w; the next command removes it)", fault, err)
	}
	return fault
}

// retire marks a set as old: its schemas become leftovers.
func (s *shadow) retire(ctx context.Context, tx pgx.Tx, set Set) error {
	for i, name := range append([]string{set.D0}, set.D1...) {
		var there bool
		if err := tx.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL", ident.Quote(name)).Scan(&there); err != nil {
			return err
		}
		if !there { // it may have been dropped manually
			continue
		}
		if _, err := tx.Exec(ctx, fmt.Sprintf("ALTER SCHEMA %s RENAME TO %s%d_%d", ident.Quote(name), oldPrefix, set.Epoch, i)); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, "UPDATE "+s.record("neighbour_set")+" SET state = 'old' WHERE epoch = $1", set.Epoch)
	return err
}

// swap replaces the old set by the new one. Renaming a schema does not lock its objects: running replays end on the copies
// with which they began.
func (b *builder) swap(ctx context.Context, current Set) error {
	tx, err := b.conn.Begin(ctx)
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
		err = b.retire(ctx, tx, current)
	}
	for i := range len(b.units) + 1 {
		run(fmt.Sprintf("ALTER SCHEMA %s RENAME TO %s", ident.Quote(b.stage(i)), ident.Quote(b.final(i))))
	}
	for i, u := range b.units {
		run("INSERT INTO "+b.record("neighbour_unit")+" VALUES ($1, $2, $3, $4, $5)", b.epoch, b.final(i+1), u.key, u.why, u.rows)
	}
	run("UPDATE "+b.record("neighbour_set")+" SET state = 'current', made = clock_timestamp() WHERE epoch = $1", b.epoch)
	if err == nil {
		err = b.granted(ctx, tx, append([]string{b.o.D0}, b.o.D1...))
	}
	if err != nil {
		return fmt.Errorf("put the new set in place: %w", err)
	}
	return tx.Commit(ctx)
}
