package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestQueuedOverReload: queries that have had no trial keep their places over a reload and a restart, and are in the ledger.
func TestQueuedOverReload(t *testing.T) {
	t.Parallel()
	const queries = 20 // places of one shape
	s := startSidecar(t, "LEDGER NO WORKERS")
	conn := s.connect(t)
	for i := range queries {
		exec0(t, conn, fmt.Sprintf("SELECT noisy(count(*), 4) FROM people WHERE id <> %d /*dp_epsilon='0.5'*/", i))
	}
	queued := func() bool {
		audits := s.status(t).Audit.Audits
		for _, a := range audits {
			if a.State != "queued" {
				t.Fatalf("an audit is %s", a.State)
			}
		}
		return len(audits) == queries
	}
	s.until(t, "every query has a place", queued)
	text, err := os.ReadFile(s.config)
	if err == nil {
		err = os.WriteFile(s.config, []byte(strings.Replace(string(text), "share: 1,", "share: 0.5,", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := s.auditor(t, 0)
	if err := s.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.auditor(t, before)
	s.until(t, "the auditor has been replaced, and every query has its place", func() bool {
		return strings.Count(s.log.String(), "audits restored from the ledger") == 2 && queued()
	})
	if err := syscall.Kill(s.auditor(t, before), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.until(t, "also after the auditor was killed", func() bool {
		return strings.Count(s.log.String(), "audits restored from the ledger") == 3 && queued()
	})
	call(t, "", "coverage", "--config", s.config).want(t, exitDone, "queued")
}
