package replay_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// TestRefusedNames: an error about a name is an outcome where it comes in a part of the trials, and a fault of the set-up
// where it comes in all of them, even on one world. A trial that fails half of the time fails 64 times in a row with
// probability 2^-64.
func TestRefusedNames(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	pgtest.Exec(t, dsn, `CREATE FUNCTION refuse(n bigint, state text, often float8) RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$ BEGIN
		IF random() < often THEN RAISE EXCEPTION 'refused with % rows', n USING ERRCODE = state; END IF; RETURN n + random(); END $$`)
	for _, c := range []struct{ name, sql, refused string }{
		{"a table, in half of the trials", `SELECT public.refuse(count(*), '42P01', .5) FROM %s.people`, ""},
		{"a function, in half of the trials", `SELECT public.refuse(count(*), '42883', .5) FROM %s.people`, ""},
		{"a privilege, in a tenth of the trials", `SELECT public.refuse(count(*), '42501', .1) FROM %s.people`, ""},
		{"a column, in half of the trials", `SELECT public.refuse(count(*), '42703', .5) FROM %s.people`, ""},
		{"a table, always", `SELECT public.refuse(count(*), '42P01', 1) FROM %s.people`, "lacks a table"},
		{"a table, on one world", `SELECT public.refuse(count(*), '42P01', (count(*) - 2)::float8) FROM %s.people`, "lacks a table"},
		{"a column, always", `SELECT public.refuse(count(*), '42703', 1) FROM %s.people`, "every trial in every world fails with SQLSTATE 42703"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			run, err := player(t, options(dsn)).Start(replay.Statement{Worlds: []string{strings.ReplaceAll(c.sql, "%s", "d0"), strings.ReplaceAll(c.sql, "%s", "d1")}}, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			for range 8 {
				got, err := run.Rounds(t.Context(), 1)
				var setup *replay.SetupError
				switch {
				case c.refused == "" && err != nil:
					t.Fatal(err)
				case c.refused != "" && (!errors.As(err, &setup) || !strings.Contains(err.Error(), c.refused)):
					t.Fatalf("got %v, want %q", err, c.refused)
				case c.refused != "":
					return
				}
				for w, o := range got[0] {
					if o.Failed() && !strings.HasPrefix(o.Message, [2]string{"refused with 3 rows", "refused with 2 rows"}[w]) {
						t.Errorf("in world %d the message is %q", w, o.Message)
					}
				}
			}
		})
	}
}
