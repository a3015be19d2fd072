package replay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/replay"
)

// TestTogether: trials share transactions if no function that they call depends on the transaction.
func TestTogether(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t,
		`CREATE FUNCTION by_moment() RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT 0 * extract(epoch FROM now())::float8'`,
		`CREATE FUNCTION calls_it() RETURNS float8 LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN BY_Moment() + noise(); END'`,
		`CREATE FUNCTION modern() RETURNS float8 LANGUAGE sql VOLATILE RETURN random() + calls_it()`,
		`CREATE FUNCTION hidden() RETURNS float8 LANGUAGE plpgsql VOLATILE AS 'DECLARE r float8; BEGIN EXECUTE ''SELECT 0 * extract(epoch FROM no'' || ''w())'' INTO r; RETURN r; END'`,
		`CREATE FUNCTION moment_final(s float8) RETURNS float8 LANGUAGE sql AS 'SELECT s + calls_it()'`,
		`CREATE AGGREGATE moment_sum(float8) (SFUNC = float8pl, STYPE = float8, INITCOND = 0, FINALFUNC = moment_final)`,
		`CREATE VIEW d0.seen AS SELECT 1 AS one; CREATE VIEW d1.seen AS SELECT 1 AS one`,
	)
	for name, tc := range map[string]struct {
		noise    string
		together bool
	}{
		"random()":                  {`random()`, true},
		"a function":                {`noise()`, true},
		"a constant":                {`constant()`, true},
		"now()":                     {`random() + 0 * extract(epoch FROM now())`, false},
		"CURRENT_TIMESTAMP":         {`random() + 0 * extract(epoch FROM CURRENT_TIMESTAMP)`, false},
		"a word for today":          {`random() + 0 * extract(epoch FROM 'today'::timestamptz)`, false},
		"a transaction's number":    {`random() + coalesce(txid_current_if_assigned(), 0)`, false},
		"settings":                  {`random() + length(set_config('a.b', random()::text, true))`, false},
		"locks":                     {`random() + length(pg_try_advisory_xact_lock(1)::text)`, false},
		"a function that calls one": {`calls_it()`, false},
		"a standard SQL function":   {`modern()`, false},
		"dynamic SQL":               {`noise() + hidden()`, false},
		"an aggregate":              {`(SELECT moment_sum(noise()) FROM generate_series(1, 2))`, false},
		"a view":                    {`noise() + (SELECT max(one) FROM %s.seen WHERE random() < 2)`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := replay.Statement{Hoist: replay.ForceHoisting()}
			got, err := rounds(t, player(t, options(dsn)), s, `WITH a AS (SELECT sum(x) AS s FROM %s.t) SELECT s + `+tc.noise+` FROM a`, 200)
			if err != nil || len(got) != 200 {
				t.Fatal(err)
			}
			if r := s.Hoist.Report(); r.HoistedRounds == 0 || r.Together != tc.together {
				t.Errorf("%+v, want together %v", r, tc.together)
			}
			for i, round := range got {
				if round[0].Failed() || round[1].Failed() {
					t.Fatalf("round %d: %+v", i, round)
				}
			}
		})
	}
}

// TestErrorsTogether: an error ends the transaction that trials share; the trials after it are sent again, and each has
// the same distribution as in a transaction of its own.
func TestErrorsTogether(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t)
	sql := `WITH a AS (SELECT sum(x) AS s FROM %s.t) SELECT s + noise() / (random() > 0.1)::int FROM a`
	plain, err := rounds(t, player(t, options(dsn)), replay.Statement{}, sql, 1000)
	if err != nil {
		t.Fatal(err)
	}
	s := replay.Statement{Hoist: replay.ForceHoisting()}
	hoisted, err := rounds(t, player(t, options(dsn)), s, sql, 1100)
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Hoist.Report(); !r.Together || r.HoistedRounds != 1000 {
		t.Fatalf("%+v", r)
	}
	failed, values := [2]int{}, map[float64]bool{}
	for i, round := range hoisted {
		for world, o := range round {
			switch {
			case o.SQLState == "22012":
				failed[world]++
			case o.Failed() || len(o.Rows) != 1 || values[o.Rows[0][0].Num]:
				t.Fatalf("round %d: %+v, want an error or a result of its own", i, o)
			default:
				values[o.Rows[0][0].Num] = true
			}
		}
	}
	if what := differ(t, plain, hoisted[100:]); what != "" {
		t.Errorf("trials differ in %s (%v of 1100 failed)", what, failed)
	}
}

// TestTooLargeTogether: a result beyond the limits is the outcome of its own trial only, and no trial is repeated for
// it.
func TestTooLargeTogether(t *testing.T) {
	t.Parallel()
	s := replay.Statement{Hoist: replay.ForceHoisting()}
	got, err := rounds(t, player(t, options(hoistShadow(t))), s,
		`WITH a AS (SELECT sum(x) AS s FROM %s.t) SELECT s + noise() FROM a, generate_series(1, CASE WHEN random() < 0.1 THEN 1001 ELSE 2 END)`, 600)
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Hoist.Report(); !r.Together || r.HoistedRounds != 500 {
		t.Fatalf("%+v", r)
	}
	large, values := 0, map[float64]bool{}
	for i, round := range got {
		for _, o := range round {
			switch {
			case o.SQLState == replay.TooLarge:
				large++
			case o.Failed() || len(o.Rows) != 2 || values[o.Rows[0][0].Num]:
				t.Fatalf("round %d: %+v, want two rows of its own or too large", i, o)
			default:
				values[o.Rows[0][0].Num] = true
			}
		}
	}
	// Binomial of 1200 and 0.1: outside of 40 to 220 with probability below 1e-9.
	if large < 40 || large > 220 {
		t.Errorf("%d of 1200 too large", large)
	}
}

// TestTimeoutTogether: the statement timeout applies to one trial, not to a transaction. Trials that share a
// transaction take longer together than the timeout, and one takes a fifteenth of it at most. A machine that stalls for
// the timeout can fail a trial; so the times of a further attempt are four times as long.
func TestTimeoutTogether(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t)
	for unit := 20 * time.Millisecond; ; unit *= 4 {
		problem := timeoutTogether(t, dsn, unit)
		if problem == "" {
			return
		}
		if unit > time.Second {
			t.Fatal(problem)
		}
		t.Log(problem)
	}
}

// timeoutTogether runs trials half of which take a unit of time, and returns what is wrong with them, or "". 64 trials
// are sent at once and take 32 units on average. They take less than 15, the timeout, with probability below 10^-4.
func timeoutTogether(t *testing.T, dsn string, unit time.Duration) (problem string) {
	t.Helper()
	opt := options(dsn)
	opt.StatementTimeout = 15 * unit
	s := replay.Statement{Hoist: replay.ForceHoisting()}
	sql := fmt.Sprintf(`WITH a AS (SELECT sum(x) AS s FROM %%s.t) SELECT s + noise(), pg_sleep(CASE WHEN random() < 0.5 THEN %g ELSE 0 END)::text FROM a`, unit.Seconds())
	got, err := rounds(t, player(t, opt), s, sql, 200)
	if err != nil {
		return err.Error()
	}
	if r := s.Hoist.Report(); !r.Together || r.HoistedRounds != 100 {
		return fmt.Sprintf("timeout %v: %+v", opt.StatementTimeout, r)
	}
	for i, round := range got {
		if round[0].Failed() || round[1].Failed() {
			return fmt.Sprintf("timeout %v, round %d: %+v", opt.StatementTimeout, i, round)
		}
	}
	return ""
}
