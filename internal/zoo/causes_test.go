package zoo_test

import (
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/diagnosis"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/showcase"
	"github.com/dpwatch/dpwatch/internal/zoo"
)

// wrongQueries break a claim of epsilon 1 for a known cause. The person is the showcase's heavy user, number 0.
var wrongQueries = []struct {
	name, sql string
	cause     diagnosis.Code
}{
	{"half the noise", "SELECT anon_count_half_noise(id, 1.0) FROM users", diagnosis.NoiseScale},
	{"half the noise, not rounded", "SELECT noisy(count(*), 0.5) FROM users", diagnosis.NoiseScale},
	{"Gaussian noise without delta", "SELECT round(noisy_gauss(count(*), 0.5) * 1024) / 1024 FROM users", diagnosis.NoiseFamily},
	{"sum not bounded", "SELECT anon_sum_unbounded(spent, 1.0) FROM transactions", diagnosis.Clipping},
	{"rows for users", "SELECT anon_count(id, 1.0) FROM transactions WHERE store_id < 20", diagnosis.ContributionBounds},
	{"one person in many stores", "SELECT store_id, noisy(count(DISTINCT user_id), 1) FROM transactions WHERE store_id < 40 GROUP BY store_id", diagnosis.ContributionBounds},
	{"every column spends the claim", "SELECT noisy(count(*), 1), noisy(sum(income / 71228.6875), 1), noisy(count(income_class), 1) FROM users", diagnosis.Composition},
	{"one noise for two columns", "SELECT count(*) + z, 2 * z FROM users, (SELECT noisy(0, 2) AS z OFFSET 0) AS n GROUP BY z", diagnosis.SharedNoise},
	{"group of one", "SELECT income_class, anon_count(id, 1.0) FROM users GROUP BY income_class", diagnosis.PartitionSelection},
	{"null for an empty set", "SELECT anon_count(id, 1.0) FROM users WHERE income_class = 'top'", diagnosis.EmptySet},
	{"no row for an empty set", "SELECT noisy(1, 1) FROM users WHERE income_class = 'top'", diagnosis.EmptySet},
	{"an error for an empty set", "SELECT noisy(1 / count(*), 1) FROM users WHERE income_class = 'top'", diagnosis.ErrorOnData},
	{"fixed seed", "SELECT anon_count_seeded(id, 1.0) FROM users", diagnosis.SeedOrCache},
	{"no noise", "SELECT count(*) FROM users", diagnosis.SeedOrCache},
	{"randomised response", "SELECT CASE WHEN random() < 0.9 THEN count(*) ELSE 1 - count(*) END FROM users WHERE id = 0", diagnosis.RandomisedResponse},
	{"a scale from the data", "SELECT noisy(500, 1 + 4 * count(*)) FROM users WHERE id = 0", diagnosis.DataDependentScale},
	{"naive floating point", "SELECT count(*) + 2 * ln((1 - random()) / (1 - random())) FROM users WHERE id = 0", diagnosis.FloatingPoint},
	{"noise on whole numbers", "SELECT count(*) / 4.0 + round(noisy(0, 20)) FROM users", diagnosis.Rounding},
}

// TestCauses audits every wrong query on a real server, with fixed seeds. The right cause must be first for at least 90 % of them.
func TestCauses(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	dsn := pgtest.Database(t)
	conn := connect(t, dsn)
	d0 := showcase.Generate(showcase.Seed)
	for schema, d := range map[string]showcase.Data{"d0": d0, "d1": d0.Without(showcase.HeavyUser)} {
		if err := showcase.Load(t.Context(), conn, schema, d); err != nil {
			t.Fatal(err)
		}
	}
	if err := zoo.Install(t.Context(), conn, "public"); err != nil {
		t.Fatal(err)
	}
	var sessions [2]*pgx.Conn
	for w := range sessions {
		sessions[w] = connect(t, dsn)
		if _, err := sessions[w].Exec(t.Context(), "set search_path to d"+strconv.Itoa(w)+", public"); err != nil {
			t.Fatal(err)
		}
	}
	right := 0
	for _, q := range wrongQueries {
		for w, conn := range sessions { // random() gives the same numbers in every run of this test
			if _, err := conn.Exec(t.Context(), "select setseed($1)", .25+float64(w)/2); err != nil {
				t.Fatal(err)
			}
		}
		a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: 3000, Unordered: true})
		if err != nil {
			t.Fatal(err)
		}
		for !a.Decided() {
			a.Add(trial(t, sessions[0], q.sql), trial(t, sessions[1], q.sql))
		}
		if q.cause == diagnosis.NoiseFamily && a.Measure(300) == nil { // the family shows in its tails
			for !a.Decided() {
				a.Add(trial(t, sessions[0], q.sql), trial(t, sessions[1], q.sql))
			}
		}
		r := a.Report()
		switch f := r.Finding; {
		case f == nil:
			t.Errorf("%s: %s, %s", q.name, r.Verdict, r.Reason)
		case len(f.Causes) == 0 || f.Causes[0].Code != q.cause:
			t.Logf("%s: %+v, want %s", q.name, f.Causes, q.cause)
		default:
			right++
		}
	}
	if 10*right < 9*len(wrongQueries) {
		t.Errorf("the right cause is first for %d of %d", right, len(wrongQueries))
	}
}

// trial runs a query once. Its numbers are those of PostgreSQL's text form.
func trial(t *testing.T, conn *pgx.Conn, sql string) (o analysis.Outcome) {
	t.Helper()
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		if o.SQLState = state(err); o.SQLState == "" {
			t.Fatal(err)
		}
		return o
	}
	for _, c := range results[0].FieldDescriptions {
		o.Columns = append(o.Columns, analysis.Column{Name: c.Name, Discrete: c.DataTypeOID != 701})
	}
	for _, row := range results[0].Rows {
		values := make([]analysis.Value, len(row))
		for i, text := range row {
			x, err := strconv.ParseFloat(string(text), 64)
			switch {
			case text == nil:
				values[i] = analysis.Value{Kind: analysis.Null}
			case err != nil:
				values[i] = analysis.Value{Kind: analysis.Text, Text: string(text)}
			default:
				values[i] = analysis.Value{Kind: analysis.Number, Num: x}
			}
		}
		o.Rows = append(o.Rows, values)
	}
	return o
}
