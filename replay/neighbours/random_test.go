package neighbours_test

import (
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
		"materialised views that volatile functions compute: public.synopsis (lap): each copy computes them anew, so that noise in them is one draw for each copy, and all trials of a copy see that draw: audit the statements that fill them",
		"generated columns that volatile functions compute: public.users.noise (drawn): each copy computes them anew, so that noise in them is one draw for each copy, and all trials of a copy see that draw: audit the statements that fill them",
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
