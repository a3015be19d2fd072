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
// PGSTAT_MIN_INTERVAL), when it ends, or after it was idle for ten seconds. If an engine keeps its sessions to the
// source open, a further trial a second later makes them report. If furtherTrials such trials show no scans, none are
// expected: the limit is a number of trials and not a time, because everything takes longer on a busy machine.
const (
	scanInterval  = 1100 * time.Millisecond
	furtherTrials = 4
)

// scanQuery counts the scans of the tables of schemas, by schema. Views have no counts and are not included.
const scanQuery = `SELECT schemaname, pg_catalog.sum(coalesce(seq_scan, 0) + coalesce(idx_scan, 0))::int8
	FROM pg_catalog.pg_stat_all_tables WHERE schemaname = ANY ($1::text[]) GROUP BY 1`

// verifyCopies verifies once, before the first trial that counts, that each engine reads the copy of its own world, if
// each world has an engine. A few trials run through one engine alone, and the server's counters show which schema's
// tables were read. If an engine reads another copy, the error is a SetupError. If the counters show no reads (an
// engine that caches its data, a copy made of views, a source elsewhere), there is a warning.
func (x *executor) verifyCopies(ctx context.Context) error {
	p := x.player
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
		read, known, err := x.readSchemas(ctx, conn, i)
		switch {
		case err != nil:
			return err
		case !known || len(read) == 0:
			p.warnings.warn(fmt.Sprintf("cannot verify that the engine at %s:%d reads the copy in schema %s: make sure that its source finds the tables there", p.engines[i].Host, p.engines[i].Port, schema))
			if known { // the others would take the same time
				p.verified.Store(true)
				return nil
			}
		case !read[schema]:
			return &SetupError{
				Op:   fmt.Sprintf("engine %s at %s:%d, for schema %s", p.engines[i].Database, p.engines[i].Host, p.engines[i].Port, schema),
				Hint: fmt.Sprintf("it reads %s: let its source find the tables in %s (search_path, say), or correct shadow.engine.dsn", strings.Join(slices.Sorted(maps.Keys(read)), ", "), schema),
			}
		}
	}
	p.verified.Store(true)
	return nil
}

// verifyTrials is the number of trials that run through an engine to find what it reads: every table that they read is
// scanned at least as often. A smaller number of scans may come from other sessions, or from a delayed report, and is
// ignored.
const verifyTrials = 8

// readSchemas runs trials through the engine of a world and returns the schemas whose tables were read verifyTrials
// times meanwhile. It returns as soon as the world's own schema is one of them. known reports whether the server counts
// the scans of that schema.
func (x *executor) readSchemas(ctx context.Context, conn *pgconn.PgConn, world int) (read map[string]bool, known bool, err error) {
	own := x.player.opt.Copies[world]
	before, err := x.scans(ctx, conn)
	if err != nil {
		return nil, false, err
	}
	if _, known = before[own]; !known {
		return nil, false, nil
	}
	engine, err := x.openEngine(ctx, world)
	if err != nil {
		return nil, true, err
	}
	for range verifyTrials {
		if _, err = x.engineTrial(ctx, &session{}, engine, x.stmt.Worlds[world]); err != nil || engine.IsClosed() { // after a timeout
			break
		}
	}
	_ = engine.Close(ctx) // if the engine then ends its session at the source, the counts are reported at once
	if err != nil {
		return nil, true, err
	}
	for further := 0; ; further++ {
		for start := time.Now(); ; {
			if read, err = x.readSince(ctx, conn, before); err != nil || read[own] {
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
		if engine, err = x.openEngine(ctx, world); err != nil {
			return nil, true, err
		}
		_, err = x.engineTrial(ctx, &session{}, engine, x.stmt.Worlds[world])
		_ = engine.Close(ctx)
		if err != nil {
			return nil, true, err
		}
	}
}

// readSince returns the schemas whose tables were read verifyTrials times since before was taken.
func (x *executor) readSince(ctx context.Context, conn *pgconn.PgConn, before map[string]int64) (map[string]bool, error) {
	after, err := x.scans(ctx, conn)
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

// scans returns the numbers of scans by schema.
func (x *executor) scans(ctx context.Context, conn *pgconn.PgConn) (map[string]int64, error) {
	rows, err := ask(ctx, conn, "count the scans of the copies", 2, scanQuery, array(x.player.opt.Copies))
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
