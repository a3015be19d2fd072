package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestAnsweredClaims: the engine states the claim of each answer in a notice, which takes the place of the default, in a
// pipeline, too. A claim that cannot be read is ignored, and one of several statements in a message is not audited. No
// text of a notice leaves the relay: it can hold values of rows. The queries leak epsilon 1.67, so that the claim 2
// holds: a violation of it is reported with a probability of at most 1e-6 (audit.confidence).
func TestAnsweredClaims(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	// A violation of the default claim is found after about 60 pairs, with a gain of 0.29 (standard deviation 0.7) of the
	// logarithm of the wealth in each: the probability that 400 do not suffice is below 1e-10.
	pgtest.Exec(t, dsn, `CREATE TABLE people AS TABLE d0.people;
		CREATE FUNCTION costly(value float8, stated text) RETURNS float8 LANGUAGE plpgsql AS $$
		BEGIN
			RAISE NOTICE 'the patient PATIENTQXZ is one of them';
			RAISE INFO 'dp.epsilon=%', replace(stated, 'name', 'PATIENTQXZ');
			RETURN noisy(value, 0.6);
		END $$`)
	cfg := pgtest.Connect(t, dsn).Config()
	s := &sidecar{direct: dsn}
	s.run(t, file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: "%s:%d"}
admin: {listen: 127.0.0.1:0}
shadow: {dsn: %q, twin: none}
privacy: {protected: [public.people]}
claims: {answer: dp, default: {epsilon: 0.1}, safe_functions: [noisy, costly]}
audit: {measure_trials: 0, max_trials: 400, confidence: 0.999999, share: 1, watch_share: 0}
ledger: {dsn: memory}
`, cfg.Host, cfg.Port, dsn)))
	conn := s.connect(t)
	query := func(stated string) string { return fmt.Sprintf("SELECT costly(count(*), '%s') FROM people", stated) }
	var pipeline pgx.Batch
	for _, sql := range []string{query("2"), query("2 of name"), query("2 dp.delta=1e-6"), "SELECT noisy(count(*), 0.6) FROM people"} {
		pipeline.Queue(sql)
	}
	if err := conn.SendBatch(t.Context(), &pipeline).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.PgConn().Exec(t.Context(), query("1")+"; "+query("9")).ReadAll(); err != nil {
		t.Fatal(err)
	}
	v := s.decided(t, 4)
	got := map[string]int{}
	for _, a := range v.Audit.Audits {
		got[fmt.Sprint(a.Report.Claimed.Epsilon, " ", a.Report.Claimed.Source, " ", a.Report.Verdict)]++
	}
	if got["2 engine no_evidence"] != 2 || got["0.1 default violation"] != 2 {
		t.Errorf("audits: %v", got)
	}
	if v.Audit.Captured != 6 || v.Audit.Skipped["bad_claim"] != 2 {
		t.Errorf("%d captured, skipped %v", v.Audit.Captured, v.Audit.Skipped)
	}
	if n := s.metric(t, "dpwatch_claims_unread_total"); n != 1 {
		t.Errorf("%d claims were not read", n)
	}
	_, status := s.get(t, "/api/status")
	if !strings.Contains(status, `"claim_rule":"claims.answer"`) || !strings.Contains(status, `"delta":0.000001`) && !strings.Contains(status, `"delta":1e-06`) {
		t.Errorf("the status does not show the claims: %s", status)
	}
	if log := s.log.String(); strings.Count(log, "claims.answer") == 0 || strings.Contains(log, "PATIENTQXZ") {
		t.Errorf("log: %s", log)
	}
	if all := s.pages(t) + status; strings.Contains(all, "PATIENTQXZ") {
		t.Error("the text of a notice is on a page")
	}
}
