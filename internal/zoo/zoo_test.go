package zoo_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/zoo"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn := pgtest.Connect(t, dsn)
	return conn
}

// installed returns a database with the functions in schema public.
func installed(t testing.TB) *pgx.Conn {
	t.Helper()
	conn := connect(t, pgtest.Database(t))
	if err := zoo.Install(context.Background(), conn, "public"); err != nil {
		t.Fatal(err)
	}
	return conn
}

func state(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}

func column[T any](t testing.TB, conn *pgx.Conn, sql string, args ...any) []T {
	t.Helper()
	rows, err := conn.Query(context.Background(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return values
}

func TestInstallIntoAnySchemaAllOrNothing(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.Database(t))
	const odd = `odd "name"`
	if err := zoo.Install(t.Context(), conn, odd); err != nil {
		t.Fatal(err)
	}
	// Called from another schema: nothing depends on the caller's search path.
	got := column[*int64](t, conn, `select "odd ""name""".anon_count(x, 1e9::double precision) from generate_series(1, 7) as x`)
	if len(got) != 1 || got[0] == nil || *got[0] != 7 {
		t.Errorf("got %v, want 7", got)
	}
	if path := column[string](t, conn, "show search_path"); path[0] != `"$user", public` {
		t.Errorf("the session's search path became %s", path[0])
	}
	if err := zoo.Install(t.Context(), conn, odd); state(err) != "42723" {
		t.Errorf("second time: %v, want SQLSTATE 42723: the function exists", err)
	}

	if _, err := conn.Exec(t.Context(), "create schema partly; create function partly.dp_count_final(bigint) returns int language sql as 'select 1'"); err != nil {
		t.Fatal(err)
	}
	if err := zoo.Install(t.Context(), conn, "partly"); state(err) != "42723" {
		t.Errorf("got %v, want SQLSTATE 42723", err)
	}
	if left := column[string](t, conn, "select proname::text from pg_proc where pronamespace = 'partly'::regnamespace"); len(left) != 1 {
		t.Errorf("half an installation is left: %v", left)
	}
}

func TestFunctionsAreThoseOfTheCatalog(t *testing.T) {
	t.Parallel()
	conn := installed(t)
	want := column[string](t, conn, `select distinct proname::text from pg_proc
where pronamespace = 'public'::regnamespace and (prokind = 'a' or proname like 'noisy%') order by 1`)
	var got []string
	for _, f := range zoo.Functions() {
		got = append(got, f.Name)
		names := column[string](t, conn, `select array_to_string(proargnames, ' ') from pg_proc where proname = $1 and proargnames is not null`, f.Name)
		for _, arguments := range names {
			if (f.Epsilon == -1) != strings.HasSuffix(arguments, " epsilon") {
				t.Errorf("%s(%s): epsilon at %d", f.Name, arguments, f.Epsilon)
			}
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-catalog +table):\n%s", diff)
	}
	// Functions that draw noise must be volatile, and random() must not run in parallel workers.
	wrong := column[string](t, conn, `select proname::text from pg_proc
where pronamespace = 'public'::regnamespace and prosrc like '%random()%' and not (provolatile = 'v' and proparallel = 'r')`)
	if len(wrong) != 0 {
		t.Errorf("not volatile and parallel restricted: %v", wrong)
	}
}

func TestNoiseIsNotFolded(t *testing.T) {
	t.Parallel()
	conn := installed(t)
	if _, err := conn.Exec(t.Context(), "set plan_cache_mode = force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"select noisy(5, 1)", "select noisy_gauss(5, 1)", "select anon_sum(1, 0, 1, 1)", "select anon_avg(x, 0, 1000, 1) from generate_series(1, 1000) as x",
		"select noisy(x, 1) from (values (5), (5), (5)) as v (x)",
	} {
		seen := map[float64]bool{}
		n := 0
		for range 10 {
			for _, v := range column[float64](t, conn, sql) {
				seen[v] = true
				n++
			}
		}
		if len(seen) != n { // 30 draws of 48 bits repeat with 2e-12
			t.Errorf("%s: %d different values in %d", sql, len(seen), n)
		}
	}
}

// TestNoiseLaws compares the noise with its distribution by the Kolmogorov-Smirnov statistic. With n values, it exceeds
// 3/sqrt(n) with probability below 2 exp(-18) = 3e-8 (Massart 1990).
func TestNoiseLaws(t *testing.T) {
	t.Parallel()
	conn := installed(t)
	const n = 20_000
	for _, c := range []struct {
		name, value string
		law         interface{ CDF(float64) float64 }
	}{
		{"laplace", "noisy(7, 3)", distuv.Laplace{Mu: 7, Scale: 3}},
		{"laplace_of_a_count", "noisy(count(*), 1 / 0.5)", distuv.Laplace{Mu: 1, Scale: 2}},
		{"gauss", "noisy_gauss(7, 3)", distuv.Normal{Mu: 7, Sigma: 3}},
		{"sum", "anon_sum(g, 0, 4, 0.5)", distuv.Laplace{Mu: 4, Scale: 8}},
		{"sum_with_negative_bound", "anon_sum_with_bounds(-10 - g, -6, 4, 0.5)", distuv.Laplace{Mu: -6, Scale: 12}},
		{"sum_not_clipped", "anon_sum_unclipped(10, 0, 4, 0.5)", distuv.Laplace{Mu: 10, Scale: 8}},
		{"sum_not_bounded", "anon_sum_unbounded(10, 0.5)", distuv.Laplace{Mu: 10, Scale: 20}},
		{"count_by_setting", "dp_count(g)", distuv.Laplace{Mu: 1, Scale: 1 / 0.8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := conn.Exec(t.Context(), "set dp.epsilon = '0.8'"); err != nil {
				t.Fatal(err)
			}
			values := column[float64](t, conn, fmt.Sprintf("select %s from generate_series(%d, %d) as g group by g", c.value, 10, n+9))
			slices.Sort(values)
			worst := 0.0
			for i, v := range values {
				p := c.law.CDF(v)
				worst = max(worst, math.Abs(p-float64(i)/n), math.Abs(p-float64(i+1)/n))
			}
			if len(values) != n || worst > 3/math.Sqrt(n) {
				t.Errorf("%d values, distance %.4f, at most %.4f expected", len(values), worst, 3/math.Sqrt(n))
			}
		})
	}
}

// TestRoundedNoise checks the counts, which are whole numbers: P(0) = 1 - exp(-1/(2b)) and P(|x| >= 2) =
// exp(-1.5/b), each at 6 standard errors: 2e-9, and 1e-8 for all four.
func TestRoundedNoise(t *testing.T) {
	t.Parallel()
	conn := installed(t)
	const n = 20_000
	for value, b := range map[string]float64{"anon_count(g, 0.5)": 2, "anon_count_half_noise(g, 0.5)": 1} {
		var zero, far float64
		for _, v := range column[int64](t, conn, fmt.Sprintf("select %s from generate_series(1, %d) as g group by g", value, n)) {
			switch {
			case v == 1:
				zero++
			case v <= -1 || v >= 3:
				far++
			}
		}
		for name, p := range map[string][2]float64{"0": {zero / n, 1 - math.Exp(-0.5/b)}, "2 or more": {far / n, math.Exp(-1.5 / b)}} {
			if math.Abs(p[0]-p[1]) > 6*math.Sqrt(p[1]*(1-p[1])/n) {
				t.Errorf("%s: noise of %s has frequency %.4f, probability %.4f", value, name, p[0], p[1])
			}
		}
	}
}

// TestValues uses an epsilon so large that the noise is below the printed precision.
func TestValues(t *testing.T) {
	t.Parallel()
	conn := installed(t)
	if _, err := conn.Exec(t.Context(), `set dp.epsilon = '1e12'; create table v (x double precision, t text);
insert into v values (1, 'a'), (null, null), (30, 'b'), (-5, 'c')`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ value, from, want string }{
		{"anon_count(x, 1e12)", "from v", "3"},
		{"anon_count(t, 1e12)", "from v", "3"},
		{"anon_count(x, 1e12)", "from v where x is null", "0"},
		{"anon_count(x, 1e12) filter (where x > 0)", "from v", "2"},
		{"anon_count(1, 0.1)", "from generate_series(1, 0)", "NULL"},
		{"round(anon_sum(x, 0, 10, 1e12)::numeric, 3)", "from v", "11.000"},
		{"round(anon_sum_with_bounds(x, -2, 20, 1e12)::numeric, 3)", "from v", "19.000"},
		{"round(anon_sum(x, 0, 10, 1e12)::numeric, 3)", "from v where x is null", "0.000"},
		{"anon_sum(x, 0, 10, 1e12)", "from v where false", "NULL"},
		{"round(anon_avg(x, 0, 10, 1e12)::numeric, 3)", "from v", "3.667"},
		{"round(anon_avg_with_bounds(x, -10, 100, 1e12)::numeric, 3)", "from v", "8.667"},
		{"round(anon_avg(x, 0, 10, 1e12)::numeric, 3)", "from v where x is null", "5.000"},
		{"anon_avg(x, 0, 10, 1e12)", "from v where false", "NULL"},
		{"round(dp_count(x)::numeric, 3)", "from v", "3.000"},
		{"round(dp_count(x)::numeric, 3)", "from v where false", "0.000"},
		{"noisy(null, 1)", "", "NULL"},
	} {
		t.Run(c.value+" "+c.from, func(t *testing.T) {
			got := column[string](t, conn, "select coalesce(("+c.value+")::text, 'NULL') "+c.from)
			if got[0] != c.want {
				t.Errorf("got %s, want %s", got[0], c.want)
			}
		})
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	conn := installed(t)
	const from = " from generate_series(1, 5) as x"
	for _, sql := range []string{
		"anon_count(x, 0)", "anon_count(x, -1)", "anon_count(x, 'nan')", "anon_count(x, 'infinity')", "anon_count(x, x)",
		"anon_count(x, 1 + x * 1e-4)", "anon_count_half_noise(x, 0)", "anon_count_seeded(x, -1)",
		"anon_sum(x, 0, 5, 0)", "anon_sum(x, 5, 0, 1)", "anon_sum(x, 0, 5, x)", "anon_sum(x, 0, x, 1)", "anon_sum_unbounded(x, 0)",
		"anon_avg(x, 0, 5, 0)", "anon_avg(x, 5, 0, 1)", "anon_avg(x, 0, 5, x)", "anon_avg(x, 0, x, 1)", "anon_avg(x, 0, 5, 'nan')",
		"dp_count(x)",
	} {
		t.Run(sql, func(t *testing.T) {
			if _, err := conn.Exec(t.Context(), "select "+sql+from); state(err) != "22023" {
				t.Errorf("got %v, want SQLSTATE 22023: invalid parameter value", err)
			}
		})
	}
	for _, setting := range []string{"0", "-1", "infinity", "nan", ""} {
		if _, err := conn.Exec(t.Context(), "select set_config('dp.epsilon', $1, false)", setting); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "select dp_count(x)"+from); state(err) != "22023" {
			t.Errorf("dp.epsilon = %q: got %v, want SQLSTATE 22023", setting, err)
		}
	}
}

// BenchmarkAggregates measures one execution, round trip included.
func BenchmarkAggregates(b *testing.B) {
	conn := installed(b)
	if _, err := conn.Exec(context.Background(), "set dp.epsilon = '1'"); err != nil {
		b.Fatal(err)
	}
	for _, rows := range []int{100, 10_000} {
		table := fmt.Sprintf("t%d", rows)
		if _, err := conn.Exec(context.Background(), fmt.Sprintf(
			"create table %s as select x::double precision from generate_series(1, %d) as x; analyze %[1]s", table, rows)); err != nil {
			b.Fatal(err)
		}
		for _, call := range []string{"noisy(count(*), 1)", "dp_count(x)", "anon_count(x, 1.0)", "anon_sum(x, 0, 50, 1.0)", "anon_avg(x, 0, 50, 1.0)"} {
			b.Run(fmt.Sprintf("%s/%d", call[:strings.Index(call, "(")], rows), func(b *testing.B) {
				for b.Loop() {
					if _, err := conn.Exec(context.Background(), "select "+call+" from "+table); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
