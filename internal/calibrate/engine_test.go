package calibrate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/noise"
	"github.com/dpwatch/dpwatch/internal/calibrate"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// engine is a DP engine in PL/pgSQL: one right function of each kind, and others with one usual mistake each.
const engine = `
create function lap(scale float8) returns float8 language sql volatile as $$ select scale * ln((1 - random()) / (1 - random())) $$;
create function clip(x float8, l float8, u float8) returns float8 language sql immutable as $$ select greatest(l, least(u, x)) $$;
create function grid(x float8) returns float8 language sql immutable as $$ select round(x * 1048576) / 1048576 $$; -- without the low bits of x, which show the true answer

create function dp_count(n bigint, epsilon float8) returns float8 language plpgsql as $$ begin return grid(n + lap(1 / epsilon)); end $$;
create function dp_sum(s float8, l float8, u float8, epsilon float8) returns float8 language plpgsql as $$
begin return grid(s + lap(greatest(abs(l), abs(u)) / epsilon)); end $$;
create function dp_avg(s float8, n bigint, l float8, u float8, epsilon float8) returns float8 language plpgsql as $$
begin return clip((l + u) / 2 + grid(s - n * (l + u) / 2 + lap((u - l) / epsilon)) / greatest(1, grid(n + lap(2 / epsilon))), l, u); end $$;

create function naive(n bigint, epsilon float8) returns float8 language plpgsql as $$ begin return n + lap(1 / epsilon); end $$;
create function half_noise(n bigint, epsilon float8) returns float8 language plpgsql as $$ begin return grid(n + lap(.5 / epsilon)); end $$;
create function epsilon_as_scale(n bigint, epsilon float8) returns float8 language plpgsql as $$ begin return grid(n + lap(epsilon)); end $$;
create function seeded(n bigint, epsilon float8) returns float8 language plpgsql as $$
begin perform setseed(.42); return grid(n + lap(1 / epsilon)); end $$;
create function by_the_answer(n bigint, epsilon float8) returns float8 language plpgsql as $$
begin perform setseed(1 / (1.0 + n)); return grid(n + lap(1 / epsilon)); end $$;
create table noise as select lap(1) as z;
create function stored(n bigint, epsilon float8) returns float8 language plpgsql as $$ begin return grid(n + (select z from noise) / epsilon); end $$;
create function of_the_session(n bigint, epsilon float8) returns float8 language plpgsql as $$
begin
  if coalesce(current_setting('engine.noise', true), '') = '' then
    perform set_config('engine.noise', lap(1)::text, false);
  end if;
  return grid(n + current_setting('engine.noise')::float8 / epsilon);
end $$;
create function rounded_noise(n bigint, epsilon float8) returns float8 language plpgsql as $$ begin return n + 2 * round(lap(1 / epsilon) / 2); end $$;
create function exact(n bigint, epsilon float8) returns float8 language plpgsql as $$ begin return n; end $$;
create function exact_if_small(n bigint, epsilon float8) returns float8 language plpgsql as $$
begin return case when n < 5 then n else grid(n + lap(1 / epsilon)) end; end $$;
create function null_if_small(n bigint, epsilon float8) returns float8 language plpgsql as $$
begin return case when n >= 5 then grid(n + lap(1 / epsilon)) end; end $$;
create function error_if_small(n bigint, epsilon float8) returns float8 language plpgsql as $$
begin
  if n < 5 then
    raise exception 'too few rows';
  end if;
  return grid(n + lap(1 / epsilon));
end $$;
create function uniform(n bigint, epsilon float8) returns float8 language plpgsql as $$ begin return grid(n + (random() - .5) * 2 / epsilon); end $$;

create function whole_noise(s float8, u float8, epsilon float8) returns float8 language plpgsql as $$ begin return s + round(lap(u / epsilon)); end $$;
create function sensitivity_1(s float8, epsilon float8) returns float8 language plpgsql as $$ begin return grid(s + lap(1 / epsilon)); end $$;
create function of_the_range(s float8, l float8, u float8, epsilon float8) returns float8 language plpgsql as $$
begin return grid(s + lap((u - l) / epsilon)); end $$;
create function of_the_answer(s float8, epsilon float8) returns float8 language plpgsql as $$ begin return grid(s + lap(abs(s) / 10 / epsilon)); end $$;
create function true_divisor(s float8, n bigint, u float8, epsilon float8) returns float8 language plpgsql as $$
begin return grid((s + lap(u / epsilon)) / n); end $$;
create function whole_epsilon_twice(s float8, n bigint, l float8, u float8, epsilon float8) returns float8 language plpgsql as $$
begin return clip((l + u) / 2 + grid(s - n * (l + u) / 2 + lap((u - l) / 2 / epsilon)) / greatest(1, grid(n + lap(1 / epsilon))), l, u); end $$;
create function scale_by_the_rows(s float8, n bigint, l float8, u float8, epsilon float8) returns float8 language plpgsql as $$
begin return grid(s / n + lap((u - l) / n / epsilon)); end $$;
`

const clipped = "sum(clip($value, $lower, $upper))"

// wrong are the functions with a mistake.
var wrong = []string{
	"count=half_noise(count(*), $epsilon)",
	"sum=dp_sum(sum($value), $lower, $upper, $epsilon)", // no clipping
	"count=epsilon_as_scale(count(*), $epsilon)",
	"count=seeded(count(*), $epsilon)",
	"count=by_the_answer(count(*), $epsilon)",
	"count=stored(count(*), $epsilon)",
	"count=of_the_session(count(*), $epsilon)",
	"count=naive(count(*), $epsilon)", // the lowest bits
	"count=rounded_noise(count(*), $epsilon)",
	"count=exact(count(*), $epsilon)",
	"count=exact_if_small(count(*), $epsilon)",
	"count=null_if_small(count(*), $epsilon)",
	"count=error_if_small(count(*), $epsilon)",
	"count=uniform(count(*), $epsilon)",
	"sum=whole_noise(" + clipped + ", $upper, $epsilon)", // the sum is not whole
	"sum=sensitivity_1(" + clipped + ", $epsilon)",
	"sum=of_the_range(" + clipped + ", $lower, $upper, $epsilon)",
	"sum=of_the_answer(" + clipped + ", $epsilon)",
	"average=true_divisor(" + clipped + ", count(*), $upper, $epsilon)",
	"average=whole_epsilon_twice(" + clipped + ", count(*), $lower, $upper, $epsilon)", // for the sum and for the count
	"average=scale_by_the_rows(" + clipped + ", count(*), $lower, $upper, $epsilon)",
}

// right are the functions without one.
var right = []string{
	"count=dp_count(count(*), $epsilon)",
	"sum=dp_sum(coalesce(" + clipped + ", 0), $lower, $upper, $epsilon)",
	"average=dp_avg(coalesce(" + clipped + ", 0), count(*), $lower, $upper, $epsilon)",
}

// calibrateAll runs the battery on functions.
func calibrateAll(t *testing.T, o calibrate.Options, functions ...string) *calibrate.Report {
	t.Helper()
	o.DSN = pgtest.Database(t)
	pgtest.Exec(t, o.DSN, engine)
	for _, text := range functions {
		f, err := calibrate.ParseFunction(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Functions = append(o.Functions, f)
	}
	o.SearchPath, o.Lower, o.Upper, o.Confidence, o.Timeout = []string{"public"}, 50, 100, 1-1e-7, time.Minute
	r, err := calibrate.Engine(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEngine: a right function has no violation, and two wrong ones have. The rate of false alarms is 1e-7.
func TestEngine(t *testing.T) {
	t.Parallel()
	o := calibrate.Options{Epsilons: []float64{1}, Rows: []int{1}, MaxTrials: 300, FitTrials: 200}
	r := calibrateAll(t, o, right[0], "count=exact(count(*), $epsilon)", "count=lap(.01) + count($value) + 0 * $epsilon")
	for i, want := range []analysis.Verdict{analysis.NoEvidence, analysis.Violation, analysis.Violation} {
		if c := r.Cases[i]; c.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", c.Template, c.Verdict, c.Reason, want)
		}
	}
	if f := r.Cases[2].Fit; f == nil || f.Reading != noise.Wrong {
		t.Errorf("a hundredth of the noise fits: %v", f)
	}
	var b strings.Builder
	if err := r.Write(&b); err != nil || !strings.Contains(b.String(), "VIOLATION: 2 of 3 audits") {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	checkPage(t, b.String(), "exact(count(*), $epsilon)", "Certified lower bound", "VIOLATION: 2 of 3 audits")
}

// TestSecondCall: noise that a session uses again keeps the claim in one call, whose answers repeat, and shows a person
// in two calls.
func TestSecondCall(t *testing.T) {
	t.Parallel()
	r := calibrateAll(t, calibrate.Options{Epsilons: []float64{1}, Rows: []int{2}, MaxTrials: 100, FitTrials: 20}, "count=of_the_session(count(*), $epsilon)")
	for i, want := range []analysis.Verdict{analysis.Inconclusive, analysis.Violation} {
		if c := r.Cases[i]; c.Verdict != want {
			t.Errorf("%d calls: %s (%s), want %s", c.Calls, c.Verdict, c.Reason, want)
		}
	}
}

// TestMistakes: every usual mistake is found, and no right function has a violation. The rate of false alarms is 1e-7
// for each function. Each mistake shows at an epsilon of 0.1 or 1 with few rows: the other cases of a battery would only
// open thousands of sessions for confirmations.
func TestMistakes(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	for i, text := range append(slices.Clone(right), wrong...) {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			o := calibrate.Options{Epsilons: []float64{.1, 1}, Rows: []int{2}, MaxTrials: 1500, FitTrials: 200}
			switch {
			case i < len(right):
				o.Epsilons, o.Rows = []float64{1}, []int{2, 1000}
			case strings.Contains(text, "_if_small("): // D0 is not small, D1 is
				o.Rows = []int{5}
			case strings.Contains(text, "naive("), strings.Contains(text, "whole_epsilon_twice("): // found at epsilon 1 after 800 and 3200 pairs
				o.Epsilons, o.MaxTrials = []float64{1}, 20_000
			}
			r := calibrateAll(t, o, text)
			var b strings.Builder
			if err := r.Write(&b); err != nil {
				t.Fatal(err)
			}
			t.Log(b.String())
			want := analysis.NoEvidence
			if i >= len(right) {
				want = analysis.Violation
			}
			if got := r.Verdict(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}
