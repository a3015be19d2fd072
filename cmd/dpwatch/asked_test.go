package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestAskedClaims: the engine states the claim of each query, whether it is in the database or beside it and whatever
// the protocol. It sees the statement on D0, in a transaction that only reads.
func TestAskedClaims(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	pgtest.Exec(t, dsn, `CREATE TABLE people AS TABLE d0.people; CREATE TABLE asked (statement text);
		CREATE FUNCTION dp_cost(statement text) RETURNS TABLE (epsilon float8, delta float8) LANGUAGE plpgsql AS $$
		BEGIN
			IF current_setting('transaction_read_only') <> 'on' OR statement !~ '"d0"."?people' THEN
				RETURN QUERY SELECT 77::float8, 0::float8; -- no other answer has it
			ELSIF statement LIKE '%grp = 1%' THEN
				RAISE 'no budget for %', statement;
			ELSIF statement NOT LIKE '%grp = 2%' THEN
				RETURN QUERY SELECT current_setting('dp.scale', true)::float8, 1e-6::float8;
			END IF;
		END $$`)
	cfg := pgtest.Connect(t, dsn).Config()
	for name, engine := range map[string]string{"in the database": "", "beside it": fmt.Sprintf(", engine: {dsn: %q}", dsn), "by simple queries": fmt.Sprintf(", engine: {dsn: %q, protocol: simple}", dsn)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: "%s:%d"}
admin: {listen: 127.0.0.1:0}
shadow: {dsn: %q, twin: none%s}
privacy: {protected: [public.people]}
claims: {ask: "SELECT epsilon, delta FROM dp_cost($1)", default: {epsilon: 3}, safe_functions: [noisy]}
audit: {max_trials: 400}
ledger: {dsn: memory}
`, cfg.Host, cfg.Port, dsn, engine))
			audit := func(sql string, args ...string) result {
				return call(t, "", append([]string{"audit", "--config", path, "--max-trials", "30", "-o", "json", "--sql", sql}, args...)...)
			}
			claimed := func(r result) string {
				report, _ := r.object(t)["claimed"].(map[string]any)
				return fmt.Sprint(report["epsilon"], " ", report["delta"], " ", report["source"])
			}
			const count = "SELECT noisy(count(*), 5) FROM people"
			if got := claimed(audit(count + " WHERE grp = 2")); got != "3 0 default" {
				t.Errorf("an engine that states nothing: %s", got)
			}
			if got := claimed(audit(count+" WHERE grp = 1", "--epsilon", "2")); got != "2 0 flag" {
				t.Errorf("--epsilon: %s", got)
			}
			r := audit(count + " WHERE grp = 1")
			r.want(t, exitFailure, "the engine's answer to claims.ask is an error", "P0001")
			if strings.Contains(r.stderr, "no budget") {
				t.Errorf("the message of the engine: %s", r.stderr)
			}
			if out := call(t, "", "doctor", "--config", path).stdout; !strings.Contains(out, "claims.ask") || !strings.Contains(out, "states no claim for") {
				t.Errorf("doctor:\n%s", out)
			}
			s := &sidecar{direct: dsn}
			s.run(t, path)
			conn := s.connect(t)
			exec0(t, conn, "SET dp.scale = '0.25'")
			exec0(t, conn, "SELECT noisy(count(*), 0.2) FROM people")
			s.until(t, "a violation of the claim that the engine states", func() bool {
				_, body := s.get(t, "/api/status")
				return strings.Contains(body, `"source":"engine"`) && strings.Contains(body, `"verdict":"violation"`) && strings.Contains(body, `"epsilon":0.25`)
			})
		})
	}
}
