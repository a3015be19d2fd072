package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/hoist"
)

// LeftOut says that a query reads the same rows on D0 and on a neighbour: all that its random part reads is the same, so
// that the answers have the same distribution whatever the noise is.
type LeftOut struct {
	// Why says what leaves out the person whom the neighbour lacks, without literals; "" = the person takes part, or
	// that is not known.
	Why string
	// Reader names what may read more than was compared, such as a function that draws the noise; "" = nothing does.
	Reader string
}

const (
	opLeftOut = "compare what the query reads on D0 and on a neighbour"
	// mostFilters bounds the number of filters that are examined, and filterTime their time.
	mostFilters = 48
	filterTime  = 10 * time.Second
)

// leftOut compares what the random part of the statement reads on D0 and on each neighbour. It returns nil if that
// cannot be evaluated without noise, or if it is not the same on any neighbour. It runs no trials.
func (r *Run) leftOut(ctx context.Context) (all []LeftOut, err error) {
	p := r.exec.player
	if len(p.opt.Copies) == 0 || r.exec.stmt.Places != nil || len(p.opt.Engines) > 1 { // a twin has the same rows
		return nil, nil
	}
	know := make([]hoist.Knowledge, 1+len(r.exec.stmt.Then)) // of each statement
	for i := range know {
		if know[i], err = p.drawing(ctx, r.exec.stmt.step(i)); err != nil {
			return nil, err
		}
	}
	for _, opt := range []hoist.InputOptions{{Options: hoist.Options{Eager: true}}, {}, {Nest: true}} {
		var no *unhoistable
		if all, err = r.compareInputs(ctx, know, opt); !errors.As(err, &no) {
			return all, err
		}
	}
	return nil, nil // the server rejects an input
}

// errInputs: a statement has parts whose inputs are not known.
var errInputs = &unhoistable{reason: "its inputs are not known"}

func (r *Run) compareInputs(ctx context.Context, know []hoist.Knowledge, opt hoist.InputOptions) (all []LeftOut, err error) {
	in, err := r.inputs(know, opt)
	if err != nil {
		return nil, err
	}
	p := r.exec.player
	conn, err := p.connectLimited(ctx, r.exec.stmt)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	if pace := p.opt.Pace; pace != nil {
		if _, err := pace.Enter(ctx, 1, p.means.least(p.means.key(r.exec.stmt.Worlds[0]))); err != nil {
			return nil, err
		}
		defer pace.Leave()
	}
	x := &comparison{conn: conn, inputs: in, sums: map[string]string{}}
	return x.run(ctx)
}

// inputs are what the random parts of the statements of a sequence read, by world.
type inputs struct {
	statements []executor
	worlds     [][]input
	plain      [][]input // the same with the definitions of views in their place
	reader     string    // what may read more
}

// input is a deterministic query, with the statement to whose parameters it refers.
type input struct {
	sql       string
	statement int
}

// inputs returns errInputs if they cannot be found.
func (r *Run) inputs(know []hoist.Knowledge, opt hoist.InputOptions) (*inputs, error) {
	worlds := len(r.exec.stmt.Worlds)
	in := &inputs{worlds: make([][]input, worlds), plain: make([][]input, worlds)}
	readers := map[string]bool{}
	for i := range know {
		step := r.exec
		step.bind(r.exec.stmt.step(i))
		for world, sql := range step.stmt.Worlds {
			opt.Knowledge, opt.Prefix = know[i], hoistPrefix
			found, err := r.findInputs(sql, opt)
			if err != nil {
				return nil, errInputs
			}
			for _, q := range found.Queries {
				in.worlds[world] = append(in.worlds[world], input{q, i})
				in.plain[world] = append(in.plain[world], input{hoist.ExpandViews(q, know[i]), i})
			}
			for _, name := range found.Readers {
				readers[name] = true
			}
		}
		in.statements = append(in.statements, step)
	}
	for world := range worlds {
		if len(in.worlds[world]) != len(in.worlds[0]) || len(in.worlds[0]) == 0 {
			return nil, errInputs
		}
	}
	switch names := slices.Sorted(maps.Keys(readers)); {
	case len(r.exec.player.opt.Engines) > 0:
		in.reader = "the engine"
	case len(names) > 0:
		in.reader = strings.Join(names, ", ")
	}
	return in, nil
}

// drawing returns what is known of the catalog, in which every function that may draw noise counts as volatile.
func (p *Player) drawing(ctx context.Context, s Statement) (hoist.Knowledge, error) {
	conn, err := p.connect(ctx, s)
	if err != nil {
		return hoist.Knowledge{}, err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	know, err := knowledge(ctx, conn, p.opt.Noise, s.Worlds...)
	for name, traits := range know.Functions {
		traits.Volatile = traits.Volatile || traits.Draws
		know.Functions[name] = traits
	}
	return know, err
}

// findInputs parses a statement.
func (r *Run) findInputs(sql string, opt hoist.InputOptions) (hoist.Inputs, error) {
	if h := r.exec.stmt.Hoist; h != nil {
		defer h.Announce()()
	}
	return hoist.FindInputs(sql, opt)
}

// comparison compares the inputs of the worlds.
type comparison struct {
	*inputs
	conn *pgconn.PgConn
	sums map[string]string // of queries without parameters of their own, by their text and statement
}

// run returns nil if no neighbour has the same inputs as D0.
func (x *comparison) run(ctx context.Context) (all []LeftOut, err error) {
	// All queries read one state of the data. Workers and shared scans would return rows in another order each time.
	const begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL synchronize_seqscans = off; SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL extra_float_digits = 3"
	if _, err := x.conn.Exec(ctx, begin).ReadAll(); err != nil {
		return nil, serverReason(opLeftOut, err)
	}
	for i := range x.statements {
		step := &x.statements[i]
		if len(step.values) == 0 {
			continue
		}
		description, err := x.conn.Prepare(ctx, "", step.stmt.Worlds[0], step.oids)
		if err != nil {
			return nil, serverReason(opLeftOut, err)
		}
		step.oids = description.ParamOIDs
	}
	equal, some := make([]bool, len(x.worlds)), false
	for world := 1; world < len(x.worlds); world++ {
		if equal[world], err = x.same(ctx, world); err != nil {
			return nil, err
		}
		some = some || equal[world]
	}
	if !some {
		return nil, nil
	}
	if stays, err := x.stays(ctx); err != nil || !stays {
		return nil, err
	}
	all = make([]LeftOut, len(x.worlds)-1)
	for world, same := range equal {
		if same {
			all[world-1] = LeftOut{Why: x.why(ctx, world), Reader: x.reader}
		}
	}
	return all, nil
}

// mostAgain bounds how often the inputs of D0 are evaluated again, which ends after againTime.
const (
	mostAgain = 8
	againTime = time.Second
)

// stays reports whether the inputs of D0 are the same each time: a function may draw noise, of few values even, although
// neither its declaration nor its text shows it.
func (x *comparison) stays(ctx context.Context) (bool, error) {
	first, began := maps.Clone(x.sums), time.Now()
	for n := 0; n == 0 || n < mostAgain && time.Since(began) < againTime; n++ {
		clear(x.sums)
		for _, in := range x.worlds[0] {
			again, err := x.sum(ctx, in.sql, in.statement)
			if err != nil || again != first[sumKey(in.sql, in.statement)] {
				return false, err
			}
		}
	}
	return true, nil
}

// same reports whether all inputs have the same rows in a world as in D0, in the same order.
func (x *comparison) same(ctx context.Context, world int) (bool, error) {
	for i, in := range x.worlds[world] {
		d0, err := x.sum(ctx, x.worlds[0][i].sql, in.statement)
		if err != nil {
			return false, err
		}
		other, err := x.sum(ctx, in.sql, in.statement)
		if err != nil || d0 != other {
			return false, err
		}
	}
	return true, nil
}

// sum returns a checksum of the rows of a query in their order, with their number.
func (x *comparison) sum(ctx context.Context, sql string, statement int) (string, error) {
	key := sumKey(sql, statement)
	if known, ok := x.sums[key]; ok {
		return known, nil
	}
	step := &x.statements[statement]
	query := fmt.Sprintf(`SELECT pg_catalog.concat_ws(' ', pg_catalog.count(*), pg_catalog.sum(pg_catalog.hashtextextended(dpwatch_text, dpwatch_n)))
		FROM (SELECT dpwatch_row::pg_catalog.text AS dpwatch_text, pg_catalog.row_number() OVER () AS dpwatch_n FROM (%s) AS dpwatch_row) AS dpwatch_rows`, sql)
	result := x.conn.ExecParams(ctx, query, step.values, step.oids, step.format, nil).Read()
	if result.Err != nil {
		return "", serverReason(opLeftOut, result.Err)
	}
	if len(result.Rows) != 1 || len(result.Rows[0]) != 1 {
		return "", unexpectedAnswer(opLeftOut, "another number of values than 1")
	}
	x.sums[key] = string(result.Rows[0][0])
	return x.sums[key], nil
}

func sumKey(sql string, statement int) string { return fmt.Sprintf("%d %s", statement, sql) }

// why says what leaves out the person whom a world lacks.
func (x *comparison) why(ctx context.Context, world int) string {
	if !x.relationsDiffer(ctx, world) {
		return "no relation that it reads has other rows"
	}
	began, examined := time.Now(), 0
	for i, in := range x.plain[world] {
		d0, d1 := hoist.Filters(x.plain[0][i].sql), hoist.Filters(in.sql)
		for j := range min(len(d0), len(d1)) {
			if examined++; examined > mostFilters || time.Since(began) > filterTime {
				return "one of its conditions leaves out the person whom the neighbour lacks"
			}
			if x.leaves(ctx, d0[j], d1[j], in.statement) {
				why := d0[j].What + " leaves out the person whom the neighbour lacks"
				if x.sums[sumKey(d0[j].Base, in.statement)] == "0" {
					why += ", and everyone else: check that the copies and the public tables have rows (dpwatch doctor)"
				}
				return why
			}
		}
	}
	return "the rows of the person whom the neighbour lacks change nothing that it computes without noise"
}

// leaves reports whether a filter leaves rows out that one of the worlds lacks; also false if that cannot be evaluated.
func (x *comparison) leaves(ctx context.Context, d0, d1 hoist.Filter, statement int) bool {
	base, known := x.equal(ctx, d0.Base, d1.Base, statement)
	if !base || !known {
		return false
	}
	without, known := x.equal(ctx, d0.Without, d1.Without, statement)
	return known && !without
}

// equal compares the rows of two queries. known is false if the server rejects one.
func (x *comparison) equal(ctx context.Context, d0, d1 string, statement int) (equal, known bool) {
	var sums [2]string
	for i, sql := range []string{d0, d1} {
		if sql == "" || x.conn.IsClosed() {
			return false, false
		}
		if _, err := x.conn.Exec(ctx, "SAVEPOINT dpwatch").ReadAll(); err != nil {
			return false, false
		}
		var err error
		sums[i], err = x.sum(ctx, sql, statement)
		if err != nil {
			_, _ = x.conn.Exec(ctx, "ROLLBACK TO SAVEPOINT dpwatch").ReadAll()
			return false, false
		}
	}
	return sums[0] == sums[1], true
}

// relationsDiffer reports whether a relation that the inputs name has other rows in a world than in D0.
func (x *comparison) relationsDiffer(ctx context.Context, world int) bool {
	for i, in := range x.plain[world] {
		d0, _ := hoist.Relations(x.plain[0][i].sql) // both were parsed before
		other, _ := hoist.Relations(in.sql)
		for j := range min(len(d0), len(other)) {
			if d0[j] == other[j] {
				continue
			}
			if equal, known := x.equal(ctx, rowsOf(d0[j]), rowsOf(other[j]), in.statement); !equal || !known {
				return true
			}
		}
	}
	return false
}

func rowsOf(r hoist.Relation) string {
	return "SELECT * FROM " + ident.Quote(r.Schema) + "." + ident.Quote(r.Name)
}
