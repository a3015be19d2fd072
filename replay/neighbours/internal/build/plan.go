package build

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/session"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/shadow"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/units"
	"github.com/dpwatch/dpwatch/replay/neighbours/owners"
)

// Plan describes what create or refresh would do, and every fault known in advance.
type Plan struct {
	Source     string // the database
	Tables     []PlannedTable
	Neighbours []PlannedNeighbour
	Relation   spec.Relation
	Method     spec.Method
	Bytes      int64    // of all copies, estimated from the source's size
	Seconds    float64  // a rough estimate: see rates
	Notes      []string // what is left out, or differs
	Faults     []error  // empty = the command can begin
}

// PlannedTable is a table including its partitions, or a view.
type PlannedTable struct {
	ident.Table
	Kind  string // table, partitioned table, view, materialized view
	Parts int    // partitions and children
	Rows  *int64 // the planner's estimate; nil = a view, or a table that was never analysed
	Bytes int64  // on disk, with indexes
	Paths []string
}

// PlannedNeighbour is a neighbour and the rule that chooses its unit. The unit itself depends on the rows, which are
// read when D0 is created.
type PlannedNeighbour struct {
	Schema string
	Rule   string
}

// Err returns the faults as one error; nil = none.
func (p *Plan) Err() error {
	if len(p.Faults) > 1 {
		return fmt.Errorf("%d faults; nothing was created:\n%w", len(p.Faults), errors.Join(p.Faults...))
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

// MakePlan computes a Plan: see neighbours.MakePlan.
func MakePlan(ctx context.Context, o spec.Options, refresh bool) (Plan, error) {
	p := newPlanner(&o)
	s := p.inspect(ctx, refresh)
	if s != nil {
		defer s.Close(ctx)
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
	o     *spec.Options
	plan  Plan
	b     *Builder // with the source's model; nil if that could not be read
	types []source.TypeDefinition
	needs []source.Extension
	found *owners.Found // columns that name units; nil = not searched
}

func newPlanner(o *spec.Options) *planner {
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
func (p *planner) inspect(ctx context.Context, refresh bool) *shadow.DB {
	if err := p.o.Check(); err != nil {
		p.fault(err)
		return nil
	}
	s, err := shadow.Open(ctx, p.o, true)
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
func (p *planner) inspectShadow(ctx context.Context, s *shadow.DB, refresh bool) error {
	current, err := s.Current(ctx)
	switch {
	case err == nil && !refresh:
		err = fmt.Errorf("the shadow database already holds a set (epoch %d, schema %s and %d neighbours): use refresh to replace it, or drop it first", current.Epoch, current.D0, len(current.D1))
	case errors.Is(err, shadow.ErrNoSet) && refresh:
		err = fmt.Errorf("the shadow database holds no set to refresh: use create")
	case errors.Is(err, shadow.ErrNoSet):
		err = nil
	}
	return errors.Join(err, s.CheckNames(ctx, current), s.Requirements().CheckRoles(ctx), s.Requirements().CheckRights(ctx))
}

// inspectSource reads the model in one transaction and finds what is missing to copy it.
func (p *planner) inspectSource(ctx context.Context, s *shadow.DB) error {
	conn, err := session.Open(ctx, p.o.Source, "neighbours.source")
	if err != nil {
		return err
	}
	src := &source.Snapshot{Conn: conn, Options: p.o}
	defer src.Close(ctx)
	var d *source.Discovery
	var m *source.Model
	if err := src.Retry(ctx, func() (err error) {
		if err := src.Open(ctx); err != nil {
			return fmt.Errorf("read the source: %w", err)
		}
		d = &source.Discovery{Ctx: ctx, Tx: src.Tx, Options: p.o, Model: &source.Model{}, Dependents: true}
		if err := d.Find(); err != nil {
			return err
		}
		p.plan.Notes = nil // read finds the same notes again
		if err := d.Rights(); err != nil {
			return err
		}
		if m, err = source.Read(ctx, src.Tx, p.o, true); err != nil {
			return fmt.Errorf("read the source: %w", err)
		}
		return nil
	}); err != nil {
		return src.Explain(err)
	}
	if p.o.GuardLimit > 0 && m.Bytes() > p.o.GuardLimit {
		p.o.Guard = ""
	}
	p.b = &Builder{DB: s, Options: p.o, Model: m}
	p.fault(p.validate(ctx, src))
	if p.types, err = source.ReadTypes(ctx, conn, m.Types, m.Collations); err != nil {
		return fmt.Errorf("read the source's types: %w", src.Explain(err))
	}
	p.needs, err = d.Extensions(m)
	return src.Explain(err)
}

// validate checks paths, measures and choices, and fills the plan.
func (p *planner) validate(ctx context.Context, src *source.Snapshot) error {
	b := p.b
	faults := []error{source.CheckMeasures(b.Model, p.o), source.CheckConditions(ctx, src.Tx, b.Model, p.o), b.Plan()}
	if b.DB != nil {
		faults = append(faults, b.noteCollation(ctx, src.Tx))
	}
	p.plan.Source, p.plan.Method = b.Model.Database, b.method
	for i, c := range p.o.Choose {
		for range c.K {
			p.plan.Neighbours = append(p.plan.Neighbours, PlannedNeighbour{p.o.D1[len(p.plan.Neighbours)], c.String()})
		}
		_, err := (&units.Ownership{Graph: &source.Graph{Model: b.Model, Key: p.o.Unit.Key}, Work: "w"}).Ranking(c)
		if err != nil {
			faults = append(faults, fmt.Errorf("neighbours.choose[%d]: %w", i, err))
		}
	}
	g, err := source.NewGraph(b.Model, p.o)
	p.list(g)
	if b.g = g; g != nil {
		p.search(ctx)
	}
	if err != nil {
		return errors.Join(append(faults, err)...)
	}
	if p.o.Relation == spec.Extreme {
		_, err := g.Fresh()
		faults = append(faults, err)
	}
	if b.method == spec.View {
		for _, r := range b.Model.Tables() {
			if _, err := g.Viewable(r); err != nil {
				faults = append(faults, fmt.Errorf("view of %s: %w", r.Table, err))
			}
		}
	}
	return errors.Join(append(faults, p.countUnits(ctx, src))...)
}

// countUnits checks that there are as many units as neighbours.
func (p *planner) countUnits(ctx context.Context, src *source.Snapshot) error {
	g, distinct := p.b.g, "DISTINCT "
	for _, i := range g.Unit.Indexes {
		if len(i.Unique) > 0 && !slices.ContainsFunc(i.Unique, func(c string) bool { return !slices.Contains(g.Key, c) }) && len(g.Unit.Parents) == 0 {
			distinct = ""
		}
	}
	n, err := connect.Value[int64](ctx, src.Tx, fmt.Sprintf("SELECT count(*) FROM (SELECT %s%s FROM %s WHERE %s LIMIT %d) u",
		distinct, ident.List(g.Key), g.Unit.SQL(), ident.Each(g.Key, "%[1]s IS NOT NULL", " AND "), len(p.o.D1)))
	if err != nil {
		return fmt.Errorf("count the units: %w", src.Explain(err))
	}
	if n < int64(len(p.o.D1)) {
		return fmt.Errorf("neighbours.choose requests %d units, and table %s holds %d: request fewer", len(p.o.D1), g.Unit.Table, n)
	}
	return nil
}

// dryRun tries the source's definitions in the shadow database.
func (p *planner) dryRun(ctx context.Context, s *shadow.DB) {
	if p.b == nil {
		return
	}
	err := errors.Join(s.Requirements().CheckExtensions(ctx, p.needs), s.Requirements().CheckTypeRights(ctx, p.types), s.Requirements().NotePublic(ctx))
	if err == nil && slices.ContainsFunc(p.b.Model.Relations, func(r *source.Relation) bool { return !r.IsTable() }) {
		err = s.Requirements().CheckPublicRights(ctx)
	}
	if err != nil || len(p.plan.Faults) > 0 { // the following steps would fail for the same reasons
		p.fault(err)
		return
	}
	notes := p.plan.Notes
	r, err := p.b.DryRun(ctx, p.types)
	p.fault(r.Faults)
	p.fault(err)
	for _, n := range p.plan.Notes[len(notes):] {
		p.plan.Notes = append(notes, strings.ReplaceAll(n, p.b.staging.stage(0), p.o.D0))
	}
}

// kindNames names the kinds of relations in a plan.
var kindNames = map[catalog.RelationKind]string{
	catalog.KindTable: "table", catalog.KindPartitioned: "partitioned table", catalog.KindView: "view", catalog.KindMaterialized: "materialized view",
}

// list fills the plan's tables, sizes and time. g may be nil.
func (p *planner) list(g *source.Graph) {
	m, b := p.b.Model, p.b
	for _, r := range m.Relations {
		if len(r.Parents) > 0 {
			continue
		}
		t := PlannedTable{Table: r.Table, Kind: kindNames[r.Kind]}
		rows, known := int64(0), r.Kind != catalog.KindView
		for _, x := range m.Relations {
			if !m.Within(x, r) {
				continue
			}
			if x.Stores() || x.Kind == catalog.KindMaterialized {
				rows, known = rows+x.Rows, known && x.Estimated
			}
			t.Bytes += x.Bytes
			t.Parts++
		}
		if known {
			t.Rows = &rows
		}
		t.Parts--
		if g != nil && r.IsTable() {
			t.Paths = g.Describe(r)
		}
		p.plan.Bytes += t.Bytes
		p.plan.Tables = append(p.plan.Tables, t)
	}
	one := float64(p.plan.Bytes)
	p.plan.Seconds = one/copyRate + perRelation*float64(len(m.Relations)*len(p.o.Schemas()))
	if b.method == spec.Copy {
		p.plan.Seconds += one * float64(len(p.o.Schemas())-1) / neighbourRate
		p.plan.Bytes *= int64(len(p.o.Schemas()))
	}
}
