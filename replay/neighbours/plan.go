package neighbours

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Plan describes what create or refresh would do, and every fault known in advance.
type Plan struct {
	Source     string // the database
	Tables     []PlannedTable
	Neighbours []PlannedNeighbour
	Relation   Relation
	Method     Method
	Bytes      int64    // of all copies, estimated from the source's size
	Seconds    float64  // a rough estimate: see rates
	Notes      []string // what is left out, or differs
	Faults     []error  // empty = the command can begin
}

// PlannedTable is a table including its partitions, or a view.
type PlannedTable struct {
	Table
	Kind  string // table, partitioned table, view, materialized view
	Parts int    // partitions and children
	Rows  int64  // the planner's estimate
	Bytes int64  // on disk, with indexes
	Paths []string
}

// PlannedNeighbour is a neighbour and the rule that chooses its unit. The unit itself depends on the rows, which are read
// when D0 is created.
type PlannedNeighbour struct {
	Schema string
	Rule   string
}

// Err returns the faults as one error; nil = none.
func (p *Plan) Err() error {
	if len(p.Faults) > 1 {
		return fmt.Errorf("%d faults; nothing was made:\n%w", len(p.Faults), errors.Join(p.Faults...))
	}
	return errors.Join(p.Faults...)
}

// The rates, in bytes per second, at which D0 is copied and indexed, and neighbours are, as measured by make
// bench-neighbours on 2 cores; perRelation is added for each relation of each schema.
const (
	copyRate      = 19e6
	neighbourRate = 76e6
	perRelation   = 0.02
)

// MakePlan determines what Create (or Refresh) would do, and everything that is missing for it, without changing anything:
// rights, extensions, types, paths to the unit, definitions that the shadow database rejects. It tries definitions in a
// transaction that is rolled back. The error is ctx's; all other faults are in the Plan.
func MakePlan(ctx context.Context, o Options, refresh bool) (Plan, error) {
	p := newPlanner(&o)
	s := p.inspect(ctx, refresh)
	if s != nil {
		defer s.close(ctx)
		p.dryRun(ctx, s)
	}
	return p.plan, ctx.Err()
}

// err returns the faults, or ctx's error, which is the cause of other faults.
func (p *planner) err(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return p.plan.Err()
}

// planner computes a Plan.
type planner struct {
	o     *Options
	plan  Plan
	b     *builder // with the source's model; nil if that could not be read
	types []typeDefinition
	needs []extension
}

func newPlanner(o *Options) *planner {
	p := &planner{o: o, plan: Plan{Relation: o.Relation, Method: o.Method}}
	own := *o
	own.Progress, own.Note = nil, func(text string) { p.plan.Notes = append(p.plan.Notes, text) }
	p.o = &own
	return p
}

func (p *planner) fault(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // errors.Join's own
		for _, e := range joined.Unwrap() {
			p.fault(e)
		}
		return
	}
	if err != nil {
		p.plan.Faults = append(p.plan.Faults, err)
	}
}

// inspect checks the options, the shadow database and the source. It returns the session of the shadow database, nil if
// there is none.
func (p *planner) inspect(ctx context.Context, refresh bool) *shadow {
	if err := p.o.check(); err != nil {
		p.fault(err)
		return nil
	}
	s, err := openShadow(ctx, p.o, true)
	if err != nil {
		s = nil
		p.fault(err)
	} else {
		p.fault(p.inspectShadow(ctx, s, refresh))
	}
	if err := p.inspectSource(ctx, s); err != nil {
		p.fault(err)
	}
	return s
}

// inspectShadow finds everything in the shadow database that prevents a set.
func (p *planner) inspectShadow(ctx context.Context, s *shadow, refresh bool) error {
	current, err := s.current(ctx)
	switch {
	case err == nil && !refresh:
		err = fmt.Errorf("there is a set already (epoch %d, schemas %s and %d neighbours): use refresh to replace it, or drop first", current.Epoch, current.D0, len(current.D1))
	case errors.Is(err, ErrNoSet) && refresh:
		err = fmt.Errorf("there is no set to refresh: use create")
	case errors.Is(err, ErrNoSet):
		err = nil
	}
	faults := []error{err, s.namesFree(ctx, current), s.rolesExist(ctx)}
	lacks, err := texts(ctx, s.conn, `SELECT format('GRANT CREATE ON DATABASE %I TO %I', current_database(), current_user) WHERE NOT has_database_privilege(current_database(), 'CREATE')
		UNION ALL SELECT format('GRANT USAGE, CREATE ON SCHEMA %I TO %I', nspname, current_user) FROM pg_namespace
			WHERE nspname = $1 AND NOT (has_schema_privilege(oid, 'USAGE') AND has_schema_privilege(oid, 'CREATE'))`, p.o.Control)
	faults = append(faults, err)
	if len(lacks) > 0 {
		faults = append(faults, fmt.Errorf("the role of neighbours.target lacks rights in the shadow database: run there: %s", strings.Join(lacks, "; ")))
	}
	return errors.Join(faults...)
}

// inspectSource reads the model in one transaction and finds what is missing to copy it.
func (p *planner) inspectSource(ctx context.Context, s *shadow) error {
	conn, err := dial(ctx, p.o.Source, "neighbours.source")
	if err != nil {
		return err
	}
	src := &source{conn: conn, o: p.o}
	defer src.close(ctx)
	var d *discovery
	var m *model
	if err := src.retry(ctx, func() (err error) {
		if err := src.open(ctx); err != nil {
			return fmt.Errorf("read the source: %w", err)
		}
		d = &discovery{ctx: ctx, tx: src.tx, o: p.o, m: &model{}, dependents: true}
		if err := d.find(); err != nil {
			return err
		}
		p.plan.Notes = nil // read finds the same notes again
		if err := d.rights(); err != nil {
			return err
		}
		if m, err = readModel(ctx, src.tx, p.o, true); err != nil {
			return fmt.Errorf("read the source: %w", err)
		}
		return nil
	}); err != nil {
		return explain(err)
	}
	p.b = &builder{shadow: s, o: p.o, m: m}
	p.fault(p.validate(ctx, src))
	if p.types, err = readTypes(ctx, conn, m.types, m.collations); err != nil {
		return fmt.Errorf("read the source's types: %w", err)
	}
	p.needs, err = d.extensions(m)
	return err
}

// validate checks paths, measures and choices, and fills the plan.
func (p *planner) validate(ctx context.Context, src *source) error {
	b := p.b
	faults := []error{checkMeasures(b.m, p.o), b.plan()}
	if b.shadow != nil {
		faults = append(faults, b.tellCollation(ctx, src.tx))
	}
	p.plan.Source, p.plan.Method = b.m.database, b.method
	for i, c := range p.o.Choose {
		for range c.K {
			p.plan.Neighbours = append(p.plan.Neighbours, PlannedNeighbour{p.o.D1[len(p.plan.Neighbours)], c.String()})
		}
		_, err := (&ownership{g: &graph{m: b.m, key: p.o.Unit.Key}, work: "w"}).ranking(c)
		if err != nil {
			faults = append(faults, fmt.Errorf("neighbours.choose[%d]: %w", i, err))
		}
	}
	g, err := newGraph(b.m, p.o)
	p.list(g)
	if err != nil {
		return errors.Join(append(faults, err)...)
	}
	b.g = g
	if p.o.Relation == Extreme {
		_, err := g.fresh()
		faults = append(faults, err)
	}
	if b.method == View {
		for _, r := range b.m.tables() {
			if _, err := g.viewable(r); err != nil {
				faults = append(faults, fmt.Errorf("view of %s: %w", r.Table, err))
			}
		}
	}
	return errors.Join(append(faults, p.countUnits(ctx, src))...)
}

// countUnits checks that there are as many units as neighbours.
func (p *planner) countUnits(ctx context.Context, src *source) error {
	g, distinct := p.b.g, "DISTINCT "
	var present []string
	for _, k := range g.key {
		present = append(present, ident.Quote(k)+" IS NOT NULL")
	}
	for _, i := range g.unit.indexes {
		if len(i.unique) > 0 && !slices.ContainsFunc(i.unique, func(c string) bool { return !slices.Contains(g.key, c) }) && len(g.unit.parents) == 0 {
			distinct = ""
		}
	}
	var n int64
	err := src.tx.QueryRow(ctx, fmt.Sprintf("SELECT count(*) FROM (SELECT %s%s FROM %s WHERE %s LIMIT %d) u", distinct, ident.List(g.key), g.unit.SQL(), strings.Join(present, " AND "), len(p.o.D1))).Scan(&n)
	if err != nil {
		return fmt.Errorf("count the units: %w", explain(err))
	}
	if n < int64(len(p.o.D1)) {
		return fmt.Errorf("%d units are to be chosen, and table %s holds %d: let neighbours.choose ask for fewer", len(p.o.D1), g.unit.Table, n)
	}
	return nil
}

// dryRun tries the source's definitions in the shadow database.
func (p *planner) dryRun(ctx context.Context, s *shadow) {
	if p.b == nil {
		return
	}
	lacks, err := s.lacks(ctx, p.needs)
	if err == nil && lacks == nil && slices.ContainsFunc(p.b.m.relations, func(r *relation) bool { return !r.isTable() }) {
		lacks, err = s.publicRights(ctx)
	}
	if err = errors.Join(lacks, err); err != nil || len(p.plan.Faults) > 0 { // the following steps would fail for the same reasons
		p.fault(err)
		return
	}
	notes := p.plan.Notes
	r, err := p.b.dryRun(ctx, p.types)
	p.fault(r.faults)
	p.fault(err)
	for _, n := range p.plan.Notes[len(notes):] {
		p.plan.Notes = append(notes, strings.ReplaceAll(n, p.b.stage(0), p.o.D0))
	}
}

// list fills the plan's tables, sizes and time. g may be nil.
func (p *planner) list(g *graph) {
	m, b := p.b.m, p.b
	for _, r := range m.relations {
		if len(r.parents) > 0 {
			continue
		}
		t := PlannedTable{Table: r.Table, Kind: map[byte]string{'r': "table", 'p': "partitioned table", 'v': "view", 'm': "materialized view"}[r.kind]}
		for _, x := range m.relations {
			if m.within(x, r) {
				t.Rows, t.Bytes = t.Rows+map[bool]int64{true: x.rows}[x.stores() || x.kind == 'm'], t.Bytes+x.bytes
				t.Parts++
			}
		}
		t.Parts--
		if g != nil && r.isTable() {
			t.Paths = g.describe(r)
		}
		p.plan.Bytes += t.Bytes
		p.plan.Tables = append(p.plan.Tables, t)
	}
	one := float64(p.plan.Bytes)
	p.plan.Seconds = one/copyRate + perRelation*float64(len(m.relations)*(len(p.o.D1)+1))
	if b.method == Copy {
		p.plan.Seconds += one * float64(len(p.o.D1)) / neighbourRate
		p.plan.Bytes *= int64(len(p.o.D1) + 1)
	}
}

// describe returns how the rows of a table, and of those below it, belong to units.
func (g *graph) describe(top *relation) []string {
	if g.m.within(top, g.unit) {
		return []string{"key (" + strings.Join(g.key, ", ") + ")"}
	}
	var out []string
	_, alike := g.edgesBelow(top)
	for _, r := range g.m.tables() {
		if !g.m.within(r, top) || !r.stores() && alike {
			continue
		}
		for _, e := range g.edgesOf(r) {
			text := fmt.Sprintf("(%s) -> %s (%s)", strings.Join(e.columns, ", "), e.parent.Table, strings.Join(e.on, ", "))
			if e.declared {
				text += ", declared"
			}
			if !alike {
				text = r.Name + ": " + text
			}
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out
}

// publicRights returns the privileges that the owner of the copies lacks to read public tables in views.
func (s *shadow) publicRights(ctx context.Context) (lacks, err error) {
	names := []string{}
	for _, t := range s.o.Public {
		names = append(names, t.SQL())
	}
	grants, err := texts(ctx, s.conn, `SELECT format('GRANT SELECT ON %s TO %I', p, current_user) FROM unnest($1::text[]) p
		WHERE to_regclass(p) IS NOT NULL AND NOT has_table_privilege(to_regclass(p), 'SELECT')`, names)
	if len(grants) > 0 {
		lacks = fmt.Errorf("the role of neighbours.target lacks rights in the shadow database: run there: %s", strings.Join(grants, "; "))
	}
	return lacks, err
}
