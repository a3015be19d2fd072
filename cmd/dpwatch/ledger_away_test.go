package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestLedgerAwayAtTheStart: queries that are captured before the ledger could be used, by auditors of which two are
// killed, are in it when it is there, or are counted as lost.
func TestLedgerAwayAtTheStart(t *testing.T) {
	t.Parallel()
	direct, state := copies(t), t.TempDir()
	at, err := pgx.ParseConfig(direct)
	if err != nil {
		t.Fatal(err)
	}
	conn := pgtest.Connect(t, direct)
	exec0(t, conn, "CREATE TABLE people AS SELECT * FROM d0.people")
	exec0(t, conn, "CREATE ROLE later_"+at.Database+" LOGIN PASSWORD 'later'") // may not use the ledger yet
	s := &sidecar{direct: direct, environ: []string{"STATE_DIRECTORY=" + state}}
	s.run(t, file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: "%s:%d"}
admin: {listen: 127.0.0.1:0}
shadow: {dsn: %q}
privacy: {protected: [public.people]}
claims: {safe_functions: [noisy], trust: [comment]}
audit: {max_trials: 500, confidence: 0.999999, share: 1, sequences: false}
ledger: {dsn: %q}
`, at.Host, at.Port, replayRole(t, direct, "d0", "d1"), fmt.Sprintf("host=%s port=%d dbname=%s user=later_%[3]s password=later sslmode=disable", at.Host, at.Port, at.Database))))
	client := s.connect(t)
	const each = 200
	sent := 0
	send := func() {
		for range each {
			exec0(t, client, fmt.Sprintf("SELECT noisy(count(*), 4) FROM people WHERE id <> %d /*dp_epsilon='0.5'*/", sent))
			sent++
		}
	}
	pid := 0
	for range 2 {
		pid = s.auditor(t, pid)
		before := spooled(t, state)
		send()
		s.until(t, "they are in the spool", func() bool { return spooled(t, state) > before })
		send()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	s.auditor(t, pid)
	send()
	exec0(t, conn, "GRANT CREATE ON DATABASE "+at.Database+" TO later_"+at.Database)
	var executions, skipped, lost int
	s.until(t, "every query is in the ledger, or counted as lost", func() bool {
		err := conn.QueryRow(t.Context(), `SELECT coalesce((SELECT sum(executions - unplaced) FROM dpwatch_ledger.query_hours), 0)::int, coalesce((SELECT sum(statements) FROM dpwatch_ledger.skipped), 0)::int`).Scan(&executions, &skipped)
		lost = s.metric(t, "dpwatch_statements_lost_total")
		return err == nil && executions+skipped >= sent && spooled(t, state) == 0
	})
	// The skipped ones include the lost ones, of which a few may be there: those of the moment in which an auditor was
	// killed.
	if executions+skipped > sent+each || lost == sent {
		t.Errorf("%d executions and %d skipped in the ledger, %d lost, of %d", executions, skipped, lost, sent)
	}
	t.Logf("%d executions and %d skipped in the ledger, at most %d lost, of %d", executions, skipped, lost, sent)
}

// spooled returns the number of files in the spools below a state directory.
func spooled(t *testing.T, state string) (n int) {
	t.Helper()
	_ = filepath.WalkDir(filepath.Join(state, "spool"), func(path string, e os.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(path, ".queries") || strings.HasSuffix(path, ".batch")) {
			n++
		}
		return nil
	})
	return n
}
