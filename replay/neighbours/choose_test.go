package neighbours_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours"
	"github.com/dpwatch/dpwatch/rewrite"
)

// ranked returns a database in which each rule has exactly one correct result.
func ranked(t *testing.T) neighbours.Options {
	o := neighbours.Options{
		RenameBody: rewrite.RenameBody, Source: pgtest.Database(t), Target: pgtest.Database(t), Control: "dpwatch", D0: "d0",
		Protected: []neighbours.Table{table("public.people"), table("public.tx")},
		Unit:      neighbours.Unit{Table: table("public.people"), Key: []string{"name"}},
		Relation:  neighbours.Remove, Method: neighbours.Auto, CopyLimit: 1 << 30, Workers: 1,
	}
	run(t, o.Source, `CREATE TABLE people (name text PRIMARY KEY, income int);
		CREATE TABLE tx (id serial PRIMARY KEY, name text REFERENCES people, store int, spent float8, note varchar(20) UNIQUE);
		INSERT INTO people VALUES ('many', 1), ('wide', 2), ('rich', 3), ('poor', 4), ('alone', 5), ('plain', 6), ('none', 7);
		INSERT INTO tx (name, store, spent) SELECT 'many', i % 3, 10 FROM generate_series(1, 20) i;
		INSERT INTO tx (name, store, spent) SELECT 'wide', i % 6, 10 FROM generate_series(1, 6) i;
		INSERT INTO tx (name, store, spent) SELECT 'plain', i % 6, 11 FROM generate_series(1, 6) i;
		INSERT INTO tx (name, store, spent) SELECT 'plain', 6, 11;
		INSERT INTO tx (name, store, spent) VALUES ('rich', 1, 900), ('rich', 1, NULL), ('poor', 1, -5), ('alone', 77, 10), ('alone', 78, 10), ('wide', 6, 10)`)
	return o
}

func TestChoices(t *testing.T) {
	t.Parallel()
	o := ranked(t)
	column := func(name string) []neighbours.Column {
		return []neighbours.Column{{Table: table("public.tx"), Name: name}}
	}
	o.Choose = []neighbours.Choice{
		{Rule: neighbours.MostRows, K: 1},
		{Rule: neighbours.MostPartitions, K: 2, Columns: column("store")}, // plain and wide have 7 each; the smaller key is first
		{Rule: neighbours.Largest, K: 1, Columns: column("spent")},
		{Rule: neighbours.Smallest, K: 1, Columns: column("spent")},
		{Rule: neighbours.Alone, K: 1, Columns: column("store")},
		{Rule: neighbours.Random, K: 1, Seed: 5},
	}
	for i := range 7 {
		o.D1 = append(o.D1, "d1_"+string(rune('a'+i)))
	}
	set := create(t, o)
	if set.Method != neighbours.Copy {
		t.Errorf("auto chose %s for small tables", set.Method)
	}
	_, members, err := neighbours.List(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var keys, units []string
	for _, m := range members {
		keys, units = append(keys, m.Key...), append(units, m.Unit)
		if strings.Contains(m.Unit, m.Key[0]) {
			t.Errorf("the pseudonym %q shows the key", m.Unit)
		}
	}
	if want := []string{"many", "plain", "wide", "rich", "poor", "alone", "none"}; !slices.Equal(want, keys) {
		t.Errorf("chose %v, want %v", keys, want)
	}
	if want := "largest public.tx.spent: value 900"; members[3].Why != want || members[3].Rows != 3 {
		t.Errorf("why %q with %d rows, want %q with 3", members[3].Why, members[3].Rows, want)
	}
	verified(t, o)

	// The same seed chooses the same units, and pseudonyms stay the same; a small CopyLimit selects views.
	o.CopyLimit = 1
	if set, err = neighbours.Refresh(t.Context(), o); err != nil || set.Method != neighbours.View {
		t.Fatalf("%+v, %v", set, err)
	}
	if _, again, err := neighbours.List(t.Context(), o); err != nil || again[6].Unit != units[6] {
		t.Errorf("chose %v, %v", again, err)
	}
	verified(t, o)
}

func TestReplace(t *testing.T) {
	t.Parallel()
	o := ranked(t)
	o.Relation, o.D1 = neighbours.Replace, []string{"d1"}
	o.Choose = []neighbours.Choice{{Rule: neighbours.Largest, K: 1, Columns: []neighbours.Column{{Table: table("public.tx"), Name: "spent"}}}}
	o.Measures = []neighbours.Measure{
		{Column: neighbours.Column{Table: table("public.tx"), Name: "spent"}, Low: "0", High: "1000"},
		{Column: neighbours.Column{Table: table("public.people"), Name: "income"}, Low: "0", High: "50"},
	}
	create(t, o)
	verified(t, o)
	got := lines(t, o.Target, `SELECT d0.t::text || ' -> ' || d1.t::text FROM (SELECT t FROM d0.tx t) d0 FULL JOIN (SELECT t FROM d1.tx t) d1 ON (d0.t).id = (d1.t).id WHERE d0.t::text <> d1.t::text
		UNION ALL SELECT a::text || ' -> ' || b::text FROM d0.people a JOIN d1.people b USING (name) WHERE a::text <> b::text`)
	want := []string{"(34,rich,1,900,) -> (34,rich,1,0,)", "(rich,3) -> (rich,50)"}
	if !slices.Equal(want, got) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestExtreme(t *testing.T) {
	t.Parallel()
	o := shop(t)
	o.Relation, o.D1 = neighbours.Extreme, []string{"d1"}
	o.Choose = []neighbours.Choice{{Rule: neighbours.MostRows, K: 1}}
	o.Measures = []neighbours.Measure{{Column: neighbours.Column{Table: table("public.users"), Name: "income"}, Low: "0", High: "9999"}}
	create(t, o)
	d := verified(t, o)[0]
	if len(d.Removed) > 0 || d.Added["users"] != 1 || d.Added["orders"] == 0 || d.Added["Order Items"] == 0 || d.Added["comments"] == 0 {
		t.Errorf("removed %v, added %v", d.Removed, d.Added)
	}
	got := lines(t, o.Target, `SELECT concat_ws(' ', u.income, u.manager_id IS NOT DISTINCT FROM m.manager_id) FROM d1.users u
		JOIN d0.users m ON u.email = m.email || '~dpwatch' WHERE u.id NOT IN (SELECT id FROM d0.users)`)
	if !slices.Equal([]string{"9999.00 t"}, got) {
		t.Errorf("the added unit: %v", got)
	}
	// The added unit has no dangling references.
	if got := lines(t, o.Target, `SELECT count(*)::text FROM d1."Order Items" i LEFT JOIN d1.orders o USING (account_id, seq) LEFT JOIN d1.users u ON u.id = i.gift_for
		WHERE o.seq IS NULL OR u.id IS NULL AND i.gift_for IS NOT NULL`); got[0] != "0" {
		t.Errorf("%s references dangle", got[0])
	}
}
