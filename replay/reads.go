package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Reads is what trials of a statement read.
type Reads struct {
	// Tables are the tables that trials of each world read, as schema.table, sorted; D0 first. Nil where that is not
	// known.
	Tables [][]string
	// Unverified says what could not be verified; "" = trials of each world read the copies of that world, and neither
	// other copies nor the originals.
	Unverified string
	// Beside says what trials read, or may read, that is the same in all worlds: neither a copy, nor listed as public, nor
	// an extension's. Sorted; nil = nothing.
	Beside []string
}

// ReadsError reports that trials do not read the copies of their world, or read others or the originals. A verdict about
// them would be one about nothing.
type ReadsError struct {
	World  int
	Twin   bool     // the world is the twin of D0, or the guard
	Schema string   // of the copies of this world
	Wrong  []string // what its trials read that they must not, with why not; none = they read no copy
	Tables []string // all tables that they read
	Fails  string   // SQLSTATE of an error with which each of them fails, "" = some do not
	engine string   // through which they ran; "" = none beside the database
}

// Error says what trials read, and what to do.
func (e *ReadsError) Error() string {
	who := fmt.Sprintf("trials do not read the copies: those on %s (schema %s)", worldName(e.World, e.Twin), e.Schema)
	if e.engine != "" {
		who += ", which run through " + e.engine + ","
	}
	if e.Fails != "" {
		return who + " fail each time (SQLSTATE " + e.Fails + "), and that they read a copy cannot be seen: make sure that the engine knows the tables in that schema"
	}
	if len(e.Wrong) == 0 {
		read := "no table"
		if len(e.Tables) > 0 {
			read = strings.Join(e.Tables, ", ") + " alone"
		}
		return who + " read " + read + ": make sure that the query and its functions find their tables in that schema, and that its conditions do not exclude every row"
	}
	what := who + " read " + strings.Join(e.Wrong, ", ")
	if e.engine != "" {
		return what + ": let its source find the tables in " + e.Schema + " (search_path, say), or correct shadow.engine.dsn"
	}
	return what + ": a function of the query names this table itself; let it take arrays that the statement or an SQL function reads for it, or create a copy of it in the schema of each world that names the tables of that schema"
}

// worldName returns the name of a world by its place among the copies.
func worldName(place int, twin bool) string {
	if twin {
		return "the twin of D0"
	}
	return fmt.Sprintf("D%d", place)
}

// The number of trials of each world that show what is read: as many as minReads, or one if it takes readTime, and up to
// maxReads if these read no copy, as a query may read one with some probability only.
const (
	minReads = 2
	maxReads = 8
	readTime = time.Second
)

// Reads runs a few trials that do not count and verifies what they read: trials of each world must read copies of that
// world, no copies of another one, and no original. Otherwise the error is a ReadsError. It is a SetupError if the role
// may read an original, as from Check. Reads does nothing if Options.Copies is nil.
//
// The server counts the scans and the blocks of each table for each transaction. They are exact and belong to one
// session: all trials of a world run in one transaction, without parallel workers, which have counters of their own.
// That is also possible through an engine that is PostgreSQL itself. Through another one, trials are counted by the
// counters of the whole shadow database; see countReads.
func (r *Run) Reads(ctx context.Context) (reads Reads, err error) {
	r.accompany(ctx)
	defer func() { err = r.examine(ctx, err) }()
	p := r.exec.player
	switch worlds, copies := len(r.exec.stmt.Worlds), len(p.opt.Copies); {
	case copies == 0:
		return Reads{Beside: r.exec.stmt.Beside}, nil
	case r.exec.stmt.Places == nil && worlds != copies:
		return Reads{}, fmt.Errorf("replay: %d worlds, and copies in %d schemas", worlds, copies)
	case r.exec.stmt.Places != nil && slices.Max(r.exec.stmt.Places) >= len(p.opt.schemas()):
		return Reads{}, fmt.Errorf("replay: a world at the place %d, and copies in %d schemas", slices.Max(r.exec.stmt.Places), len(p.opt.schemas()))
	}
	if err := p.checkOriginals(ctx); err != nil {
		return Reads{}, err
	}
	all := Reads{}
	for world := range r.exec.stmt.Worlds {
		one, err := (&reading{r.exec, world}).reads(ctx)
		switch {
		case errors.Is(err, errNotExact):
			if all, err = p.countReads(ctx, r); err != nil {
				return Reads{}, err
			}
			return all.with(r.exec.stmt.Beside), nil
		case err != nil:
			return Reads{}, err
		}
		all.add(one)
	}
	return all.with(r.exec.stmt.Beside), nil
}

// worldReads is Reads of one world.
type worldReads struct {
	tables     []string
	unverified string
	beside     []string
}

func (x *Reads) add(one worldReads) {
	x.Tables = append(x.Tables, one.tables)
	if one.unverified != "" && !strings.Contains(x.Unverified, one.unverified) {
		x.Unverified = strings.TrimPrefix(x.Unverified+"; "+one.unverified, "; ")
	}
	*x = x.with(one.beside)
}

// with returns the reads with more of Beside.
func (x Reads) with(beside []string) Reads {
	x.Beside = slices.Compact(slices.Sorted(slices.Values(slices.Concat(x.Beside, beside))))
	return x
}

// errNotExact means that an engine does not show what its session reads.
var errNotExact = errors.New("replay: the engine is not PostgreSQL itself")

// reading finds out what trials of a world read.
type reading struct {
	exec  executor
	world int // of the statement
}

// place returns the place of the world among the copies.
func (r *reading) place() int { return r.exec.stmt.place(r.world) }

// reads returns what trials read.
func (r *reading) reads(ctx context.Context) (worldReads, error) {
	conn, elsewhere, err := r.session(ctx)
	if err != nil {
		return worldReads{}, err
	}
	defer conn.Close(ctx)                            //nolint:errcheck // nothing to be done about it
	if pace := r.exec.player.opt.Pace; pace != nil { // before the transaction begins, which must not wait
		if _, err := pace.Enter(ctx, 1, r.exec.player.means.least(r.exec.player.means.key(r.exec.stmt.Worlds[0]))); err != nil {
			return worldReads{}, err
		}
		defer pace.Leave()
	}
	var read []relation
	failed := false
	err = inTransaction(ctx, conn, func() (err error) {
		read, failed, err = r.trials(ctx, conn)
		return err
	})
	switch {
	case errors.Is(err, errCutOff) || errors.Is(err, errUncounted):
		return worldReads{unverified: err.Error()}, nil
	case err != nil:
		return worldReads{}, err
	}
	return r.judge(read, failed, elsewhere)
}

// trials runs trials in the transaction of a session, and returns what they read. failed reports that all
// of them failed.
func (r *reading) trials(ctx context.Context, conn *pgconn.PgConn) (read []relation, failed bool, err error) {
	counted, err := askRow(ctx, conn, opReads, 4, `SELECT pg_catalog.current_setting('track_counts'), pg_catalog.set_config('max_parallel_workers_per_gather', '0', true),
		pg_catalog.set_config('statement_timeout', $1, true), pg_catalog.set_config('lock_timeout', $1, true)`, millis(ownQueryTime))
	if err != nil {
		return nil, false, err
	}
	if string(counted[0]) != "on" {
		return nil, false, errUncounted
	}
	before, err := unlocked(ctx, conn, func() (map[string]int64, error) { return askCounters(ctx, conn, countersQuery) })
	if err != nil {
		return nil, false, err
	}
	failed = true
	locked := map[string]bool{}
	began := time.Now()
	for n := 1; n <= maxReads; n++ {
		state, err := r.trial(ctx, conn, locked)
		if err != nil {
			return nil, false, err
		}
		if failed = failed && state != ""; n < minReads && time.Since(began) < readTime {
			continue
		}
		read, err = unlocked(ctx, conn, func() ([]relation, error) {
			after, err := askCounters(ctx, conn, countersQuery)
			if err != nil {
				return nil, err
			}
			return r.exec.player.opt.relations(ctx, conn, grown(before, after, 1), locked)
		})
		if err != nil {
			return nil, false, err
		}
		if failed || slices.ContainsFunc(read, func(t relation) bool { return t.copyOf(r.place()) }) {
			break
		}
	}
	return read, failed, nil
}

// judge returns the names of what trials of a world read, or a ReadsError. failed reports that all trials failed,
// perhaps before they read anything. elsewhere says that the engine is another database; its copies may have any names.
func (r *reading) judge(read []relation, failed bool, elsewhere string) (one worldReads, err error) {
	world, opt := r.place(), &r.exec.player.opt
	fault := &ReadsError{World: world, Twin: world >= len(opt.Copies), Schema: opt.schemas()[world]}
	if len(r.exec.player.engines) > 0 {
		fault.engine = r.exec.player.engines.name(world)
	}
	own, unseen := false, elsewhere
	for _, t := range read {
		if t.counted {
			one.tables = append(one.tables, t.name)
		}
		switch {
		case t.kind == kindForeign && t.of(world):
			unseen = t.name + " is a foreign table, and what the other server reads is not counted"
		case t.of(world):
			if own = own || t.counted; t.counted && t.viewed[world] {
				one.unverified = fmt.Sprintf("the copies in %s are views that read %s, and counters do not show through which view it is read", fault.Schema, t.name)
			}
		case t.kind == kindPublic || t.kind == kindExtension:
		case t.kind == kindForeign && !t.locked: // of another world
		case t.counted && len(t.worlds) > 0:
			fault.Wrong = append(fault.Wrong, t.name+", a copy of another world")
		case t.counted && t.kind == kindOther:
			fault.Wrong = append(fault.Wrong, t.name+", another copy")
		case t.counted && t.kind == kindOriginal:
			fault.Wrong = append(fault.Wrong, t.name+", the original of a copy")
		default:
			one.beside = append(one.beside, fmt.Sprintf("trials read %s%s, which is none of their copies, not listed in privacy.public, and no extension's", t.kind.title(), t.name))
		}
	}
	slices.Sort(one.tables)
	fault.Tables = one.tables
	switch {
	case len(fault.Wrong) > 0:
		return worldReads{}, fault
	case unseen != "":
		one.unverified = unseen
	case !own && failed:
		one.unverified = fmt.Sprintf("the trials on %s fail before they read a copy", worldName(world, fault.Twin))
	case !own:
		return worldReads{}, fault
	}
	return one, nil
}

const opReads = "count what trials read"

// inTransaction calls f in a transaction of a session that is always rolled back.
func inTransaction(ctx context.Context, conn *pgconn.PgConn, f func() error) error {
	if _, err := conn.Exec(ctx, "BEGIN").ReadAll(); err != nil {
		return &transientError{op: opReads, err: err}
	}
	err := f()
	if !conn.IsClosed() {
		_, _ = conn.Exec(ctx, "ROLLBACK").ReadAll() // the session is closed then
	}
	return err
}

// unlocked calls f, which asks the server something, and releases the locks that this takes: the locks of the
// transaction are those of the trials.
func unlocked[T any](ctx context.Context, conn *pgconn.PgConn, f func() (T, error)) (result T, err error) {
	if _, err = conn.Exec(ctx, "SAVEPOINT dpwatch").ReadAll(); err != nil {
		return result, &transientError{op: opReads, err: err}
	}
	if result, err = f(); err != nil {
		return result, err
	}
	if _, err = conn.Exec(ctx, "ROLLBACK TO SAVEPOINT dpwatch; RELEASE SAVEPOINT dpwatch").ReadAll(); err != nil {
		return result, &transientError{op: opReads, err: err}
	}
	return result, nil
}

// Why what trials read could not be counted: the session was closed by an answer too large to be read, or the server has
// no counters.
var (
	errCutOff    = errors.New("an answer is longer than shadow.max_result, and what its trial read could not be counted")
	errUncounted = errors.New("the server counts no reads (track_counts is off)")
)

// locksQuery returns the relations that the session's transaction has locked: all that its plans name, and more, as what
// a function opens by itself stays locked, too. An advisory lock has the OID 0.
const locksQuery = `SELECT DISTINCT CASE locktype WHEN 'relation' THEN relation ELSE 0 END::pg_catalog.int8, 1
	FROM pg_catalog.pg_lock_status() WHERE pid = pg_catalog.pg_backend_pid() AND locktype IN ('relation', 'advisory')`

// trial runs one trial in a transaction, and adds what it locks to locked; the locks of a trial that fails are released
// before they can be seen. state is its SQLSTATE if it fails.
func (r *reading) trial(ctx context.Context, conn *pgconn.PgConn, locked map[string]bool) (state string, err error) {
	limit := millis(r.exec.player.opt.StatementTimeout)
	if _, err := conn.Exec(ctx, "SAVEPOINT dpwatch; SET LOCAL statement_timeout = "+limit+"; SET LOCAL lock_timeout = "+limit).ReadAll(); err != nil {
		return "", &transientError{op: opReads, err: err}
	}
	one := *r // with the statements of a sequence in turn
	for i := 0; i <= len(r.exec.stmt.Then) && state == ""; i++ {
		one.exec.bind(r.exec.stmt.step(i))
		result := conn.ExecParams(ctx, one.exec.stmt.Worlds[r.world], one.exec.values, one.exec.oids, one.exec.format, nil)
		for result.NextRow() { //nolint:revive // the rows are of no interest
		}
		if _, err := result.Close(); err != nil {
			if state, err = r.exec.classify(conn, r.world, err); err != nil {
				return "", err
			}
		}
	}
	if conn.IsClosed() {
		return "", errCutOff
	}
	if state == "" {
		locks, err := askCounters(ctx, conn, locksQuery)
		if err != nil {
			return "", err
		}
		for oid := range locks {
			locked[oid] = true
		}
	}
	if _, err := conn.Exec(ctx, "ROLLBACK TO SAVEPOINT dpwatch; RELEASE SAVEPOINT dpwatch").ReadAll(); err != nil {
		return "", &transientError{op: opReads, err: err}
	}
	return state, nil
}

// countersQuery returns the relations that the session's transaction has read, with a number that grows with each read:
// scans of the table and of its indexes, which are counted also if the table is empty, and blocks, since not every
// access to a table is a scan.
const countersQuery = `SELECT coalesce(i.indrelid, c.oid)::pg_catalog.int8, pg_catalog.sum(pg_catalog.pg_stat_get_xact_numscans(c.oid) +
		CASE WHEN i.indrelid IS NULL THEN pg_catalog.pg_stat_get_xact_blocks_fetched(c.oid) ELSE 0 END)::pg_catalog.int8
	FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
	WHERE c.relkind IN ('r', 'm', 'i') AND c.oid >= 16384
	AND (pg_catalog.pg_stat_get_xact_numscans(c.oid) > 0 OR pg_catalog.pg_stat_get_xact_blocks_fetched(c.oid) > 0) GROUP BY 1`

// askCounters returns numbers by the OID of a relation.
func askCounters(ctx context.Context, conn *pgconn.PgConn, sql string) (map[string]int64, error) {
	rows, err := ask(ctx, conn, opReads, 2, sql)
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for _, row := range rows {
		if out[string(row[0])], err = strconv.ParseInt(string(row[1]), 10, 64); err != nil {
			return nil, fmt.Errorf("%s: %w", opReads, err)
		}
	}
	return out, nil
}

// grown returns the relations whose counters grew by n at least.
func grown(before, after map[string]int64, n int64) (oids []string) {
	for oid, count := range after {
		if count >= before[oid]+n {
			oids = append(oids, oid)
		}
	}
	return oids
}
