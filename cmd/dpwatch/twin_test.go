package main

import (
	"slices"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestAuditTwin: dpwatch audit controls a violation on a twin of D0, of one query or a sequence, in the database or
// through engines, and says what the control has shown. Answers without noise never differ between D0 and its twin by
// chance; those of the copy with noise fail to with a probability far below 1e-6.
func TestAuditTwin(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	pgtest.Exec(t, dsn, `CREATE SCHEMA d0_twin; CREATE TABLE d0_twin.people AS TABLE d0.people; CREATE SCHEMA d0_part;
		CREATE TABLE d0.stored AS SELECT 0::float8 AS n; CREATE TABLE d0_twin.stored AS SELECT 5::float8 AS n; CREATE TABLE d1.stored AS SELECT 3::float8 AS n`)
	engines := func(schemas ...string) (args []string) {
		for _, schema := range schemas {
			args = append(args, "--engine", dsn+"&search_path="+schema+",public")
		}
		return args
	}
	twin := []string{"--twin", "d0_twin"}
	wrong := []string{"--epsilon", "0.2", "--sql", "SELECT count(*) AS n FROM people"}
	for i, c := range []struct {
		name  string
		args  []string
		state string
		code  int
		want  []string
	}{
		{"alike", slices.Concat(wrong, twin), "passed", exitViolation, []string{"passed: the answers on D0 and its twin are alike in "}},
		{"no twin", wrong, "no_twin", exitViolation, []string{"not done: no twin of D0 (shadow.twin)"}},
		{
			"noise of a copy", slices.Concat(twin, []string{"--epsilon", "1", "--sql", "SELECT noisy(n, 0.5) AS n FROM stored"}), "named", exitInconclusive,
			[]string{
				"answers differ between two copies of the same data", "blocked: the answers on D0 and its twin certainly differ, after ", "differs most",
				"a materialised view or a table with noise", "docs/causes.md#noise_of_a_copy",
			},
		},
		{"a sequence", slices.Concat(wrong, twin, []string{"--sql", "SELECT count(*) FROM people WHERE grp = 2"}), "passed", exitViolation, []string{"passed: "}},
		{
			"an engine of the twin that reads D1", slices.Concat(wrong, twin, engines("d0", "d1", "d1")), "", exitInconclusive,
			[]string{"trials do not read the copies: those on the twin of D0 (schema d0_twin)", "read d1.people, a copy of another world"},
		},
		{"engines", slices.Concat(wrong, twin, engines("d0", "d1", "d0_twin")), "passed", exitViolation, []string{"passed: "}},
		{"without a table", slices.Concat(wrong, []string{"--twin", "d0_part"}), "no_twin", exitViolation, []string{"not done"}},
		{"an engine for all", slices.Concat(wrong, twin, []string{"--engine", dsn}), "passed", exitViolation, []string{"passed: "}},
	} {
		if longtest.Other(i, 2) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"audit", "--dsn", dsn, "--d0", "d0", "--d1", "d1", "--max-trials", "4000", "--confidence", "0.999999"}, c.args...)
			call(t, "", args...).want(t, c.code, c.want...)
			r := call(t, "", append(args, "-o", "json")...)
			r.want(t, c.code)
			report := r.object(t)
			checkContract(t, report)
			control, _ := report["control"].(map[string]any)
			if state, _ := control["state"].(string); state != c.state {
				t.Errorf("control %v, want %q", control, c.state)
			}
			reads, _ := report["reads"].(map[string]any)
			if tables, _ := reads["tables"].(map[string]any); (c.state == "passed" || c.state == "named") && tables["d0_twin"] == nil {
				t.Errorf("the trials on the twin read %v", tables)
			}
		})
	}
	call(t, "", append([]string{"audit", "--dsn", dsn, "--d0", "d0", "--d1", "d1", "--twin", "d1"}, wrong...)...).want(t, exitFailure, "--twin d1 is also --d0 or a --d1")
	call(t, "", append([]string{"audit", "--dsn", dsn, "--d0", "d0", "--d1", "d1", "--twin", "d0_part"}, wrong...)...).
		want(t, exitViolation, "d0_part.people does not exist: run `dpwatch neighbours create --replace`, create the copy, or set shadow.twin: none")
}
