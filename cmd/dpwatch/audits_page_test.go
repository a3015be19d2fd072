package main

import (
	"encoding/json"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// checkPages checks that the pages of audits together have each audit once, and that an audit of the ledger alone is
// shown.
func (s *sidecar) checkPages(t *testing.T, want []decidedAudit) {
	t.Helper()
	seen, cursor := map[string]int{}, ""
	for range want {
		_, body := s.get(t, "/api/audits?limit=1&cursor="+cursor)
		var page struct {
			Audits  []decidedAudit
			LeftOut int    `json:"left_out"`
			Next    string `json:"next_cursor"`
		}
		if err := json.Unmarshal([]byte(body), &page); err != nil || len(page.Audits) != 1 || page.LeftOut != len(want)-len(seen)-1 || (page.Next == "") != (page.LeftOut == 0) {
			t.Fatalf("page %d: %v\n%s", len(seen), err, body)
		}
		seen[page.Audits[0].ID]++
		cursor = page.Next
	}
	for _, a := range want {
		if seen[a.ID] != 1 {
			t.Errorf("audit %s is on %d pages", a.ID, seen[a.ID])
		}
	}
	for _, query := range []string{"limit=0", "limit=1001", "limit=x", "cursor=x", "state=x", "verdict=x"} {
		if status, body := s.get(t, "/api/audits?"+query); status != 400 {
			t.Errorf("%s: status %d, %s; want 400", query, status, body)
		}
	}
	pgtest.Exec(t, s.direct, `INSERT INTO dpwatch_ledger.queries (engine, key, shape, fingerprint, summary, epsilon, delta, claim_source, claim_rule, executions, first_seen, last_seen)
		VALUES ('elsewhere', 'feed0123456789', '', '', 'SELECT feed', 0.5, 0, 'comment', '', 17, now(), now());
		INSERT INTO dpwatch_ledger.audits (query, state, verdict, trials, epsilon_lower, processes, data_epoch)
		SELECT id, 'decided', 'violation', 321, 0.75, 1, '' FROM dpwatch_ledger.queries WHERE engine = 'elsewhere';
		INSERT INTO dpwatch_ledger.events (query, state, verdict, reason) SELECT id, 'decided', 'violation', 'the bound exceeds the claim' FROM dpwatch_ledger.queries WHERE engine = 'elsewhere'`)
	call(t, "", "explain", "feed", "--full", "--address", s.admin).want(t, exitDone, "audit feed01234567: violation", "elsewhere", "17, first", "0.75", "321", "the bound exceeds the claim")
	call(t, "", "explain", "dead", "--address", s.admin).want(t, exitFailure, `no audit "dead", neither in memory nor in the ledger`)
}
