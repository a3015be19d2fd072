package analysis_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/analysis"
)

// TestKeysAreLearned holds which columns are taken for group keys, by the partitions of the report.
func TestKeysAreLearned(t *testing.T) {
	t.Parallel()
	num := func(x float64) analysis.Value { return analysis.Value{Kind: analysis.Number, Num: x} }
	txt := func(s string) analysis.Value { return analysis.Value{Kind: analysis.Text, Text: s} }
	table := func(r *rand.Rand, columns []analysis.Column, rows ...[]analysis.Value) analysis.Outcome {
		o := analysis.Outcome{Columns: columns}
		for _, row := range rows {
			row = append([]analysis.Value(nil), row...)
			for i := range row {
				if row[i].Kind == analysis.Null { // a noisy value
					row[i] = num(geo(r, .01))
				}
			}
			o.Rows = append(o.Rows, row)
		}
		return o
	}
	noisy := analysis.Value{}
	integer := func(name string) analysis.Column { return analysis.Column{Name: name, Discrete: true} }
	for _, c := range []struct {
		name    string
		columns []analysis.Column
		rows    [][]analysis.Value
		want    []string
	}{
		{
			"integer_key_and_noisy_count",
			[]analysis.Column{integer("store_id"), integer("count")},
			[][]analysis.Value{{num(1), noisy}, {num(2), noisy}, {num(3), noisy}},
			[]string{"store_id=1", "store_id=2", "store_id=3"},
		},
		{
			"key_behind_the_count",
			[]analysis.Column{integer("count"), integer("store_id")},
			[][]analysis.Value{{noisy, num(1)}, {noisy, num(2)}, {noisy, num(3)}},
			[]string{"store_id=1", "store_id=2", "store_id=3"},
		},
		{
			"text_key",
			[]analysis.Column{integer("class"), {Name: "avg"}},
			[][]analysis.Value{{txt("low"), noisy}, {txt("high"), noisy}},
			[]string{`class="low"`, `class="high"`},
		},
		{
			"two_keys",
			[]analysis.Column{integer("a"), integer("b"), {Name: "sum"}},
			[][]analysis.Value{{num(1), txt("x"), noisy}, {num(1), txt("y"), noisy}, {num(2), txt("x"), noisy}},
			[]string{`a=1, b="x"`, `a=1, b="y"`, `a=2, b="x"`},
		},
		{
			"floats_are_no_keys",
			[]analysis.Column{{Name: "a"}, {Name: "b"}},
			[][]analysis.Value{{num(1), noisy}, {num(2), noisy}},
			[]string{"row 1", "row 2"},
		},
		{
			"rows_of_one_key",
			[]analysis.Column{integer("class"), {Name: "x"}},
			[][]analysis.Value{{txt("low"), noisy}, {txt("low"), noisy}},
			[]string{`class="low"`, `class="low" #2`},
		},
		{"one_row", []analysis.Column{integer("count"), {Name: "sum"}}, [][]analysis.Value{{noisy, noisy}}, []string{"()"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, analysis.Claim{Epsilon: 1}, 60, 1, func(r *rand.Rand) (d0, d1 analysis.Outcome) {
				return table(r, c.columns, c.rows...), table(r, c.columns, c.rows...)
			})
			var got []string
			for _, p := range r.Partitions {
				got = append(got, p.Key.Reveal())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLateKeys holds that keys which come late are audited, and that too many are counted and said.
func TestLateKeys(t *testing.T) {
	t.Parallel()
	trial := 0
	late := func(r *rand.Rand) (d0, d1 analysis.Outcome) {
		trial++
		x := []float64{lap(r, 1), lap(r, 1), lap(r, 1)}
		y := []float64{lap(r, 1), lap(r, 1)}
		if trial < 100 {
			x = x[:2]
		}
		return groups(x...), groups(y...)
	}
	if r := run(t, analysis.Claim{Epsilon: 1}, 1000, 1, late); r.Verdict != analysis.Violation || len(r.Partitions) != 3 {
		t.Errorf("verdict %s, partitions %v", r.Verdict, r.Partitions)
	}
	a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxSlots: 4})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	d := many(9, func(int) float64 { return 0 })
	for range 50 {
		a.Add(d(r))
	}
	got := a.Report()
	if len(got.Partitions) != 4 || !strings.Contains(warnings(got), "more group keys") {
		t.Errorf("partitions %v, warnings %q", got.Partitions, got.Warnings)
	}
}
