package audit_test

import (
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// TestTrialsThatReadTheOriginal: the audit is inconclusive at once and says what was read, whoever ran the trials.
// Other audits go on.
func TestTrialsThatReadTheOriginal(t *testing.T) {
	t.Parallel()
	for name, workers := range map[string]int{"here": 1, "a worker": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, logged := observer.New(zap.WarnLevel)
			options := replay.Options{Copies: []string{"d0", "d1"}, Originals: []string{"public"}}
			l := newLedgerRigOn(t, options, func(o *audit.Options) { o.Workers, o.Logger = workers, zap.New(core) })
			pgtest.Exec(t, l.dsn, `CREATE TABLE people AS TABLE d0.people; CREATE FUNCTION noisy(e int) RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$
				DECLARE n float8; BEGIN EXECUTE 'SELECT count(*) FROM pub' || 'lic.peo' || 'ple' INTO n; RETURN n + random() / 1e9; END $$`)
			stop := l.begin(t)
			if workers == 0 {
				l.worker(t, "one", nil)
			}
			l.Submit(query("SELECT noisy(1) + 0 * count(*) FROM people /*dp_epsilon='1'*/"))
			l.Submit(query(leakyQuery))
			entries := l.decided(t)
			stop()
			const want = "trials do not read the copies: those on D0 (schema d0) read public.people, the original of a copy"
			if r := entries[0].Report; r.Verdict != analysis.Inconclusive || !strings.Contains(r.Reason, want) || r.Trials.D0 != 0 {
				t.Errorf("%s after %d pairs, %q; want inconclusive, %q", r.Verdict, r.Trials.D0, r.Reason, want)
			}
			if r := entries[1].Report; r.Verdict != analysis.Violation {
				t.Errorf("the other audit: %s, %q; want a violation", r.Verdict, r.Reason)
			}
			if n := logged.FilterMessage("an audit is inconclusive").Len(); n != 1 {
				t.Errorf("%d lines in the log, want 1", n)
			}
		})
	}
}
