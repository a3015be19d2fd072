package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/config"
)

const withNeighbours = `
proxy: {listen: 127.0.0.1:6432, upstream: 127.0.0.1:5432}
shadow: {dsn: "postgres://u@localhost/shadow"}
privacy:
  protected: [public.users, public.tx]
  unit: {table: public.users, key: id}
  paths: [{table: public.tx, columns: [mail], to: public.users, on: email}]
neighbours:
  source: postgres://c:${PW}@localhost/shop
  choose: [{rule: largest, columns: public.tx.spent}, {rule: random, k: 2, seed: 7}]
  measures: [{column: public.tx.spent, low: 0, high: 500}]
`

func TestNeighbours(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("f", []byte(withNeighbours), env)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"d1_1", "d1_2", "d1_3"}, c.Shadow.D1); diff != "" {
		t.Errorf("shadow.d1 is absent, so that it follows from choose: %s", diff)
	}
	want := config.Default().Neighbours
	want.Source = "postgres://c:s3cret@localhost/shop"
	want.Choose = []config.Choice{{Rule: "largest", K: 1, Columns: []string{"public.tx.spent"}}, {Rule: "random", K: 2, Seed: 7}}
	want.Measures = []config.Measure{{Column: "public.tx.spent", Low: 0, High: 500}}
	if diff := cmp.Diff(want, c.Neighbours); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(&config.Unit{Table: "public.users", Key: []string{"id"}}, c.Privacy.Unit); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	text, err := config.Print(c)
	if err != nil || strings.Contains(string(text), "s3cret") {
		t.Errorf("the password is printed, or %v", err)
	}
}

func TestNeighboursErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, old, new, want string }{
		{"unit is missing", "  unit: {table: public.users, key: id}\n", "", "f:4: privacy.unit: missing"},
		{"unit is not protected", "unit: {table: public.users", "unit: {table: public.people", "privacy.unit.table: \"public.people\" is not listed"},
		{"unit without a key", ", key: id", "", "privacy.unit.key: missing"},
		{"path from nowhere", "paths: [{table: public.tx", "paths: [{table: public.ty", "privacy.paths[0].table"},
		{"path without columns", "columns: [mail], to", "to", "privacy.paths[0].columns: missing"},
		{"path of two lengths", "on: email", "on: [a, b]", "privacy.paths[0].on: has 2 columns"},
		{"path given twice", "on: email}]", "on: email}, {table: public.tx, columns: mail, to: public.users, on: email}]", "privacy.paths[1]: is the same"},
		{"path by a key that is missing", "columns: [mail]", `columns: ["mail->"]`, "privacy.paths[0].columns[0]: must be"},
		{"path by an element and more", "columns: [mail], to: public.users, on: email", `columns: ["mail[]", x], to: public.users, on: [email, x]`, "privacy.paths[0].columns[0]: elements"},
		{"what is ignored is no path", "on: email", "ignore: hashed", "privacy.paths[0].ignore"},
		{"path that needs on", "to: public.users, on: email", "to: public.tx", "privacy.paths[0].on: missing"},
		{"long name of D0", "localhost/shadow\"}", "localhost/shadow\", d0: " + strings.Repeat("d", 56) + "}", "shadow.d0: is too long"},
		{"rule", "rule: random", "rule: worst", "neighbours.choose[1].rule: \"worst\": must be most_rows"},
		{"negative k", "k: 2", "k: -2", "neighbours.choose[1].k: must be at least 1"},
		{"too many", "k: 2", "k: 5000", "selects 5001 units; the maximum is 1000"},
		{"rule without columns", ", columns: public.tx.spent}, {", "}, {", "neighbours.choose[0].columns: missing"},
		{"rule with columns", "seed: 7", "columns: [a.b.c]", "neighbours.choose[1].columns: rule random takes no columns"},
		{"not a column", "columns: public.tx.spent", "columns: tx.spent", "is not schema.table.column"},
		{"bounds", "low: 0, high: 500", "low: 5, high: 5", "neighbours.measures[0].low: must be less"},
		{"source", "postgres://c", "post gres://c", "neighbours.source: not a PostgreSQL connection string"},
		{"relation", "choose:", "relation: add\n  choose:", "neighbours.relation: \"add\": must be remove"},
		{"view that replaces", "choose:", "relation: replace\n  method: view\n  choose:", "neighbours.method: view cannot replace"},
		{"replace without bounds", "  measures: [{column: public.tx.spent, low: 0, high: 500}]", "  relation: replace", "neighbours.measures: missing"},
		{"other number of schemas", "localhost/shadow\"}", "localhost/shadow\", d1: [a]}", "selects 3 units, but shadow.d1 names 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(withNeighbours, tc.old, tc.new, 1)
			if text == withNeighbours {
				t.Fatal("the case changes nothing")
			}
			_, err := config.Parse("f", []byte(text), env)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want it to say %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}
