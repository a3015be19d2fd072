package neighbours_test

import (
	"slices"
	"strings"
	"testing"
)

// TestFaithful compares the server's catalog of the source with that of the copies.
func TestFaithful(t *testing.T) {
	t.Parallel()
	o := shop(t)
	create(t, o)
	columns := `SELECT concat_ws(' ', c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated, a.attstattarget)
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'i', 'I')
		AND c.relnamespace::regnamespace::text = ANY($1) AND c.relname !~ 'secrets|left_out|products' ORDER BY 1`
	if want, got := lines(t, o.Source, columns, []string{"public", "app"}), lines(t, o.Target, columns, []string{"d0"}); !slices.Equal(want, got) {
		t.Errorf("columns: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, world := range []string{"d0", "d1_1"} {
		got := lines(t, o.Target, `SELECT prosrc FROM pg_proc WHERE proname = 'spent' AND pronamespace = to_regnamespace($1)
			UNION ALL SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = to_regclass($1 || '.accounts') AND adnum = 3
			UNION ALL SELECT pg_get_viewdef(to_regclass($1 || '.rich'))`, world)
		for i, want := range []string{
			`SELECT sum(o.total) FROM "` + world + `".orders o JOIN "` + world + `".accounts a`, "nextval('" + world + ".numbers'::regclass)", world + ".spent(u.id)",
		} {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: %q does not hold %q", world, got[i], want)
			}
		}
		if got := lines(t, o.Target, "SELECT last_value::text FROM "+world+".numbers UNION ALL SELECT last_value::text FROM "+world+".accounts_id_seq"); !slices.Equal(got, []string{"777", "128"}) {
			t.Errorf("%s: sequences are at %v", world, got)
		}
	}
}
