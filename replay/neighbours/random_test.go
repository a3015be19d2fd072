package neighbours_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// TestRandomDefinitions: the plan names what volatile functions compute in a copy, also through views and with functions
// of the user, and not what others compute.
func TestRandomDefinitions(t *testing.T) {
	t.Parallel()
	source, shadow := pgtest.Database(t), pgtest.Database(t)
	run(t, source, `CREATE FUNCTION lap(b float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT b * ln((1 - random()) / (1 - random()))';
		CREATE FUNCTION drawn(b float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT b';
		CREATE TABLE users (id int PRIMARY KEY, n serial, at timestamptz DEFAULT clock_timestamp(), token uuid DEFAULT gen_random_uuid(), two int GENERATED ALWAYS AS (2 * id) STORED,
			noise float8 GENERATED ALWAYS AS (drawn(id)) STORED);
		CREATE OR REPLACE FUNCTION drawn(b float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT b + random()';
		CREATE VIEW counts AS SELECT count(*) + lap(1) AS n FROM users;
		CREATE MATERIALIZED VIEW synopsis AS SELECT n FROM counts;
		CREATE MATERIALIZED VIEW exact AS SELECT count(*) AS n FROM users;
		INSERT INTO users (id) SELECT g FROM generate_series(1, 9) g`)
	run(t, shadow, `CREATE FUNCTION lap(b float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT b'; CREATE FUNCTION drawn(b float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT b'`)
	o := options(source, shadow)
	o.Protected, o.Public, o.Paths, o.D1, o.Choose = []neighbours.Table{table("public.users")}, nil, nil, []string{"d1"}, o.Choose[:1]
	var notes []string
	o.Note = func(note string) { notes = append(notes, note) }
	want := []string{
		"materialised views that volatile functions compute: public.synopsis (lap): each copy computes them anew, so that noise in them is one draw for each copy, and all trials of a copy see that draw: audit with --recreate, which makes copies for each trial, or audit the statements that fill them",
		"generated columns that volatile functions compute: public.users.noise (drawn): each copy computes them anew, so that noise in them is one draw for each copy, and all trials of a copy see that draw: audit with --recreate, which makes copies for each trial, or audit the statements that fill them",
		"columns with defaults that volatile functions compute: public.users.token (gen_random_uuid): their values are copied, so that noise in them is the same in every copy",
	}
	plan, err := neighbours.MakePlan(t.Context(), o, false)
	if err != nil || plan.Err() != nil {
		t.Fatal(err, plan.Err())
	}
	create(t, o)
	for name, all := range map[string][]string{"plan": plan.Notes, "create": notes} {
		got := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return !strings.Contains(n, "volatile functions") })
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestDrawnDefaults: noise in a default is drawn for each copy, verify does not call that a fault, and the values of
// other volatile defaults (keys, times, tokens, functions without noise) and of columns that are looked up by are those
// of the source. A copy has the noise of another one with a probability below 1e-100.
func TestDrawnDefaults(t *testing.T) {
	t.Parallel()
	for _, method := range []neighbours.Method{neighbours.Copy, neighbours.View} {
		source, shadow := pgtest.Database(t), pgtest.Database(t)
		const functions = `CREATE FUNCTION lap(b float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT b * ln((1 - random()) / (1 - random()))';
			CREATE FUNCTION who() RETURNS float8 LANGUAGE sql AS 'SELECT 7'; CREATE FUNCTION listed() RETURNS float8 LANGUAGE sql AS 'SELECT pg_catalog.pi() * extract(epoch FROM clock_timestamp())';`
		run(t, source, functions+`CREATE TABLE users (id int PRIMARY KEY, two float8 GENERATED ALWAYS AS (2 * drawn) STORED, drawn float8 DEFAULT lap(1), coin bool NOT NULL DEFAULT random() < 0.5, byname float8 DEFAULT listed(),
				indexed float8 DEFAULT random(), token text DEFAULT md5(random()::text), n serial, at timestamptz DEFAULT clock_timestamp(), other float8 DEFAULT who(), measured float8 DEFAULT random());
			CREATE INDEX ON users (id) WHERE indexed > 0.5;
			CREATE TABLE parted (user_id int REFERENCES users, noise float8 DEFAULT random(), kept float8 DEFAULT random()) PARTITION BY LIST (user_id);
			CREATE TABLE part PARTITION OF parted DEFAULT; ALTER TABLE part ALTER kept SET DEFAULT 5;
			CREATE TABLE loose (noise float8 DEFAULT random());
			INSERT INTO users (id) SELECT g FROM generate_series(1, 400) g; UPDATE users SET other = id; INSERT INTO parted SELECT id FROM users`)
		run(t, shadow, functions)
		o := options(source, shadow)
		o.Protected = []neighbours.Table{table("public.users"), table("public.parted")}
		o.Public, o.Paths, o.D1, o.Choose, o.Twin, o.Noise, o.Method = nil, nil, []string{"d1"}, o.Choose[:1], "d0_twin", []string{"listed"}, method
		o.Measures = []neighbours.Measure{{Column: neighbours.Column{Table: table("public.users"), Name: "measured"}, Low: "0", High: "1"}}
		var notes []string
		o.Note = func(note string) { notes = append(notes, note) }
		create(t, o)
		verified(t, o)
		want := []string{
			"columns with defaults that volatile functions compute: public.parted.kept (random), public.users.indexed (random), public.users.measured (random), public.users.other (who), public.users.token (random): their values are copied, so that noise in them is the same in every copy",
			"columns with defaults that volatile functions compute: public.parted.noise (random), public.users.byname (listed), public.users.coin (random), public.users.drawn (lap): each copy computes them anew, so that noise in them is one draw for each copy, and all trials of a copy see that draw: audit with --recreate, which makes copies for each trial, or audit the statements that fill them",
		}
		if got := slices.DeleteFunc(notes, func(n string) bool { return !strings.Contains(n, "volatile functions") }); !slices.Equal(got, want) {
			t.Errorf("notes %q, want %q", got, want)
		}
		const kept = "SELECT md5(string_agg((id, indexed, token, n, at, other, measured)::text, ' ' ORDER BY id)) FROM %s.users UNION ALL SELECT md5(string_agg((user_id, kept)::text, ' ' ORDER BY user_id)) FROM %[1]s.parted"
		const anew = "SELECT md5(string_agg(%[2]s::text, ' ' ORDER BY %[3]s)) FROM %[1]s"
		for _, copied := range []string{"d0", "d0_twin"} {
			if a, b := lines(t, source, fmt.Sprintf(kept, "public")), lines(t, shadow, fmt.Sprintf(kept, copied)); !slices.Equal(a, b) {
				t.Errorf("%s %s: other values than in the source", method, copied)
			}
			for _, column := range []string{"users.drawn", "users.coin", "users.byname", "users.two", "parted.noise"} {
				from, name, _ := strings.Cut(column, ".")
				key := map[string]string{"users": "id", "parted": "user_id"}[from]
				a, b := lines(t, source, fmt.Sprintf(anew, "public."+from, name, key)), lines(t, shadow, fmt.Sprintf(anew, copied+"."+from, name, key))
				if slices.Equal(a, b) {
					t.Errorf("%s %s.%s: the values of the source", method, copied, column)
				}
				d0 := lines(t, shadow, fmt.Sprintf(anew, "d0."+from, name, key))
				if alike := slices.Equal(d0, b); copied != "d0" && alike != (method == neighbours.View) {
					t.Errorf("%s %s.%s: as in D0: %v", method, copied, column, alike)
				}
			}
		}
	}
}
