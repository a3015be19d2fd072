package replay_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// TestHoistedBytes: the disk space of tables is bounded while they are written, whatever the planner estimates; no
// table is left, and the trials continue unhoisted. Each of the larger tables would fill the disk.
func TestHoistedBytes(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t)
	for name, tc := range map[string]struct{ table, reason string }{
		// By the planner's estimate 2 x 500,000 rows of 68 bytes; the actual width is 1,900.
		"wide rows": {`SELECT u.id, g, repeat('x', 1900) AS s FROM %s.u AS u, generate_series(1, 10000) AS g`, "more than"},
		// The planner estimates 1,000 rows for any function.
		"many rows":            {`SELECT u.id, f.s FROM %s.u AS u, endless() AS f (s)`, "more than"},
		"long rows":            {`SELECT u.id, repeat(md5(g::text), 100000) AS s FROM %s.u AS u, generate_series(1, 1000) AS g`, "more than"},
		"by estimate":          {`SELECT u.id, a.s FROM %s.u AS u, (SELECT repeat(note, 2) AS s FROM %s.t) AS a, %s.t AS b, %s.t AS c`, "about"},
		"no more than allowed": {`SELECT u.id, g, repeat('x', 900) AS s FROM %s.u AS u, generate_series(1, 20) AS g`, ""},
		"no columns":           {`SELECT FROM %s.u AS u WHERE cap > 3`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt := options(dsn)
			opt.HoistBytes = 64 << 20
			p := player(t, opt)
			sql := `WITH big AS MATERIALIZED (` + tc.table + `) SELECT count(*) FROM big WHERE noise() < 9`
			s := replay.Statement{Hoist: replay.ForceHoisting(), Params: []capture.Param{}}
			if tc.reason != "" { // unhoisted trials would take as long; the decision comes before any of them counts
				reason := replay.Rehearse(t.Context(), p, worldsOf(sql))
				if !strings.Contains(reason, tc.reason) || !strings.Contains(reason, "audit.hoist_space") {
					t.Errorf("reason %q", reason)
				}
			} else {
				if _, err := rounds(t, p, s, sql, 110); err != nil {
					t.Fatal(err)
				}
				if r := s.Hoist.Report(); !r.Hoisted {
					t.Errorf("%+v, want it hoisted", r)
				}
			}
			if held := replay.HoistSpace(p); held != 0 {
				t.Errorf("%d bytes are held when all sessions are closed", held)
			}
		})
	}
}

// worldsOf returns a query's text on D0 and on D1.
func worldsOf(sql string) []string {
	return []string{strings.ReplaceAll(sql, "%s", "d0"), strings.ReplaceAll(sql, "%s", "d1")}
}

// TestHoistedBytesTogether: the space of all sessions together is bounded; a later audit gets the reason, and is
// hoisted when space is free again.
func TestHoistedBytesTogether(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	dsn := hoistShadow(t)
	opt := options(dsn)
	opt.HoistBytes = 16 << 20
	p := player(t, opt)
	sql := `WITH big AS MATERIALIZED (SELECT u.id, g, repeat('x', 900) AS s FROM %s.u AS u, generate_series(1, 20) AS g)
		SELECT count(*) FROM big WHERE id > noise()`
	var runs []*replay.Run
	hoisted := 0
	for range 8 {
		s := replay.Statement{Worlds: worldsOf(sql), Hoist: replay.ForceHoisting()}
		run, err := p.Start(s, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer run.Close()
		runs = append(runs, run)
		if _, err := run.Rounds(t.Context(), 110); err != nil {
			t.Fatal(err)
		}
		switch r := s.Hoist.Report(); {
		case r.Hoisted:
			hoisted++
		case !strings.Contains(r.Reason, "audit.hoist_space"):
			t.Errorf("%+v", r)
		}
		if held := replay.HoistSpace(p); held > opt.HoistBytes {
			t.Errorf("%d bytes are held, want %d at most", held, opt.HoistBytes)
		}
	}
	if hoisted == 0 || hoisted == len(runs) {
		t.Fatalf("%d of %d are hoisted, want some", hoisted, len(runs))
	}
	for _, run := range runs {
		run.Close()
	}
	s := replay.Statement{Worlds: worldsOf(sql), Hoist: replay.ForceHoisting()}
	run, err := p.Start(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if _, err := run.Rounds(t.Context(), 110); err != nil || !s.Hoist.Report().Hoisted {
		t.Errorf("%v, %+v; want it hoisted when the others are closed", err, s.Hoist.Report())
	}
}

// TestSpillLimit: a trial that exceeds temp_file_limit has the outcome 53400, which is not a transient error.
func TestSpillLimit(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t)
	conn := pgtest.Connect(t, dsn)
	database := conn.Config().Database
	pgtest.Exec(t, dsn, `ALTER DATABASE "`+database+`" SET temp_file_limit = '1MB'`, `ALTER DATABASE "`+database+`" SET work_mem = '64kB'`)
	got, err := rounds(t, player(t, options(dsn)), replay.Statement{}, `SELECT count(*) FROM (SELECT u.id, g FROM %s.u, generate_series(1, 20000) AS g ORDER BY md5(g::text), 1) AS a`, 2)
	if err != nil || len(got) != 2 || got[0][0].SQLState != "53400" {
		t.Errorf("%+v, %v; want the outcome 53400", got, err)
	}
}
