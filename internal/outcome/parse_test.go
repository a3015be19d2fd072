package outcome_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

func TestParseLine(t *testing.T) {
	t.Parallel()
	number := func(f float64, text string) outcome.Value {
		return outcome.Value{Kind: outcome.Number, Num: f, Text: text}
	}
	text := func(s string) outcome.Value { return outcome.Value{Kind: outcome.Text, Text: s} }
	one := func(discrete bool, v outcome.Value) outcome.Outcome {
		return outcome.Outcome{Columns: []outcome.Column{{Name: "value", Discrete: discrete}}, Rows: [][]outcome.Value{{v}}}
	}
	for _, tc := range []struct {
		name, line string
		want       outcome.Outcome
	}{
		{"no row", "", outcome.Outcome{}},
		{"blanks are no row", "  \r", outcome.Outcome{}},
		{"number", " -1.5e3 ", one(false, number(-1500, " -1.5e3 "))},
		{"number out of range", "1e999", one(false, number(math.Inf(1), "1e999"))},
		{"not a number", "NaN", one(false, number(math.NaN(), "NaN"))},
		{"word", "yes", one(true, text("yes"))},
		{"word with a blank", "yes \r", one(true, text("yes "))},
		{"digits beyond 2^53", "1152921504606846977", one(false, number(1152921504606846976, "1152921504606846977"))},
		{"hexadecimal is a word", "0x10", one(true, text("0x10"))},
		{"error", `{"error":"22012"}`, outcome.Outcome{SQLState: "22012"}},
		{"empty result set", `{"columns":["a"],"rows":[]}`, outcome.Outcome{Columns: []outcome.Column{{Name: "a", Discrete: true}}}},
		{
			"result set", `{"columns":["g","n","m"],"rows":[["a",1,null],["b",2.5,true]]}`,
			outcome.Outcome{
				Columns: []outcome.Column{{Name: "g", Discrete: true}, {Name: "n"}, {Name: "m", Discrete: true}},
				Rows: [][]outcome.Value{
					{text("a"), number(1, "1"), {Kind: outcome.Null}},
					{text("b"), number(2.5, "2.5"), {Kind: outcome.Bool, Num: 1}},
				},
			},
		},
		{
			"columns left out, a string that stands for infinity", `{"rows":[["-Infinity"]]}`,
			outcome.Outcome{Columns: []outcome.Column{{Name: "column1", Discrete: true}}, Rows: [][]outcome.Value{{number(math.Inf(-1), "-Infinity")}}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := new(outcome.Parser).ParseLine([]byte(tc.line))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestParseLineRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, line, want string }{
		{"broken object", `{"rows":[[1]`, "columns"},
		{"unknown field", `{"row":[[1]]}`, `unknown field "row"`},
		{"ragged", `{"rows":[[1],[1,2]]}`, "row 2 has 2 values, the result has 1 columns"},
		{"columns and rows differ", `{"columns":["a"],"rows":[[1,2]]}`, "row 1 has 2 values"},
		{"empty error", `{"error":""}`, "SQLSTATE"},
		{"two objects", `{"rows":[]} {"rows":[]}`, "more than one"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := new(outcome.Parser).ParseLine([]byte(tc.line))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want it to say %q", err, tc.want)
			}
		})
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`{"columns":["g"],"rows":[["a"]]}`))
	f.Add([]byte("1e5"))
	f.Fuzz(func(t *testing.T, line []byte) {
		o, err := new(outcome.Parser).ParseLine(line)
		if err != nil {
			return
		}
		for _, row := range o.Rows {
			if len(row) != len(o.Columns) {
				t.Errorf("a row of %d values under %d columns", len(row), len(o.Columns))
			}
		}
	})
}

// BenchmarkParseLine parses results of 200 groups.
func BenchmarkParseLine(b *testing.B) {
	var line strings.Builder
	line.WriteString(`{"columns":["grp","n"],"rows":[`)
	for k := range 200 {
		if k > 0 {
			line.WriteByte(',')
		}
		fmt.Fprintf(&line, `["g%d",%d.%03d]`, k, 100+k, k)
	}
	line.WriteString("]}")
	b.SetBytes(int64(line.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := new(outcome.Parser).ParseLine([]byte(line.String())); err != nil {
			b.Fatal(err)
		}
	}
}
