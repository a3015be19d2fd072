package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestNeighboursCommand goes through the life cycle of a set, on the demo's production database.
func TestNeighboursCommand(t *testing.T) {
	t.Parallel()
	source, shadow := pgtest.Database(t), pgtest.Database(t)
	pgtest.Exec(t, source, `CREATE TABLE users (id int PRIMARY KEY, income float8);
		CREATE TABLE tx (id int PRIMARY KEY, user_id int REFERENCES users, spent float8);
		INSERT INTO users SELECT i, i FROM generate_series(1, 10) i;
		INSERT INTO tx SELECT i, CASE WHEN i % 2 = 0 THEN 4711 % 10 ELSE 1 + i % 10 END, i FROM generate_series(1, 100) i`)
	role := "replay_of_neighbours_command"
	pgtest.Exec(t, shadow, "CREATE ROLE "+role+" LOGIN PASSWORD 'x'")
	file := filepath.Join(t.TempDir(), "dpwatch.yaml")
	text := fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q}
shadow: {dsn: %q}
privacy: {protected: [public.users, public.tx], unit: {table: public.users, key: id}}
neighbours: {source: %q, target: %q, choose: [{rule: most_rows}, {rule: largest, columns: public.tx.spent}]}
claims: {default: {epsilon: 1}}
`, upstreamOf(t, source), shadow+"&user="+role+"&password=x", source, shadow)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	dpwatch := func(want int, args ...string) (string, string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append(append([]string{"neighbours"}, args...), "--config", file),
			environment{Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr})
		if code != want {
			t.Errorf("%v: exit code %d, want %d: %s", args, code, want, &stderr)
		}
		return stdout.String(), stderr.String()
	}
	if _, errText := dpwatch(exitFailure, "list"); !strings.Contains(errText, "run `dpwatch neighbours create`") {
		t.Errorf("list without a set: %q", errText)
	}
	plan, _ := dpwatch(exitDone, "create", "--plan")
	if !strings.Contains(plan, "public.tx (table)") || strings.Count(plan, "unknown") != 2 || !strings.Contains(plan, "(user_id) -> public.users (id)") || !strings.Contains(plan, "d1_2: a unit by the rule largest public.tx.spent") {
		t.Errorf("plan: %q", plan)
	}
	plan, _ = dpwatch(exitFailure, "create", "--replace", "--plan", "-o", "json")
	var planned struct {
		Tables []struct{ Name string }
		Faults []string
	}
	if err := json.Unmarshal([]byte(plan), &planned); err != nil || len(planned.Tables) != 2 || !slices.Equal(planned.Faults, []string{"the shadow database holds no set to refresh: use create"}) {
		t.Errorf("plan: %q, %v", plan, err)
	}
	out, progress := dpwatch(exitDone, "create")
	if !strings.Contains(out, "d0 and d1_1, d1_2, and the twin d0_twin, and the guard d0_guard, by method copy") || !strings.Contains(progress, "rows") {
		t.Errorf("create: %q, %q", out, progress)
	}
	out, _ = dpwatch(exitDone, "verify")
	if strings.Count(out, "differs from d0 by exactly one unit") != 2 || !strings.Contains(out, "d0_twin: a twin of d0, with the same rows") {
		t.Errorf("verify: %q", out)
	}
	check := call(t, "", "doctor", "--config", file)
	check.want(t, exitDone, "d0 and d1_1, d1_2: verified 20", "the set of copies: epoch", "relation remove, method copy", "d0_twin: has the relations of d0, alike and readable")
	if n := strings.Count(check.stdout, "\nwarning"); n != strings.Count(check.stdout, "its server: is the server of proxy.upstream") {
		t.Errorf("what create granted is called too much: %s", check.stdout)
	}
	other := filepath.Join(t.TempDir(), "other.yaml")
	if err := os.WriteFile(other, []byte(strings.Replace(text, "rule: most_rows", "rule: most_rows, k: 2", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	call(t, "", "doctor", "--config", other).want(t, exitFailure, "the copies are d0 and d1_1, d1_2, relation remove; the configuration has d0 and d1_1, d1_2, d1_3")
	type listed struct {
		Epoch      int64
		Neighbours []struct {
			Schema, Unit, Why string
			Key               []string
		}
	}
	var hidden, shown listed
	out, _ = dpwatch(exitDone, "list", "-o", "json")
	if err := json.Unmarshal([]byte(out), &hidden); err != nil || len(hidden.Neighbours) != 2 {
		t.Fatalf("list: %q, %v", out, err)
	}
	if n := hidden.Neighbours[1]; n.Key != nil || n.Why != "largest public.tx.spent" || !strings.HasPrefix(n.Unit, "unit-") {
		t.Errorf("list shows %+v", n)
	}
	out, _ = dpwatch(exitDone, "list", "--reveal", "-o", "json")
	if err := json.Unmarshal([]byte(out), &shown); err != nil || !slices.Equal(shown.Neighbours[0].Key, []string{"1"}) {
		t.Errorf("list --reveal: %q, %v", out, err)
	}
	if out, _ = dpwatch(exitDone, "list"); strings.Contains(out, "value") {
		t.Errorf("list shows a value: %q", out)
	}
	dpwatch(exitDone, "create", "--replace")
	doctor := call(t, "", "doctor", "--config", file)
	doctor.want(t, exitDone, "d0.tx: has as many rows as public.tx in the engine's database", "run `dpwatch neighbours verify`")
	if strings.Contains(doctor.stdout, "do not differ by") {
		t.Errorf("the rows of a sound set: %s", doctor.stdout)
	}
	pgtest.Exec(t, shadow, "DELETE FROM d1_2.tx WHERE id = 11")
	call(t, "", "doctor", "--config", file).want(t, exitFailure, "d1_2: its number of rows and that of d0 do not differ by the rows of its unit", "neighbours create --replace")
	out, _ = dpwatch(exitViolation, "verify", "-o", "json")
	var verified struct{ Pairs []struct{ Faults []string } }
	if err := json.Unmarshal([]byte(out), &verified); err != nil || len(verified.Pairs[0].Faults) != 0 || len(verified.Pairs[1].Faults) != 1 {
		t.Errorf("verify of a spoiled neighbour: %q, %v", out, err)
	}
	pgtest.Exec(t, shadow, "DELETE FROM d0_twin.tx WHERE id = 11")
	call(t, "", "doctor", "--config", file).want(t, exitFailure, "d0_twin.tx: has another number of rows than d0.tx: one of them was changed")
	out, _ = dpwatch(exitViolation, "verify")
	if !strings.Contains(out, "d0_twin: NOT a twin of d0\n  table tx: other rows than in D0") {
		t.Errorf("verify of a spoiled twin: %q", out)
	}
	pgtest.Exec(t, shadow, "DROP SCHEMA d0_twin CASCADE")
	if err := os.WriteFile(other, []byte(strings.Replace(text, strconv.Quote(source), strconv.Quote(source+"&user="+role+"&password=x"), 2)), 0o600); err != nil {
		t.Fatal(err)
	}
	call(t, "", "doctor", "--config", other).want(t, exitFailure, "d0_twin.tx: does not exist: violations are not controlled", "neighbours create --replace",
		"public.users: role "+role+" may not read the engine's table: `dpwatch neighbours create` cannot copy it", `GRANT SELECT ON TABLE "public"."tx" TO "`+role+`"`)
	dpwatch(exitDone, "drop")
	dpwatch(exitDone, "drop")
	dpwatch(exitFailure, "verify")
}

func TestNeighboursNeedASource(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "dpwatch.yaml")
	text := "proxy: {listen: 127.0.0.1:6432, upstream: 127.0.0.1:5432}\nshadow: {dsn: host=x}\nprivacy: {protected: [public.users]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"neighbours", "create", "--config", file}, environment{Getenv: os.Getenv, Stdout: &stderr, Stderr: &stderr})
	if code != exitFailure || !strings.Contains(stderr.String(), "neighbours.source is not set") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}
