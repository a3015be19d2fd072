package neighbours_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// TestRecreation: every pair of copies has its own draw of a materialised view and of a default, D1 lacks the chosen unit
// alone, the replay role may read both, and nothing is left: not beside a set, which stays as it is, nor by a killed
// process. Two draws are alike with a probability below 1e-15.
func TestRecreation(t *testing.T) {
	t.Parallel()
	source, shadow := pgtest.Database(t), pgtest.Database(t)
	const role = "replay_of_pairs"
	run(t, source, `CREATE TYPE mood AS ENUM ('low', 'high'); CREATE TABLE users (id int PRIMARY KEY, feels mood DEFAULT 'low', noise float8 DEFAULT random());
		INSERT INTO users SELECT g FROM generate_series(1, 9) g; CREATE MATERIALIZED VIEW synopsis AS SELECT count(*) + random() AS n FROM users;
		CREATE FUNCTION total() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM users'`)
	run(t, shadow, "CREATE ROLE "+role)
	o := options(source, shadow)
	o.Protected, o.Public, o.Paths, o.Twin, o.Grant = []neighbours.Table{table("public.users")}, nil, nil, "d0_twin", []string{role}
	o.Choose = []neighbours.Choice{{Rule: neighbours.Smallest, K: 2, Columns: []neighbours.Column{{Table: table("public.users"), Name: "id"}}}}
	empty := state(t, shadow)
	for _, beside := range []bool{false, true} {
		before := empty
		if beside {
			create(t, o)
			before = state(t, shadow)
		}
		if _, err := neighbours.OpenRecreation(t.Context(), o, []int{neighbours.AllRows}, 1000); !errors.Is(err, neighbours.ErrTooLarge) {
			t.Errorf("error %v of a source that is too large", err)
		}
		pairs, err := neighbours.OpenRecreation(t.Context(), o, []int{neighbours.AllRows, 1}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var draws []string
		for range 2 {
			pair, err := pairs.Make(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, schema := range pair {
				draws = append(draws, lines(t, shadow, fmt.Sprintf("SELECT n::text FROM %s.synopsis", schema))...)
				draws = append(draws, lines(t, shadow, fmt.Sprintf("SELECT noise::text FROM %s.users WHERE id = 9", schema))...)
			}
			const ids = "SELECT string_agg(id::text, ' ' ORDER BY id) || ', ' || %[1]s.total() || ', ' || has_table_privilege('%[2]s', '%[1]s.synopsis', 'SELECT') FROM %[1]s.users"
			got := slices.Concat(lines(t, shadow, fmt.Sprintf(ids, pair[0], role)), lines(t, shadow, fmt.Sprintf(ids, pair[1], role)))
			if want := []string{"1 2 3 4 5 6 7 8 9, 9, true", "1 3 4 5 6 7 8 9, 8, true"}; !slices.Equal(got, want) {
				t.Errorf("units %q, want %q", got, want)
			}
			if err := pairs.Drop(t.Context(), pair); err != nil {
				t.Fatal(err)
			}
		}
		if slices.Sort(draws); len(slices.Compact(draws)) != 8 {
			t.Errorf("draws %q, want 8 different ones", draws)
		}
		if _, err := pairs.Make(t.Context()); err != nil { // not dropped
			t.Fatal(err)
		}
		run(t, shadow, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()") // as if the process were killed
		if beside {
			verified(t, o)
		}
		if pairs, err = neighbours.OpenRecreation(t.Context(), o, []int{neighbours.AllRows, 0}, 0); err != nil {
			t.Fatal(err)
		}
		if n := len(lines(t, shadow, "SELECT nspname::text FROM pg_namespace WHERE nspname ~ '^dpwatch_recreate_.*_0$'")); n != 1 {
			t.Errorf("%d copies of the source, want that of the second process", n)
		}
		if err := pairs.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if after := state(t, shadow); !slices.Equal(before, after) {
			t.Errorf("left %q of %q", after, before)
		}
	}
	if _, err := neighbours.OpenRecreation(t.Context(), o, []int{neighbours.AllRows, 0}, 0); err != nil { // left to drop
		t.Fatal(err)
	}
	run(t, shadow, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	if err := neighbours.Drop(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if after := state(t, shadow); !slices.Equal(empty, after) {
		t.Errorf("drop left %q of %q", after, empty)
	}
}
