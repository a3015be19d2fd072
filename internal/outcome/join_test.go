package outcome_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

func TestJoin(t *testing.T) {
	t.Parallel()
	number := func(v float64) outcome.Value { return outcome.Value{Kind: outcome.Number, Num: v} }
	text := func(v string) outcome.Value { return outcome.Value{Kind: outcome.Text, Text: v} }
	null := outcome.Value{}
	count := outcome.Column{Name: "count", Discrete: true}
	single := func(v float64) outcome.Outcome {
		return outcome.Outcome{Columns: []outcome.Column{count}, Rows: [][]outcome.Value{{number(v)}}}
	}
	groups := outcome.Outcome{
		Columns: []outcome.Column{{Name: "store", Discrete: true}, {Name: "sum"}},
		Rows:    [][]outcome.Value{{text("a"), number(1.5)}, {text("b"), number(2.5)}},
	}
	empty := outcome.Outcome{Columns: []outcome.Column{count}}
	q1, q2 := outcome.Column{Name: "q1.count", Discrete: true}, outcome.Column{Name: "q2.count", Discrete: true}
	query := outcome.Column{Name: "query", Discrete: true}
	for _, c := range []struct {
		name string
		of   []outcome.Outcome
		want outcome.Outcome
	}{
		{"one_statement", []outcome.Outcome{groups}, groups},
		{"one_row_each", []outcome.Outcome{single(7), single(9)}, outcome.Outcome{
			Columns: []outcome.Column{q1, q2}, Rows: [][]outcome.Value{{number(7), number(9)}},
		}},
		{"groups_and_a_total", []outcome.Outcome{groups, single(9)}, outcome.Outcome{
			Columns: []outcome.Column{query, {Name: "q1.store", Discrete: true}, {Name: "q1.sum"}, q2},
			Rows: [][]outcome.Value{
				{text("1"), text("a"), number(1.5), null}, {text("1"), text("b"), number(2.5), null}, {text("2"), null, null, number(9)},
			},
		}},
		{"no_row", []outcome.Outcome{single(7), empty}, outcome.Outcome{
			Columns: []outcome.Column{query, q1, q2}, Rows: [][]outcome.Value{{text("1"), number(7), null}},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, outcome.Join(c.of)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
