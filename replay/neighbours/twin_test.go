package neighbours_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// TestTwin: the twin has the rows and the definitions of D0, and draws of its own where a copy draws. Verify compares
// the rows, create --replace replaces it with the set, and drop drops it. A set whose records are of a version without
// twins is valid, and gets a twin when it is created again.
func TestTwin(t *testing.T) {
	t.Parallel()
	for _, method := range []neighbours.Method{neighbours.Copy, neighbours.View} {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			o := shop(t)
			run(t, o.Source, "CREATE MATERIALIZED VIEW public.synopsis AS SELECT count(*) + random() AS n FROM public.users")
			o.Protected = append(o.Protected, table("public.synopsis"))
			o.Method, o.D1, o.Choose = method, []string{"d1_1"}, o.Choose[:1]
			create(t, o)
			run(t, o.Target, "ALTER TABLE dpwatch.neighbour_set DROP COLUMN twin")
			verified(t, o)
			if report, err := neighbours.Verify(t.Context(), o); err != nil || report.Twin != nil {
				t.Errorf("a set without a twin has %+v, error %v", report.Twin, err)
			}

			o.Twin, o.Guard, o.GuardLimit = "d0_twin", "d0_guard", 1
			role := "nbr_twin_" + string(method)
			run(t, o.Target, "CREATE ROLE "+role)
			o.Grant = []string{role}
			set, err := neighbours.Refresh(t.Context(), o)
			if err != nil || set.Twin != "d0_twin" || set.Guard != "" {
				t.Fatalf("twin %q, guard %q of tables above its limit, error %v", set.Twin, set.Guard, err)
			}
			o.GuardLimit = 64 << 20
			if set, err = neighbours.Refresh(t.Context(), o); err != nil || set.Guard != "d0_guard" {
				t.Fatalf("guard %q, error %v", set.Guard, err)
			}
			if n := lines(t, o.Target, "SELECT count(*)::text FROM ((TABLE d0.users EXCEPT ALL TABLE d0_guard.users) UNION ALL (TABLE d0_guard.users EXCEPT ALL TABLE d0.users)) x"); n[0] != "0" {
				t.Errorf("%s rows differ between D0 and the guard", n[0])
			}
			verified(t, o)
			report, err := neighbours.Verify(t.Context(), o)
			if err != nil || report.Twin == nil || report.Twin.Schema != "d0_twin" || len(report.Twin.Faults) > 0 {
				t.Fatalf("twin %+v, error %v", report.Twin, err)
			}
			same := lines(t, o.Target, `SELECT format('%s %s', (SELECT count(*) FROM ((TABLE d0.users EXCEPT ALL TABLE d0_twin.users) UNION ALL (TABLE d0_twin.users EXCEPT ALL TABLE d0.users)) x),
				(SELECT n FROM d0.synopsis) = (SELECT n FROM d0_twin.synopsis))`)
			if want := []string{"0 f"}; !slices.Equal(same, want) {
				t.Errorf("rows that differ, and whether the synopsis is the same: %q, want %q", same, want)
			}
			if usage := lines(t, o.Target, "SELECT has_table_privilege($1, 'd0_twin.users', 'SELECT')::text", role); usage[0] != "true" {
				t.Error("the replay role may not read the twin")
			}

			spoil, want := "DELETE FROM d0_twin.visits WHERE ctid = (SELECT min(ctid) FROM d0_twin.visits)", "table visits: other rows than in D0"
			if method == neighbours.View {
				spoil = "CREATE OR REPLACE VIEW d0_twin.visits AS SELECT * FROM d0.visits LIMIT 1"
			}
			run(t, o.Target, spoil)
			report, err = neighbours.Verify(t.Context(), o)
			if err != nil || report.OK() || !strings.Contains(strings.Join(report.Twin.Faults, "; "), want) {
				t.Errorf("after a change: %v, %+v", err, report.Twin)
			}
			if len(report.Guard.Faults) > 0 {
				t.Errorf("guard %+v", report.Guard)
			}
			run(t, o.Target, strings.ReplaceAll(spoil, "d0_twin", "d0_guard"))
			if report, err = neighbours.Verify(t.Context(), o); err != nil || !strings.Contains(strings.Join(report.Guard.Faults, "; "), want) {
				t.Errorf("after a change of the guard: %v, %+v", err, report.Guard)
			}
			if err := neighbours.Drop(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if left := lines(t, o.Target, "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'd0%' OR nspname LIKE 'dpwatch%'"); len(left) > 0 {
				t.Errorf("drop leaves %q", left)
			}
		})
	}
}

// TestTwinNames: the twin needs a separate schema.
func TestTwinNames(t *testing.T) {
	t.Parallel()
	o := options("postgres://a/x", "postgres://a/y")
	o.Twin = "d1_2"
	if err := o.Check(); err == nil || !strings.Contains(err.Error(), "has two roles: d0, each d1, the twin, the guard and the control schema must differ") {
		t.Error(err)
	}
}
