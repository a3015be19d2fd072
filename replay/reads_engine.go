package replay

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// identityQuery returns what identifies a server process and its database, whatever the settings of the session are.
const identityQuery = `SELECT pg_catalog.pg_backend_pid()::text,
	pg_catalog.concat(pg_catalog.to_char(pg_catalog.timezone('UTC', pg_catalog.pg_postmaster_start_time()), 'YYYYMMDDHH24MISSUS'), ' ', oid)
	FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()`

// session opens a session for trials that shows its own counters. elsewhere says that it is one of
// another database than Options.DSN. The error is errNotExact for an engine that is not PostgreSQL itself, or a pooler.
func (r *reading) session(ctx context.Context) (conn *pgconn.PgConn, elsewhere string, err error) {
	p := r.exec.player
	if len(p.engines) == 0 {
		conn, err = p.connect(ctx, r.exec.stmt)
		return conn, "", err
	}
	conn, err = r.exec.openEngine(ctx, min(r.place(), len(p.engines)-1))
	if err != nil {
		return nil, "", err
	}
	there, err := askRow(ctx, conn, opReads, 2, identityQuery)
	if err != nil || string(there[0]) != strconv.FormatUint(uint64(conn.PID()), 10) {
		_ = conn.Close(ctx)
		if ctx.Err() != nil {
			return nil, "", ctx.Err()
		}
		return nil, "", errNotExact
	}
	here, err := p.askOnce(ctx, opReads, 2, identityQuery)
	if err != nil {
		_ = conn.Close(ctx)
		return nil, "", err
	}
	if len(here) != 1 || string(here[0][1]) != string(there[1]) {
		elsewhere = fmt.Sprintf("%s is another database than that of shadow.dsn, whose copies are checked", p.engines.name(r.place()))
	}
	return conn, elsewhere, nil
}

// name names the engine of a world.
func (e engines) name(world int) string {
	cfg := e[min(world, len(e)-1)]
	return fmt.Sprintf("the engine %s at %s:%d", cfg.Database, cfg.Host, cfg.Port)
}

// A server session reports its scan counts when it becomes idle and its last report is at least a second old (pgstat.c,
// PGSTAT_MIN_INTERVAL), when it ends, or after it was idle for ten seconds. If an engine keeps its sessions to the
// source open, a further trial a second later makes them report. If furtherTrials such trials show no scans, none are
// expected: the limit is a number of trials and not a time, because everything takes longer on a busy machine.
const (
	scanInterval  = 1100 * time.Millisecond
	furtherTrials = 4
)

// countedTrials is the number of trials that run through an engine to find what it reads: every table that they read is
// scanned at least as often. A smaller number of scans may come from other sessions, or from a delayed report, and is
// ignored.
const countedTrials = 8

// scansQuery counts the scans of tables by all sessions. Views have no counts.
const scansQuery = `SELECT relid::pg_catalog.int8, coalesce(seq_scan, 0) + coalesce(idx_scan, 0) FROM pg_catalog.pg_stat_user_tables`

// countReads is Reads for engines whose sessions do not show what they read: a few trials of each world run alone, and
// the counters of the shadow database show which tables were read. It is exact enough for one query, the first; what it
// found holds for all later ones. If the counters show no reads (an engine that caches its data, copies made of views,
// a source elsewhere), that is unverified.
func (p *Player) countReads(ctx context.Context, r *Run) (all Reads, err error) {
	select {
	case p.verifying <- struct{}{}:
		defer func() { <-p.verifying }()
	case <-ctx.Done():
		return all, ctx.Err()
	}
	key := fmt.Sprint(r.exec.stmt.Places)
	if found, ok := p.counted[key]; ok {
		return Reads{Unverified: found.Unverified, Beside: found.Beside}, nil
	}
	p.trials.Lock() // trials of other Runs wait: they would be counted as well
	defer p.trials.Unlock()
	conn, err := p.connect(ctx, Statement{})
	if err != nil {
		return all, err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	unseen := false       // the counters show nothing: for further worlds that would take the same time
	for world := range r.exec.stmt.Worlds {
		c := counting{Run: r, conn: conn, world: world, place: r.exec.stmt.place(world)}
		var one worldReads
		if unseen {
			err = c.run(ctx, countedTrials)
		} else {
			one, err = c.verify(ctx)
		}
		switch {
		case err != nil:
			return all, err
		case one.tables == nil && c.fails():
			return Reads{}, c.failing()
		case !unseen:
			all.add(one)
		}
		unseen = unseen || one.tables == nil
	}
	p.counted[key] = all
	return all, nil
}

// counting is the search for what trials of a world read through an engine, by the counters of the whole database.
type counting struct {
	*Run
	conn  *pgconn.PgConn // of the shadow database
	world int            // of the statement
	place int            // of the world among the copies

	trials, failed int    // that ran so far
	state          string // SQLSTATE of the last failure
}

// fails reports whether each trial so far has failed. What is wrong may be that the engine does not know the copies.
func (c *counting) fails() bool { return c.failed == c.trials }

func (c *counting) failing() error {
	p := c.exec.player
	return &ReadsError{World: c.place, Twin: c.place >= len(p.opt.Copies), Schema: p.opt.schemas()[c.place], Fails: c.state, engine: p.engines.name(c.place)}
}

// verify returns what trials read; without tables, the counters show no reads of copies or originals. What trials must
// not read, or read besides the copies, is found twice in a row, because the reports of sessions that read before may
// come at any time.
func (c *counting) verify(ctx context.Context) (worldReads, error) {
	engines, opt := c.exec.player.engines, &c.exec.player.opt
	for again := false; ; again = true {
		read, err := c.read(ctx)
		if err != nil {
			return worldReads{}, err
		}
		if !slices.ContainsFunc(read, func(t relation) bool { return len(t.worlds) > 0 || t.kind == kindOriginal || t.kind == kindOther }) {
			return worldReads{unverified: fmt.Sprintf("cannot verify that %s reads the copies in schema %s: make sure that its source finds the tables there", engines.name(c.place), opt.schemas()[c.place])}, nil
		}
		one, fault := (&reading{c.exec, c.world}).judge(read, false, "")
		if fault == nil && len(one.beside) == 0 {
			return one, nil
		}
		names, err := c.busy(ctx)
		if err != nil {
			return worldReads{}, err
		}
		if len(names) > 0 { // what they read may be read by them alone
			read = slices.DeleteFunc(read, func(t relation) bool { return slices.Contains(names, t.name) })
			if one, fault = (&reading{c.exec, c.world}).judge(read, true, ""); one.tables == nil {
				one.tables = []string{}
			}
			one.unverified = fmt.Sprintf("cannot verify what %s reads: other sessions read %s at the same time", engines.name(c.place), strings.Join(names, ", "))
		}
		if again || fault == nil && len(one.beside) == 0 {
			return one, fault
		}
	}
}

// read runs trials and returns what was read countedTrials times meanwhile. It returns as soon as a copy of the world is
// part of it.
func (c *counting) read(ctx context.Context) (read []relation, err error) {
	before, err := askCounters(ctx, c.conn, scansQuery)
	if err != nil {
		return nil, err
	}
	if err := c.run(ctx, countedTrials); err != nil {
		return nil, err
	}
	for further := 0; ; further++ {
		for start := time.Now(); ; {
			after, err := askCounters(ctx, c.conn, scansQuery)
			if err != nil {
				return nil, err
			}
			if read, err = c.exec.player.opt.relations(ctx, c.conn, grown(before, after, countedTrials), nil); err != nil {
				return nil, err
			}
			if time.Since(start) > scanInterval || slices.ContainsFunc(read, func(t relation) bool { return t.copyOf(c.place) }) {
				break
			}
			if err := pause(ctx, 100*time.Millisecond); err != nil {
				return nil, err
			}
		}
		if further == furtherTrials || slices.ContainsFunc(read, func(t relation) bool { return t.copyOf(c.place) }) {
			return read, nil
		}
		if err := c.run(ctx, 1); err != nil {
			return nil, err
		}
	}
}

// run runs trials in a new session of the engine. If the engine then ends its session at the source, the counts are
// reported at once.
func (c *counting) run(ctx context.Context, trials int) error {
	engine, err := c.exec.openEngine(ctx, min(c.place, len(c.exec.player.engines)-1))
	if err != nil {
		return err
	}
	defer engine.Close(ctx) //nolint:errcheck // nothing to be done about it
	for range trials {
		o, err := c.exec.engineTrial(ctx, &session{}, engine, c.exec.stmt.Worlds[c.world])
		if err != nil {
			return err
		}
		if c.trials++; o.Failed() {
			c.failed, c.state = c.failed+1, o.SQLState
		}
		if engine.IsClosed() { // after a timeout
			return nil
		}
	}
	return nil
}

// busyWindows is the number of times that busy looks: a late report of an earlier session shows once.
const busyWindows = 3

// busy returns the tables that other sessions keep reading in that database: originals, in one that is production's.
func (c *counting) busy(ctx context.Context) (names []string, err error) {
	for range busyWindows {
		if names, err = c.others(ctx); err != nil || len(names) == 0 {
			return nil, err
		}
	}
	return names, nil
}

// others returns the tables, except copies of the world, that are read while no trials run.
func (c *counting) others(ctx context.Context) (names []string, err error) {
	before, err := askCounters(ctx, c.conn, scansQuery)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, 2*scanInterval); err != nil {
		return nil, err
	}
	after, err := askCounters(ctx, c.conn, scansQuery)
	if err != nil {
		return nil, err
	}
	read, err := c.exec.player.opt.relations(ctx, c.conn, grown(before, after, 1), nil)
	for _, t := range read {
		if t.kind != kindForeign && !t.of(c.place) {
			names = append(names, t.name)
		}
	}
	return names, err
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
