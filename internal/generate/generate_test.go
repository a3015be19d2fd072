package generate_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpwatch/dpwatch/internal/generate"
)

const shop = `
tables:
  - name: users
    rows: 1000
    columns:
      - {name: id, kind: key, start: 100}
      - {name: income, kind: normal, mean: 40000, sd: 10000, decimals: 2, outliers: {share: 0.01, value: 1000000}}
      - {name: class, kind: text, values: [low, "mid,dle", ""], weights: [3, 6, 1]}
      - {name: joined, kind: date, from: 2024-02-28, to: 2024-03-01}
  - name: orders
    rows: 20000
    columns:
      - {name: id, kind: key}
      - {name: user_id, kind: reference, table: users, heavy: {key: 103, rows: 500}}
      - {name: favourite, kind: reference, table: users, exponent: 1.5, nulls: 0.5}
      - {name: amount, kind: float, min: 5, max: 500}
      - {name: items, kind: integer, min: -2, max: 7, nulls: 0.1}
      - {name: rank, kind: zipf, exponent: 2, max: 50}
`

// tables generates the CSV of each table, by name, as records without the header.
func tables(t *testing.T, spec string, seed uint64) map[string][][]string {
	t.Helper()
	s, err := generate.Parse([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][][]string{}
	for _, table := range s.Generate(seed) {
		var text bytes.Buffer
		if err := table.WriteCSV(&text); err != nil {
			t.Fatal(err)
		}
		records, err := csv.NewReader(&text).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		all[table.Name] = records[1:]
	}
	return all
}

func column(records [][]string, i int) (all []string) {
	for _, r := range records {
		all = append(all, r[i])
	}
	return all
}

func sum(t *testing.T, spec string, seed uint64) string {
	t.Helper()
	h := sha256.New()
	s, err := generate.Parse([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range s.Generate(seed) {
		if err := table.WriteCSV(h); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func TestSameSeedSameBytes(t *testing.T) {
	t.Parallel()
	first := sum(t, shop, 1)
	if again := sum(t, shop, 1); again != first {
		t.Error("the same seed gives different bytes")
	}
	if sum(t, shop, 2) == first {
		t.Error("two seeds give the same bytes")
	}
	changed := strings.Replace(shop, "min: 5, max: 500", "min: 5, max: 501", 1)
	before, after := tables(t, shop, 1)["orders"], tables(t, changed, 1)["orders"]
	for i := range 6 {
		if same := slices.Equal(column(before, i), column(after, i)); same != (i != 3) {
			t.Errorf("column %d after a change of column 3: same %v", i, same)
		}
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	data := tables(t, shop, 3)
	for i, id := range column(data["users"], 0) {
		if id != strconv.Itoa(100+i) {
			t.Fatalf("key %d is %s", i, id)
		}
	}
	rows := map[string]int{}
	for _, id := range column(data["orders"], 1) {
		rows[id]++
	}
	if rows["103"] != 500 {
		t.Errorf("the heavy unit has %d rows, want 500", rows["103"])
	}
	for id, n := range rows { // 19,500 over 999: 19.5 each; more than 80 has a probability below 1e-20
		if k, err := strconv.Atoi(id); err != nil || k < 100 || k >= 1100 || id != "103" && n > 80 {
			t.Errorf("user %s has %d rows", id, n)
		}
	}
	nulls, first := 0, 0
	for _, id := range column(data["orders"], 2) {
		switch id {
		case "":
			nulls++
		case "100":
			first++
		}
	}
	within(t, "NULLs", nulls, 20_000, .5)
	total := 0.0
	for k := range 1000 {
		total += math.Pow(float64(k+1), -1.5)
	}
	within(t, "rank 1 of the references", first, 20_000-nulls, 1/total)
}

// within fails if a count differs from that of n trials with probability p by 6 standard deviations (1e-8).
func within(t *testing.T, what string, count, n int, p float64) {
	t.Helper()
	if sd := math.Sqrt(float64(n) * p * (1 - p)); math.Abs(float64(count)-float64(n)*p) > 6*sd {
		t.Errorf("%s: %d of %d, want %.0f +- %.0f", what, count, n, float64(n)*p, 6*sd)
	}
}

// TestLaws compares the values with the laws of their columns: Kolmogorov's test for continuous ones with a false alarm
// rate of 1e-8, since 2 exp(-2 x^2) bounds the probability of sqrt(n) D > x (Massart 1990), and each cell's count for
// discrete ones. The seed is fixed.
func TestLaws(t *testing.T) {
	t.Parallel()
	const n = 50_000
	data := tables(t, fmt.Sprintf(`
tables:
  - name: t
    rows: %d
    columns:
      - {name: u, kind: float, min: -3, max: 5}
      - {name: g, kind: normal, mean: 7, sd: 2}
      - {name: i, kind: integer, min: -2, max: 2}
      - {name: z, kind: zipf, exponent: 1.3, max: 6}
      - {name: s, kind: text, values: [a, b, never, c], weights: [1, 2.5, 0, 0.5]}
      - {name: d, kind: date, from: 2024-02-28, to: 2024-03-01}
      - {name: o, kind: float, min: 0, max: 1, outliers: {share: 0.02, value: -9}, nulls: 0.25, decimals: 1}
`, n), 11)["t"]
	limit := math.Sqrt(math.Log(2/1e-8)/2) / math.Sqrt(n)
	for i, cdf := range []func(float64) float64{distuv.Uniform{Min: -3, Max: 5}.CDF, distuv.Normal{Mu: 7, Sigma: 2}.CDF} {
		var xs []float64
		for _, text := range column(data, i) {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			xs = append(xs, x)
		}
		slices.Sort(xs)
		worst := 0.0
		for j, x := range xs {
			worst = max(worst, cdf(x)-float64(j)/n, float64(j+1)/n-cdf(x))
		}
		if worst > limit {
			t.Errorf("column %d: the distance of the distribution functions is %.4f, above %.4f", i, worst, limit)
		}
	}
	zipf, total := map[string]float64{}, 0.0
	for k := 1.; k <= 6; k++ {
		total += math.Pow(k, -1.3)
	}
	for k := 1.; k <= 6; k++ {
		zipf[fmt.Sprint(k)] = math.Pow(k, -1.3) / total
	}
	for i, law := range map[int]map[string]float64{
		2: {"-2": .2, "-1": .2, "0": .2, "1": .2, "2": .2}, 3: zipf, 4: {"a": .25, "b": .625, "c": .125},
		5: {"2024-02-28": 1. / 3, "2024-02-29": 1. / 3, "2024-03-01": 1. / 3},
	} {
		counts := map[string]int{}
		for _, text := range column(data, i) {
			counts[text]++
		}
		for value, p := range law {
			within(t, fmt.Sprintf("column %d, value %s", i, value), counts[value], n, p)
		}
		if len(counts) != len(law) {
			t.Errorf("column %d has the values %v", i, counts)
		}
	}
	nulls, outliers := 0, 0
	for _, text := range column(data, 6) {
		switch {
		case text == "":
			nulls++
		case text == "-9":
			outliers++
		case len(text) > 3:
			t.Fatalf("%s has more than one decimal", text)
		}
	}
	within(t, "NULLs", nulls, n, .25)
	within(t, "outliers", outliers, n, .02*.75)
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	table := func(column string) string {
		return "tables:\n  - {name: u, rows: 1, columns: [{name: id, kind: key}]}\n  - name: t\n    rows: 3\n    columns:\n      - {name: c, " + column + "}\n"
	}
	for spec, want := range map[string]string{
		"":                             "tables: 0 tables",
		"tables: []":                   "tables: 0 tables",
		"tables: [{name: t, rows: 1}]": "tables[0] (t).columns: 0 columns",
		"tables: &a []\nx: *a":         "line 1: YAML anchors",
		"a: 1\n---\nb: 2":              "holds 2 YAML documents",
		"rows: 3":                      `unknown field "rows"`,
		"tables: {":                    "invalid YAML",
		"tables: 5":                    "invalid YAML",
		"tables: [{name: ../t, rows: 0, columns: [{name: a, kind: key}, {name: a, kind: key}]}]":                             `"../t" is no name`,
		"tables: [{name: t, rows: 1, columns: [{name: a, kind: key}]}, {name: t, rows: 1, columns: [{name: a, kind: key}]}]": "two tables have this name",
		table("kind: laplace"):                                                     `kind "laplace": must be key, reference`,
		table("kind: normal, mean: 1"):                                             "sd is missing",
		table("kind: normal, mean: .nan, sd: 1"):                                   "mean NaN",
		table("kind: normal, mean: 1, sd: 1, min: 3"):                              "min does not apply to kind normal",
		table("kind: integer, min: 0.5, max: 1"):                                   "must be whole numbers",
		table("kind: integer, min: 2, max: 1"):                                     "min not above max",
		table("kind: float, min: -1.7e308, max: 1.7e308"):                          "must be finite numbers",
		table("kind: zipf, exponent: 1, max: 5"):                                   "exponent 1: must be from 1.001 to 100",
		table("kind: zipf, exponent: 2, max: 0"):                                   "max 0",
		table("kind: text, values: [a, NULL]"):                                     "values[1]: is null",
		table("kind: text, values: []"):                                            "give at least one",
		table("kind: text, values: [a], weights: [0]"):                             "1 weights with the sum 0",
		table("kind: text, values: [a, b], weights: [1]"):                          "1 weights with the sum 1 for 2 values",
		table(`kind: text, values: ["a\0b"]`):                                      "without the NUL character",
		table("kind: date, from: 2024-02-30, to: 2025-01-01"):                      "must be dates",
		table("kind: reference, table: t"):                                         "no earlier table",
		table("kind: reference, table: u, heavy: {rows: 4}"):                       "must be from 1 to the 3 rows",
		table("kind: reference, table: u, heavy: {rows: 2}"):                       "has one row",
		table("kind: reference, table: u, heavy: {key: 1, rows: 3}"):               "has the keys 0 to 0",
		table("kind: integer, min: 0, max: 1, nulls: 2"):                           "nulls 2",
		table("kind: integer, min: 0, max: 1, outliers: {share: 0.1, value: 0.5}"): "must be a whole number",
		table("kind: key, start: 9e15"):                                            "up to 2^52",
		table("kind: float, min: 0, max: 1, decimals: 99"):                         "decimals 99",
	} {
		if _, err := generate.Parse([]byte(spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngives %v, want %q", spec, err, want)
		}
	}
}

// FuzzParse: a specification is refused, or its first rows can be generated and have the right number of cells.
func FuzzParse(f *testing.F) {
	f.Add(shop)
	f.Add("tables: [{name: t, rows: 2, columns: [{name: a, kind: key, start: -9007199254740992}, {name: b, kind: integer, min: -9007199254740992, max: 9007199254740992}]}]")
	f.Add("tables: [{name: t, rows: 2, columns: [{name: b, kind: zipf, exponent: 100, max: 9007199254740992}, {name: c, kind: float, min: 0, max: 5e-324, decimals: 15}]}]")
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := generate.Parse([]byte(text))
		if err != nil {
			return
		}
		for _, table := range spec.Generate(1) {
			n := 0
			for row := range table.Rows {
				if len(row) != len(table.Columns) {
					t.Fatalf("%d cells in %d columns", len(row), len(table.Columns))
				}
				if n++; n == 10 {
					break
				}
			}
		}
	})
}
