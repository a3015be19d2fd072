package replay

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A server session reports its scan counts when it becomes idle and its last report is at least a second old (pgstat.c,
// PGSTAT_MIN_INTERVAL), when it ends, or when it was idle for ten seconds. An engine that keeps its sessions at the source
// would delay the report for that time, so a further trial a second later triggers it. An engine without a report after
// furtherTrials such trials never reports. The number of trials counts and not the time, because everything takes longer on
// a busy machine.
const (
	scanInterval  = 1100 * time.Millisecond
	furtherTrials = 4
)

// scanQuery counts the scans of the tables of schemas, by schema. Views have no counts and are not included.
const scanQuery = `SELECT schemaname, pg_catalog.sum(coalesce(seq_scan, 0) + coalesce(idx_scan, 0))::int8
	FROM pg_catalog.pg_stat_all_tables WHERE schemaname = ANY ($1::text[]) GROUP BY 1`

// proveWorlds verifies once, before the first trial counts, that each engine reads the copy of its own world, if each world
// has an engine: a few trials run through it alone, and the server's counters show which schema's tables were read. An
// engine that reads another copy is a SetupError. If the counters show nothing (an engine that caches its data, a copy made
// of views, a source elsewhere), that is a warning.
func (r *Run) verifyCopies(ctx context.Context) error {
	p := r.player
	if p.verified.Load() || len(p.engines) < 2 || len(p.opt.Copies) != len(p.engines) {
		return nil
	}
	select {
	case p.verifying <- struct{}{}: // trials of other Runs wait: they would be counted as well
		defer func() { <-p.verifying }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if p.verified.Load() {
		return nil
	}
	conn, err := p.connect(ctx, Statement{})
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	for i, schema := range p.opt.Copies {
		read, known, err := r.readSchemas(ctx, conn, i)
		switch {
		case err != nil:
			return err
		case !known || len(read) == 0:
			p.warn(fmt.Sprintf("whether the engine at %s:%d reads the copy in schema %s cannot be seen: make sure that its source finds the tables there", p.engines[i].Host, p.engines[i].Port, schema))
			if known { // the others would take the same time
				p.verified.Store(true)
				return nil
			}
		case !read[schema]:
			return &SetupError{
				Op:   fmt.Sprintf("engine %s at %s:%d, for schema %s", p.engines[i].Database, p.engines[i].Host, p.engines[i].Port, schema),
				Hint: fmt.Sprintf("it reads %s: let its source find the tables in %s (search_path, say), or correct shadow.worlds", strings.Join(slices.Sorted(maps.Keys(read)), ", "), schema),
			}
		}
	}
	p.verified.Store(true)
	return nil
}

// proofTrials is the number of trials that go through an engine to see what it reads: every table that they read is scanned
// at least as often. A smaller number of scans may come from other sessions, or from a delayed report, and is ignored.
const verifyTrials = 8

// whatReads sends trials through the engine of a world and returns the schemas whose tables were read proofTrials times
// meanwhile; it returns as soon as the world's own schema is among them. known reports whether the own schema has counts at
// all.
func (r *Run) readSchemas(ctx context.Context, conn *pgconn.PgConn, world int) (read map[string]bool, known bool, err error) {
	own := r.player.opt.Copies[world]
	before, err := r.scans(ctx, conn)
	if err != nil {
		return nil, false, err
	}
	if _, known = before[own]; !known {
		return nil, false, nil
	}
	engine, err := r.openEngine(ctx, world)
	if err != nil {
		return nil, true, err
	}
	for range verifyTrials {
		if _, err = r.engineTrial(ctx, &session{}, engine, r.stmt.Worlds[world]); err != nil || engine.IsClosed() { // after a timeout
			break
		}
	}
	_ = engine.Close(ctx) // if the engine then ends its session at the source, the counts are reported at once
	if err != nil {
		return nil, true, err
	}
	for further := 0; ; further++ {
		for start := time.Now(); ; {
			if read, err = r.readSince(ctx, conn, before); err != nil || read[own] {
				return read, true, err
			}
			if time.Since(start) > scanInterval {
				break
			}
			select {
			case <-ctx.Done():
				return nil, true, ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
		}
		if further == furtherTrials {
			return read, true, nil
		}
		if engine, err = r.openEngine(ctx, world); err != nil {
			return nil, true, err
		}
		_, err = r.engineTrial(ctx, &session{}, engine, r.stmt.Worlds[world])
		_ = engine.Close(ctx)
		if err != nil {
			return nil, true, err
		}
	}
}

// readSince returns the schemas whose tables were read proofTrials times since their scans were counted.
func (r *Run) readSince(ctx context.Context, conn *pgconn.PgConn, before map[string]int64) (map[string]bool, error) {
	after, err := r.scans(ctx, conn)
	if err != nil {
		return nil, err
	}
	read := map[string]bool{}
	for schema, n := range after {
		if n >= before[schema]+verifyTrials {
			read[schema] = true
		}
	}
	return read, nil
}

func (r *Run) scans(ctx context.Context, conn *pgconn.PgConn) (map[string]int64, error) {
	rows, err := ask(ctx, conn, "count the scans of the copies", scanQuery, array(r.player.opt.Copies))
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for _, row := range rows {
		if out[string(row[0])], err = strconv.ParseInt(string(row[1]), 10, 64); err != nil {
			return nil, fmt.Errorf("count the scans of the copies: %w", err)
		}
	}
	return out, nil
}
