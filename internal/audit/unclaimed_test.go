package audit_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// TestUnclaimedReads: reads of protected tables without a claim and without a DP function follow the first rule that
// matches; the same read of the same user is reported once a day.
func TestUnclaimedReads(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a := newRig(t, func(o *audit.Options) {
		o.Now = func() time.Time { return now }
		o.Unclaimed = []recognize.UnclaimedRule{
			{User: "etl", Table: ident.Table{Schema: "public", Name: "people"}, Policy: recognize.PolicyCount},
			{User: "etl", Policy: recognize.PolicyAlert}, // no query reads another table
			{Pattern: regexp.MustCompile(`^SELECT avg`), Policy: recognize.PolicyAudit},
			{Database: "shop", Policy: recognize.PolicyAlert},
		}
	})
	submit := func(user, sql string) {
		q := query(sql)
		q.User = user
		a.Submit(q)
	}
	const read, other = "SELECT * FROM people WHERE id = 777", "SELECT id FROM people"
	submit("etl", read)
	submit("ann", "SELECT avg(id) FROM people")
	submit("ann", honestQuery)
	submit("ann", read)
	submit("ann", "SELECT * FROM people WHERE id = 778")
	submit("ann", other)
	submit("bob", read)
	now = now.Add(25 * time.Hour)
	submit("ann", read)

	type reported struct{ User, Summary string }
	var got []reported
	a.mu.Lock()
	for _, f := range a.findings {
		if f.Kind != finding.UnclaimedRead {
			t.Errorf("%+v", f)
		}
		got = append(got, reported{f.User, f.Summary})
	}
	a.mu.Unlock()
	const summary = "SELECT * FROM people WHERE id = ?"
	want := []reported{{"ann", summary}, {"ann", other}, {"bob", summary}, {"ann", summary}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if s := a.Status(); s.Skipped["unclaimed_read"] != 6 || len(s.Audits) != 2 {
		t.Errorf("skipped %v and %d audits, want 6 unclaimed reads and 2 audits", s.Skipped, len(s.Audits))
	}
}
