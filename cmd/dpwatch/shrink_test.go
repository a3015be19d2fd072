package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// crowd returns a configuration of 1,000 persons with two purchases each. D1 lacks the first, or has another value of the
// first, who is alone in a city, one of 30 in a town, and has a value far beyond those of the others.
func crowd(t *testing.T, relation string) (path, shadow string) {
	t.Helper()
	source, shadow := pgtest.Database(t), pgtest.Database(t)
	pgtest.Exec(t, source, `CREATE TABLE people (id int PRIMARY KEY, city text NOT NULL, town text, value float8 NOT NULL);
		INSERT INTO people SELECT i, CASE i WHEN 1 THEN 'Secretville' ELSE 'Rome' END, CASE WHEN i % 33 = 1 AND i < 960 THEN 'Rare' ELSE 'Common' END,
			CASE i WHEN 1 THEN 1000003 ELSE 0.5 END FROM generate_series(1, 1000) i;
		CREATE TABLE purchases (person int NOT NULL REFERENCES people, "what's" text);
		INSERT INTO purchases SELECT i, CASE WHEN i = 1 THEN 'a ''rare'' thing' ELSE 'bread' END FROM generate_series(1, 1000) i, generate_series(1, 2);
		CREATE VIEW bought AS SELECT p.city, x."what's" AS what FROM people p JOIN purchases x ON x.person = p.id;
		CREATE FUNCTION buyers(what text) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM bought WHERE bought.what = $1'`)
	path = file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q}
shadow: {dsn: %q, d1: [d1_1]}
privacy: {protected: [public.people, public.purchases, public.bought], unit: {table: public.people, key: id}}
claims: {default: {epsilon: 1}, functions: [{name: buyers, epsilon: 1}]}
neighbours: {source: %q, relation: %s, measures: [{column: public.people.value, low: 0, high: 1000003}], choose: [{rule: smallest, columns: public.people.id}]}
`, upstreamOf(t, source), shadow, source, relation))
	call(t, "", "neighbours", "create", "--config", path).want(t, exitDone)
	return path, shadow
}

const (
	// crowdNoise is discrete Laplace noise of scale 1.
	crowdNoise   = "floor(-ln(1 - random())) - floor(-ln(1 - random()))"
	ofCities     = "SELECT city, count(*) + " + crowdNoise + " AS n FROM people GROUP BY city"
	ofTheTown    = "SELECT town, count(*) + " + crowdNoise + " AS n FROM people GROUP BY town HAVING count(*) >= 30 AND town = 'Rare'"
	ofPurchases  = "SELECT what, count(*) + " + crowdNoise + " AS n FROM bought GROUP BY what"
	ofValues     = "SELECT coalesce(sum(value), 0) + " + crowdNoise + " FROM people"
	ofValuesNull = "SELECT sum(value) + " + crowdNoise + " FROM people"
)

// shrunk is what the JSON report says of smaller copies.
type shrunk struct {
	State  string
	Tables []struct {
		Table         string
		Before, After [2]int
	}
	Schemas, Script []string
	Attempts        int
}

// shrink audits a query with --shrink, expects a text in the output, and checks that nothing is left. Each search reports
// a violation that there is none of with a probability of at most 1e-6. By chance, a violation may have no verdict, or not
// show on copies where it is, in fewer than 3 of 100 searches: the text is expected in one of four.
func shrink(t *testing.T, path, shadow, sql string, text string, args ...string) (found shrunk, r result) {
	t.Helper()
	for range 4 {
		r = call(t, "", append([]string{"audit", "--config", path, "--shrink", "--confidence", "0.9999999", "--sql", sql}, args...)...)
		pgtest.Exec(t, shadow, "DO $$ BEGIN IF EXISTS (SELECT FROM pg_namespace WHERE nspname ~ '^dpwatch_') THEN RAISE 'copies are left'; END IF; END $$")
		var report struct{ Shrunk shrunk }
		if json.Unmarshal([]byte(r.stdout), &report) == nil && report.Shrunk.State != "" {
			checkContract(t, r.object(t))
		}
		if found = report.Shrunk; strings.Contains(r.stdout, text) || strings.Contains(strings.Join(strings.Fields(r.stdout), ""), text) {
			break
		}
	}
	return found, r
}

// TestShrink: smaller copies keep a violation, and its kind, with the fewest rows that show it.
func TestShrink(t *testing.T) {
	t.Parallel()
	for i, tc := range []struct {
		name, relation, sql string
		before              int // purchases in D1
		people, purchases   [2]int
	}{
		{"a group of one person", "remove", ofCities, 1998, [2]int{2, 1}, [2]int{0, 0}},
		{"a group of 30", "remove", ofTheTown, 1998, [2]int{30, 29}, [2]int{0, 0}},
		{"groups of a join", "remove", ofPurchases, 1998, [2]int{2, 1}, [2]int{2, 1}},
		{"values that are not clipped", "remove", ofValues, 1998, [2]int{1, 0}, [2]int{0, 0}},
		{"a sum that is NULL without rows", "remove", ofValuesNull, 1998, [2]int{2, 1}, [2]int{0, 0}},
		{"a replaced value", "replace", ofValuesNull, 2000, [2]int{1, 1}, [2]int{0, 0}},
	} {
		if longtest.Other(i, 3) {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			if tc.people[0] == 30 { // it takes as long as the others together; TestShrinkInterrupted begins it
				longtest.Scheduled(t)
			}
			t.Parallel()
			path, shadow := crowd(t, tc.relation)
			want := fmt.Sprintf(`"after":[%d,%d]},{"table":"public.purchases","before":[2000,%d],"after":[%d,%d]}`, tc.people[0], tc.people[1], tc.before, tc.purchases[0], tc.purchases[1])
			found, r := shrink(t, path, shadow, tc.sql, want, "-o", "json")
			r.want(t, exitViolation, "rows of D0 left after")
			if len(found.Tables) != 2 || found.State != "confirmed" || found.Tables[0].After != tc.people || found.Tables[1].After != tc.purchases {
				t.Fatalf("found %+v", found)
			}
			if script := strings.Join(found.Script, ";"); strings.Contains(script, "buyers") || strings.Contains(script, `VIEW "d0"."bought"`) != strings.Contains(tc.sql, "bought") {
				t.Errorf("script %s", script)
			}
			// The script makes copies that show the violation.
			again := pgtest.Database(t)
			pgtest.Exec(t, again, strings.Join(found.Script, ";")+"; ALTER TABLE d0.people ADD PRIMARY KEY (id); ALTER TABLE d0.purchases ADD FOREIGN KEY (person) REFERENCES d0.people")
			for range 4 {
				r = call(t, "", "audit", "--dsn", again, "--d0", "d0", "--d1", "d1_1", "--epsilon", "1", "--sql", tc.sql)
				if r.code != exitInconclusive {
					break
				}
			}
			r.want(t, exitViolation)
		})
	}
}

// TestShrinkValues: rows are shown in the text and in the issue for maintainers, and nowhere if values are withheld.
// Without a violation there is nothing to shrink: the count has twice the noise that its claim needs, and is
// accused with a probability of at most 1e-7.
func TestShrinkValues(t *testing.T) {
	t.Parallel()
	path, shadow := crowd(t, "remove")
	const confirmed = "the violation shows on 1 of 3000 rows of D0, confirmed"
	const rows = `INSERT INTO "d0"."people" ("id", "city", "town", "value") VALUES
  ('1', 'Secretville', 'Rare', '1000003')`
	_, r := shrink(t, path, shadow, ofValues, confirmed)
	r.want(t, exitViolation, confirmed, rows+";", `CREATE SCHEMA "d1_1";`, "have been dropped")
	_, r = shrink(t, path, shadow, ofValues, confirmed, "-o", "issue")
	r.want(t, exitViolation, confirmed, rows+";")
	for i, tc := range []struct {
		want string
		args []string
	}{{confirmed, []string{"--values=false"}}, {`"confirmed"`, []string{"--values=false", "-o", "json"}}, {`"error"`, []string{"-o", "sarif"}}} {
		if longtest.Omits(i, 3) {
			continue
		}
		_, r := shrink(t, path, shadow, ofValues, tc.want, tc.args...)
		r.want(t, exitViolation, tc.want)
		if strings.Contains(r.stdout, "The rows are withheld.") != (len(tc.args) == 1) {
			t.Errorf("%q: %s", tc.args, r.stdout)
		}
		for _, value := range []string{"Secretville", "Rare", "1000003", "INSERT"} {
			if strings.Contains(r.stdout+r.stderr, value) {
				t.Errorf("%q shows %s", tc.args, value)
			}
		}
	}
	_, r = shrink(t, path, shadow, "SELECT count(*) + floor(-ln(1 - random()) * 2) - floor(-ln(1 - random()) * 2) FROM people", "nothing to shrink", "--max-trials", "200")
	r.want(t, exitDone, "nothing to shrink")
}

// TestShrinkInterrupted: an interrupted search ends with the smallest copies so far, and the verdict of the audit, and
// leaves nothing.
func TestShrinkInterrupted(t *testing.T) {
	t.Parallel()
	path, shadow := crowd(t, "remove")
	conn := pgtest.Connect(t, shadow)
	cmd := program(t.Context(), "audit", "--config", path, "--shrink", "--confidence", "0.9999999", "--sql", ofTheTown, "-o", "json")
	var stdout strings.Builder
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Each candidate is a table, and those that are kept stay: five are more than the one of all rows and a candidate.
	awaitSQL(t, conn, "parts of the rows", "count(*) > 5 FROM pg_class WHERE relname ~ '^part_[0-9]*$'")
	code := interrupted(t, cmd)
	r := result{code: code, stdout: stdout.String()}
	r.want(t, exitViolation)
	var report struct{ Shrunk shrunk }
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		t.Fatal(err)
	}
	if s := report.Shrunk; s.State != "interrupted" || len(s.Tables) != 2 || s.Tables[0].After[0] < 30 || s.Tables[0].After[0] >= 1000 || s.Tables[0].After[0] != s.Tables[0].After[1]+1 {
		t.Errorf("found %+v", s)
	}
	awaitSQL(t, conn, "no copies are left but those of the set", "string_agg(nspname, ' ' ORDER BY nspname) = 'd0 d0_guard d0_twin d1_1 dpwatch' FROM pg_namespace WHERE nspname ~ '^d'")
}

// TestShrinkRefused: what cannot be shrunk is an error that says why.
func TestShrinkRefused(t *testing.T) {
	t.Parallel()
	path, _, shadow := storedNoise(t, 1)
	for want, args := range map[string][]string{
		"--shrink needs --config with neighbours.source": {"--dsn", shadow, "--d0", "d0", "--d1", "d1", "--epsilon", "1"},
		"leave out --d0":              {"--config", path, "--d0", "d0"},
		"give only one of the two":    {"--config", path, "--recreate"},
		"one engine for all copies":   {"--config", path, "--engine", "a", "--engine", "b"},
		"--d1 x is none of shadow.d1": {"--config", path, "--d1", "x"},
	} {
		call(t, "", slices.Concat([]string{"audit", "--shrink", "--sql", storedCounts}, args)...).want(t, exitFailure, want)
	}
}
