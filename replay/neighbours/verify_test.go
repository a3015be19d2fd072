package neighbours_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// TestVerifyAgainstSource damages all worlds alike, so that the pairs still agree: only the comparison of D0 with the
// source shows it.
func TestVerifyAgainstSource(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	o := shop(t)
	run(t, o.Target, "CREATE ROLE nbr_verify")
	o.Grant = []string{"nbr_verify"}
	o.Workers = 1
	create(t, o)
	verified(t, o)
	for i, tc := range []struct{ name, spoil, fix, want string }{
		{"an index is lost", "DROP INDEX w.users_lower", "CREATE INDEX users_lower ON w.users (lower(email)) WHERE mood <> 'sad'", "the source has, and d0 has not: index users_lower"},
		{"an index is invalid", "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'w.users_lower'::regclass", "UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'w.users_lower'::regclass", "the source has, and d0 has not: index users_lower"},
		{"an index more", "CREATE INDEX more ON w.visits (ms)", "DROP INDEX w.more", "d0 has, and the source has not: index more"},
		{"row security", "ALTER TABLE w.visits ENABLE ROW LEVEL SECURITY", "ALTER TABLE w.visits DISABLE ROW LEVEL SECURITY", "row security is on for visits"},
		{"a policy", "CREATE POLICY p ON w.visits USING (true)", "DROP POLICY p ON w.visits", "visits has the row security policy p"},
		{"a sequence's value", "SELECT setval('w.numbers', 100000)", "SELECT setval('w.numbers', 777)", "sequence numbers of d0 is ahead of the source's"},
		{"a sequence's increment", "ALTER SEQUENCE w.numbers INCREMENT 7", "ALTER SEQUENCE w.numbers INCREMENT 5", "d0 has, and the source has not: sequence numbers"},
		{"a rule", "CREATE RULE r AS ON DELETE TO w.visits DO INSTEAD NOTHING", "DROP RULE r ON w.visits", "visits has the rule r"},
		{"statistics are gone", "DELETE FROM pg_statistic WHERE starelid = 'w.visits'::regclass", "ANALYZE w.visits", "visits has no statistics of mail, ms, page"},
		{"statistics of a partitioned table are gone", "DELETE FROM pg_statistic WHERE starelid = 'w.events'::regclass", "ANALYZE w.events", "events has no statistics of at, id, kind, user_id"},
		{"extended statistics are gone", "DELETE FROM pg_statistic_ext_data WHERE stxoid = (SELECT oid FROM pg_statistic_ext WHERE stxname = 'orders_stat' AND stxnamespace = 'w'::regnamespace)", "ANALYZE w.orders", "orders has no data of the extended statistics orders_stat"},
		{"a statistics target", "ALTER TABLE w.orders ALTER total SET STATISTICS 3", "ALTER TABLE w.orders ALTER total SET STATISTICS 500", "statistics target 3"},
		{"a storage parameter", "ALTER TABLE w.orders SET (parallel_workers = 0)", "ALTER TABLE w.orders RESET (parallel_workers)", "parallel_workers=0"},
		{"an option of a column", "ALTER TABLE w.orders ALTER total SET (n_distinct = 3)", "ALTER TABLE w.orders ALTER total RESET (n_distinct)", "options [n_distinct=3]"},
		{"SELECT is revoked", "REVOKE SELECT ON w.visits FROM nbr_verify", "GRANT SELECT ON w.visits TO nbr_verify", "role nbr_verify lacks SELECT on visits"},
		{"USAGE is revoked", "REVOKE USAGE ON SCHEMA w FROM nbr_verify", "GRANT USAGE ON SCHEMA w TO nbr_verify", "role nbr_verify lacks USAGE on the schema"},
		{"EXECUTE is revoked", "REVOKE EXECUTE ON FUNCTION w.spent FROM nbr_verify, PUBLIC", "GRANT EXECUTE ON FUNCTION w.spent TO nbr_verify", "role nbr_verify lacks EXECUTE on function spent"},
		{"a constraint", "ALTER TABLE w.visits ADD CHECK (ms > -1e9)", "ALTER TABLE w.visits DROP CONSTRAINT visits_ms_check", "d0 has, and the source has not: constraint visits_ms_check"},
		{"a foreign key", "ALTER TABLE w.comments DROP CONSTRAINT comments_parent_id_fkey", "ALTER TABLE w.comments ADD CONSTRAINT comments_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES w.comments (id) NOT VALID", "the source has, and d0 has not: foreign key comments_parent_id_fkey"},
		{"a default", "ALTER TABLE w.accounts ALTER number SET DEFAULT 1", "ALTER TABLE w.accounts ALTER number SET DEFAULT nextval('w.numbers')", "column accounts.number is number 3, type integer: \"number\" integer DEFAULT 1"},
		{"a function's body", "CREATE OR REPLACE FUNCTION w.spent(who int) RETURNS numeric LANGUAGE sql STABLE AS 'SELECT 1.0'", "", "d0 has, and the source has not: function spent"},
		{"a table more", "CREATE TABLE w.further (x int); GRANT SELECT ON w.further TO nbr_verify", "DROP TABLE w.further", "d0 has, and the source has not: table further"},
		{"a column that was added and dropped", "ALTER TABLE w.visits ADD x int; ALTER TABLE w.visits DROP x", "", "d0 has, and the source has not: column number 4 of visits is dropped"},
	} {
		if longtest.Omits(i, 12) {
			continue
		}
		each := func(sql string) {
			for _, world := range []string{"d0", "d1_1", "d1_2"} {
				if sql != "" {
					run(t, o.Target, strings.Split(strings.NewReplacer("w.", world+".", "'w'", "'"+world+"'", "SCHEMA w ", "SCHEMA "+world+" ").Replace(sql), "; ")...)
				}
			}
		}
		each(tc.spoil)
		report, err := neighbours.Verify(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if report.OK() || !slices.ContainsFunc(report.Faults, func(f string) bool { return strings.Contains(f, tc.want) }) {
			t.Errorf("%s: faults\n%s\ndo not hold %q", tc.name, strings.Join(report.Faults, "\n"), tc.want)
		}
		each(tc.fix)
	}
	if _, err := neighbours.Refresh(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	verified(t, o)
	// Faults within the copies are found without the source, too.
	o.Source = ""
	run(t, o.Target, "ALTER TABLE d0.visits ENABLE ROW LEVEL SECURITY; SELECT nextval('d1_2.numbers')")
	report, err := neighbours.Verify(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if report.NotCompared != "neighbours.source is not set" || !slices.Equal(report.Faults, []string{"row security is on for visits"}) {
		t.Errorf("faults %q, not compared: %s", report.Faults, report.NotCompared)
	}
	if want := []string{"sequence numbers is at another value than in D0"}; !slices.Equal(report.Pairs[1].Faults, want) {
		t.Errorf("faults %q, want %q", report.Pairs[1].Faults, want)
	}
}
