package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// runGateway starts dpwatch run in front of a production engine with the data of public.visits. Trials go to separate
// engines: one for all copies, or one for each.
func runGateway(t *testing.T, start func(t *testing.T, source, broken string) string, broken string, worlds, honest bool) *sidecar {
	t.Helper()
	s := &sidecar{direct: visits(t)}
	pgtest.Exec(t, s.direct, "CREATE TABLE visits AS SELECT * FROM d0.visits")
	production, err := url.Parse(start(t, s.direct, broken))
	if err != nil {
		t.Fatal(err)
	}
	engines := fmt.Sprintf("engine: {dsn: %q}", start(t, s.direct, broken))
	if worlds {
		engines = fmt.Sprintf("engine: {dsn: [%q, %q]}", start(t, s.direct+"&search_path=d0", broken), start(t, s.direct+"&search_path=d1", broken))
	}
	limits := "measure_trials: 0, max_trials: 10000"
	if honest { // fails a test at most once in a million runs
		limits = "measure_trials: 0, max_trials: 500, confidence: 0.999999"
	}
	s.run(t, file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q}
admin: {listen: 127.0.0.1:0}
shadow: {dsn: %q, %s}
privacy: {protected: [public.visits]}
claims: {safe_functions: [dp_count, dp_sum], default: {epsilon: 1}}
audit: {%s, share: 1}
`, production.Host, s.direct, engines, limits)))
	return s
}

// TestRunGateway: run works with an engine beside the database, captures its clients' queries in both protocols, and
// replays them on separate engines.
func TestRunGateway(t *testing.T) {
	t.Parallel()
	start := gateways(t)
	for i, tc := range []struct {
		name, broken, sql, verdict string
		worlds                     bool
		mode                       pgx.QueryExecMode
	}{
		{"honest", "none", "SELECT dp_count(*) FROM visits", "no_evidence", false, pgx.QueryExecModeSimpleProtocol},
		{"honest, an engine for each world", "none", "SELECT dp_count(*), dp_sum(cost) FROM visits WHERE day < 30 -- mine", "no_evidence", true, pgx.QueryExecModeExec},
		{"half the noise", "half-noise", "SELECT dp_count(*) FROM public.visits", "violation", false, pgx.QueryExecModeSimpleProtocol},
		{"the same noise always", "seeded", "SELECT dp_count(*) FROM visits", "violation", false, pgx.QueryExecModeCacheStatement},
		{"no clipping", "no-clip", "SELECT dp_count(*) FROM visits", "violation", false, pgx.QueryExecModeExec},
		{"no clipping, an engine for each world", "no-clip", "SELECT dp_sum(cost) AS total FROM visits", "violation", true, pgx.QueryExecModeSimpleProtocol},
	} {
		if longtest.Other(i, 3) {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := runGateway(t, start, tc.broken, tc.worlds, tc.broken == "none")
			conn := pgtest.Connect(t, "postgres://dpwatch@"+s.addr+"/shadow?sslmode=disable")
			exec0(t, conn, tc.sql, tc.mode)
			s.until(t, "the verdict", func() bool {
				a := s.status(t).Audit
				return len(a.Audits) == 1 && a.Audits[0].State == "decided"
			})
			a := s.status(t).Audit.Audits[0]
			if a.Report.Verdict != tc.verdict || a.Report.Claimed.Epsilon != 1 || a.Trouble != "" {
				t.Errorf("want %s: %+v", tc.verdict, a)
			}
			if log := s.log.String(); !strings.Contains(log, "refuses the settings default_transaction_read_only") {
				t.Error("the settings that the engine refuses are not in the log")
			}
		})
	}
}

// Audits through an engine that reads the copy of another schema are inconclusive, with what it reads; traffic continues.
func TestRunGatewayOfAnotherWorld(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	start := gateways(t)
	s := &sidecar{direct: visits(t)}
	pgtest.Exec(t, s.direct, "CREATE TABLE visits AS SELECT * FROM d0.visits")
	engine := start(t, s.direct+"&search_path=d0", "none")
	production, err := url.Parse(engine)
	if err != nil {
		t.Fatal(err)
	}
	path := file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q}
admin: {listen: 127.0.0.1:0}
shadow: {dsn: %q, engine: {dsn: [%q, %q]}}
privacy: {protected: [public.visits]}
claims: {safe_functions: [dp_count], default: {epsilon: 1}}
audit: {share: 1}
`, production.Host, s.direct, engine, engine))
	call(t, "", "doctor", "--config", path).want(t, exitDone, "which copies it reads: the engine does not answer the statement that was tried: SQLSTATE 0A000")
	s.run(t, path)
	conn := pgtest.Connect(t, "postgres://dpwatch@"+s.addr+"/shadow?sslmode=disable")
	exec0(t, conn, "SELECT dp_count(*) FROM visits", pgx.QueryExecModeSimpleProtocol)
	s.until(t, "the verdict", func() bool {
		a := s.status(t).Audit
		return len(a.Audits) == 1 && a.Audits[0].Report.Verdict == "inconclusive" && strings.Contains(a.Audits[0].Report.Reason, "read d0.visits, a copy of another world: let its source find the tables in d1")
	})
	exec0(t, conn, "SELECT dp_count(*) FROM visits", pgx.QueryExecModeSimpleProtocol)
}
