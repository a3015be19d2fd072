package preflight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Bounds of counting. The rows of a larger table are not counted: its number is the planner's estimate, which may be
// wrong by estimateFactor.
const (
	countedBytes   = 128 << 20
	estimateFactor = 2
	rowsTimeout    = time.Minute
)

// changedShare is the share of a table's rows by which a copy may differ, with a warning: production goes on after the
// copy was made.
const changedShare = 0.01

// Set is what the record of a set of copies says. A nil Rows: the copies are hand-made.
type Set struct {
	Relation string
	Rows     map[string]int64 // of the unit, in all tables, by the schema of the neighbour
}

// Rows compares the number of rows of copies and public tables with the engine's, and those of D0 with each
// neighbour's. No message has a number of rows: they are facts about protected data.
func Rows(o Options) Task {
	return func(ctx context.Context) []Check {
		ctx, cancel := context.WithTimeout(ctx, rowsTimeout)
		defer cancel()
		shadow := open(ctx, "shadow.dsn", o.Shadow, o.ConnectTimeout)
		if shadow.conn == nil {
			return nil // Shadow reports it
		}
		defer shadow.close()
		r := &rows{session: shadow, o: &o}
		shadow.report.checks = nil
		if o.Set != nil {
			r.set = o.Set(ctx)
		}
		key, dsn := "neighbours.source", o.Source
		if dsn == "" {
			key, dsn = "privacy.catalog", o.Catalog
		}
		if dsn != "" {
			if r.source = open(ctx, key, dsn, o.ConnectTimeout); r.source.conn == nil {
				r.report.add("rows", "copies and public tables", Unchecked, "the engine's tables cannot be reached", "")
				r.source = nil
			} else {
				defer r.source.close()
			}
		}
		r.compare(ctx)
		return r.checks
	}
}

// rows compares numbers of rows.
type rows struct {
	*session
	o      *Options
	set    Set
	source *session // nil = none
}

// number is the number of rows of a relation.
type number struct {
	ident.Table
	Kind      catalog.RelationKind
	Bytes     int64
	Estimate  float64 // negative = not known: a table with rows was never analysed
	Inherited bool    // it is a partition or child of another table, whose number has its rows
	Readable  bool
	Filtered  bool // row security hides rows from the role

	n     int64 // exact unless about; -1 = not known
	about bool
}

// numbersQuery returns the facts of the relations named by the arrays $1 and $2; sizes and estimates with their
// partitions and children.
const numbersQuery = `SELECT n.nspname, c.relname, c.relkind::text, coalesce(x.bytes, 0)::bigint, coalesce(x.estimate, -1)::float8,
	EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhrelid = c.oid),
	pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT'), pg_catalog.row_security_active(c.oid)
	FROM unnest($1::text[], $2::text[]) w(s, t) JOIN pg_catalog.pg_namespace n ON n.nspname = w.s JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.t,
	LATERAL (WITH RECURSIVE t(oid) AS (SELECT c.oid UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN t ON i.inhparent = t.oid)
		SELECT sum(pg_catalog.pg_relation_size(p.oid)) AS bytes, CASE WHEN bool_and(p.reltuples > 0 OR pg_catalog.pg_relation_size(p.oid) = 0) THEN sum(greatest(p.reltuples, 0)) END AS estimate
		FROM t JOIN pg_catalog.pg_class p ON p.oid = t.oid WHERE p.relkind IN ('r', 'm')) x`

// numbers returns the numbers of rows of tables, by name. Views and foreign tables have none, as counting them can take
// any time, unless counted names them.
func (s *session) numbers(ctx context.Context, tables []ident.Table, counted func(ident.Table) bool) (map[ident.Table]number, error) {
	schemas, names := []string{}, []string{}
	for _, t := range tables {
		schemas, names = append(schemas, t.Schema), append(names, t.Name)
	}
	found, err := connect.Structs[number](ctx, s.conn, numbersQuery, schemas, names)
	if err != nil {
		return nil, err
	}
	all := map[ident.Table]number{}
	for _, x := range found {
		x.n, x.about = -1, true
		stores := slices.Contains([]catalog.RelationKind{catalog.KindTable, catalog.KindPartitioned, catalog.KindMaterialized}, x.Kind)
		switch {
		case x.Readable && !x.Filtered && x.Bytes <= countedBytes && (stores || counted != nil && counted(x.Table)):
			x.about = false
			if x.n, err = connect.Value[int64](ctx, s.conn, "SELECT count(*) FROM "+x.SQL()); err != nil {
				return nil, err
			}
		case stores && x.Estimate >= 0:
			x.n = int64(x.Estimate)
		}
		all[x.Table] = x
	}
	return all, nil
}

// compare compares all tables.
func (r *rows) compare(ctx context.Context) {
	var engine, here []ident.Table
	for _, name := range slices.Concat(r.o.Protected, r.o.Public) {
		engine = append(engine, ident.ParseTable(name))
	}
	for _, name := range r.o.Protected {
		here = append(here, ident.Table{Schema: r.o.D0, Name: ident.ParseTable(name).Name})
	}
	for _, name := range r.o.Public {
		here = append(here, ident.ParseTable(name))
	}
	theirs := map[ident.Table]number{}
	var err error
	if r.source != nil {
		if theirs, err = r.source.numbers(ctx, engine, nil); err != nil {
			r.report.add("rows", "the engine's tables", Unchecked, "their rows could not be counted: "+message(err), "")
			theirs = map[ident.Table]number{}
		}
	}
	ours, err := r.numbers(ctx, here, nil)
	if err != nil {
		r.report.failed("rows", err)
		return
	}
	for i, t := range here {
		x, known := theirs[engine[i]]
		copied := i < len(r.o.Protected) && r.o.Source != ""
		if known && copied && !x.Readable {
			r.unread(x, Fault, "`dpwatch neighbours create` cannot copy it")
		}
		if own, ok := ours[t]; ok {
			r.withSource(own, x, known, i >= len(r.o.Protected))
		}
	}
	r.neighbours(ctx, here[:len(r.o.Protected)], ours)
	r.twin(ctx, here[:len(r.o.Protected)], ours)
}

// withSource compares a copy or a public table with the engine's table.
func (r *rows) withSource(own, engine number, known, public bool) {
	refill := "copy the rows again"
	switch {
	case public:
		refill = "run " + own.RefillCommand()
	case r.set.Rows != nil:
		refill = "run `dpwatch neighbours create --replace`"
	}
	report := func(status Status, message, fix string) { r.report.add("rows", own.String(), status, message, fix) }
	theirs := engine.String() + " in the engine's database"
	switch {
	case own.n < 0:
		r.unknown(own, r.session) // or a view, or not readable, which is reported elsewhere
	case !known || engine.n < 0:
		if known && (public || r.o.Source == "") {
			r.unread(engine, Unchecked, "there is no estimate of its rows")
		}
		if known {
			r.unknown(engine, r.source)
		}
		if own.n == 0 && !own.about {
			report(Fault, "is empty, and whether the engine's table is empty is not known: audits of queries that read it show nothing",
				refill+"; if the engine's table is empty, too, set neighbours.source or privacy.catalog, with a role that may read it")
		}
	case own.n == 0 && engine.n == 0:
		report(Warning, "is empty, as is "+theirs+": audits of queries that read it show nothing", refill+" when the engine's table has rows")
	case own.n == 0:
		report(Fault, "is empty, and "+theirs+" is not", refill)
	case own.about || engine.about:
		if low, high := min(own.n, engine.n), max(own.n, engine.n); high > estimateFactor*max(low, 1) {
			report(Fault, fmt.Sprintf("has %s rows as %s, by the planner's estimates", fewer(own.n, engine.n, "less than half as many", "more than twice as many"), theirs),
				refill+"; if the estimates are out of date, ANALYZE both tables")
			return
		}
		report(OK, "has about as many rows as "+theirs+", by the planner's estimates", "")
	case own.n == engine.n:
		report(OK, "has as many rows as "+theirs, "")
	default:
		status, share := Fault, float64(max(own.n, engine.n)-min(own.n, engine.n))/float64(engine.n)
		if share <= changedShare {
			status = Warning
		}
		if engine.n == 0 {
			report(Fault, "has rows, and "+theirs+" is empty", refill)
			return
		}
		report(status, fmt.Sprintf("has %.2g %% %s rows than %s, which may have changed since", 100*share, fewer(own.n, engine.n, "fewer", "more"), theirs), refill)
	}
}

func fewer(own, other int64, less, more string) string {
	if own < other {
		return less
	}
	return more
}

// unknown reports that a table that can be read is too large to be counted and was never analysed.
func (r *rows) unknown(x number, where *session) {
	if x.Readable && !x.Filtered && x.Kind != catalog.KindView && x.Kind != catalog.KindForeign {
		r.report.add("rows", x.String(), Unchecked, "its rows are unknown: it is too large to be counted, and was never analysed", "in database "+where.cfg.Database+": ANALYZE "+x.SQL())
	}
}

// unread reports that the role may not read an engine's table, and what follows.
func (r *rows) unread(engine number, status Status, consequence string) {
	if engine.Readable || engine.Kind == catalog.KindView || engine.Kind == catalog.KindForeign {
		return
	}
	role := ident.Quote(r.source.cfg.User)
	r.checks = append(r.checks, Check{
		Name: "rows", Object: engine.String(), Status: status, Message: "role " + r.source.cfg.User + " may not read the engine's table: " + consequence, Database: r.source.cfg.Database,
		Fix: fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s\nGRANT SELECT ON TABLE %s TO %s", ident.Quote(engine.Schema), role, engine.SQL(), role),
	})
}

// neighbours compares the tables of D0 with those of each neighbour.
func (r *rows) neighbours(ctx context.Context, tables []ident.Table, d0 map[ident.Table]number) {
	for _, schema := range r.o.D1 {
		var wanted []ident.Table
		for _, t := range tables {
			wanted = append(wanted, ident.Table{Schema: schema, Name: t.Name})
		}
		found, err := r.copiesOf(ctx, wanted, d0)
		if err != nil {
			r.report.failed("rows", err)
			return
		}
		exact, lacking := true, int64(0)
		for _, t := range tables {
			a, inD0 := d0[t]
			b, inD1 := found[ident.Table{Schema: schema, Name: t.Name}]
			if !inD0 || !inD1 || a.n < 0 || b.n < 0 || a.about || b.about {
				exact = exact && inD0 && a.Kind == catalog.KindView
				continue
			}
			if !a.Inherited {
				lacking += a.n - b.n
			}
			r.empty(a, b)
		}
		r.unit(schema, lacking, exact)
	}
}

// copiesOf returns the numbers of rows of copies of tables of D0. A copy of the method view is a view over D0: it is
// counted if the table of D0 is.
func (r *rows) copiesOf(ctx context.Context, copies []ident.Table, d0 map[ident.Table]number) (map[ident.Table]number, error) {
	return r.numbers(ctx, copies, func(t ident.Table) bool {
		original := d0[ident.Table{Schema: r.o.D0, Name: t.Name}]
		return !original.about && original.Kind != catalog.KindView
	})
}

// empty reports a table of a hand-made neighbour that is empty, and not in D0.
func (r *rows) empty(d0, d1 number) {
	if r.set.Rows != nil || d1.n > 0 || d0.n == 0 {
		return
	}
	status := Warning
	if ident.ParseTable(cmp.Or(r.o.Unit, ".")).Name == d1.Name && d0.n > 1 {
		status = Fault
	}
	r.report.add("rows", d1.String(), status, "is empty, and "+d0.String()+" is not: a neighbour lacks the rows of one unit alone", "copy the rows, unless all of them belong to the unit")
}

// unit compares the number of rows that a neighbour lacks with that of its unit.
func (r *rows) unit(schema string, lacking int64, exact bool) {
	of, recorded := r.set.Rows[schema]
	if !exact || !recorded {
		return
	}
	want, ok := map[string]int64{"remove": of, "replace": 0}[r.set.Relation]
	if !ok || lacking == want {
		return
	}
	r.report.add("rows", schema, Fault, "its number of rows and that of "+r.o.D0+" do not differ by the rows of its unit: one of them was changed", "run `dpwatch neighbours create --replace`")
}
