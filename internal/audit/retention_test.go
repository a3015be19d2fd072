package audit_test

import (
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestRetention: a query that nobody has run for too long is removed from the ledger, except if it has an audit in the
// process.
func TestRetention(t *testing.T) {
	t.Parallel()
	l := newLedgerRig(t, nil)
	stop := l.begin(t)
	l.Submit(query(honestQuery))
	l.decided(t)
	stop()
	pgtest.Exec(t, l.ledger.DSN, `INSERT INTO dpwatch_ledger.queries (engine, key, shape, fingerprint, summary, claim_source, claim_rule, first_seen, last_seen)
		SELECT engine, 'forgotten', shape, fingerprint, summary, claim_source, claim_rule, first_seen, last_seen FROM dpwatch_ledger.queries;
		UPDATE dpwatch_ledger.queries SET last_seen = now() - interval '3 hours'`)
	l.restart(t, func(o *audit.Options) { o.Retention = 2 * time.Hour })
	stop = l.begin(t)
	defer stop()
	eventually.True(t, "a query is removed", func() bool { return l.Status().Ledger.Removed == view.Removed{Queries: 1} }, func() any { return l.Status().Ledger })
	var left string
	if err := pgtest.Connect(t, l.ledger.DSN).QueryRow(t.Context(), "SELECT string_agg(key, ',') FROM dpwatch_ledger.queries").Scan(&left); err != nil || left != l.Status().Audits[0].Key {
		t.Errorf("queries left: %s, %v; want the one with an audit", left, err)
	}
}
