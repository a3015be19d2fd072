package zoo_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/zoo"
)

// sequences have a wrong form and a right twin. Each query claims epsilon 0.5, and each sequence the sum. The person is
// number 0, with the largest income.
var sequences = []struct {
	name         string
	wrong, right []string
}{
	{
		"one seed for two queries",
		[]string{"SELECT anon_count_session_seed(id, 0.5) FROM users", "SELECT anon_count_session_seed(id, 0.5) FROM users WHERE id > 0"},
		[]string{"SELECT anon_count(id, 0.5) FROM users", "SELECT anon_count(id, 0.5) FROM users WHERE id > 0"},
	},
	{
		"a total with the noise of its parts",
		[]string{
			"SELECT anon_count_part(id, 0.5) FROM users WHERE id BETWEEN 1 AND 20", "SELECT anon_count_part(id, 0.5) FROM users WHERE id > 20",
			"SELECT anon_count_total(id, 0.5) FROM users",
		},
		[]string{
			"SELECT anon_count(id, 0.5) FROM users WHERE id BETWEEN 1 AND 20", "SELECT anon_count(id, 0.5) FROM users WHERE id > 20",
			"SELECT anon_count_total(id, 0.5) FROM users",
		},
	},
	{
		"a running noise",
		[]string{"SELECT anon_count_running(id, 0.5) FROM users", "SELECT anon_count_running(id, 0.5) FROM users WHERE id > 0"},
		[]string{"SELECT noisy(count(*), 2) FROM users", "SELECT noisy(count(*), 2) FROM users WHERE id > 0"},
	},
	{
		"an average from the noisy sum that is known",
		[]string{"SELECT anon_sum_kept(income, 0, 50000, 0.5) FROM users", "SELECT anon_avg_kept(income, 0, 50000, 0.5) FROM users"},
		[]string{"SELECT anon_sum(income, 0, 50000, 0.5) FROM users", "SELECT anon_avg(income, 0, 50000, 0.5) FROM users"},
	},
	{
		"groups and their total with one seed",
		[]string{
			"SELECT class, anon_count_session_seed(id, 0.5) FROM users WHERE id > 0 GROUP BY class",
			"SELECT anon_count_session_seed(id, 0.5) FROM users",
		},
		[]string{"SELECT class, anon_count(id, 0.5) FROM users WHERE id > 0 GROUP BY class", "SELECT anon_count(id, 0.5) FROM users"},
	},
}

// TestSequences audits every sequence on a real server, with fixed seeds. The wrong ones are found, the right ones are
// not, and no query of a wrong one is found alone. The error rate of all audits together is below 1e-6.
func TestSequences(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	sessions := worldSessions(t)
	for _, s := range sequences {
		found := auditSequence(t, sessions, s.wrong, 300)
		if found.Verdict != analysis.Violation {
			t.Errorf("%s: %s, %s; want a violation (wealth %.1f, estimate %.2f)", s.name, found.Verdict, found.Reason, found.WealthLog, found.EpsilonEstimate)
		} else {
			t.Logf("%s: found after %d pairs, bound %.2f", s.name, *found.DetectedAt, found.EpsilonLower)
		}
		if r := auditSequence(t, sessions, s.right, 60); r.Verdict == analysis.Violation {
			t.Errorf("%s: the right twin: %s, %s", s.name, r.Verdict, r.Reason)
		}
		for _, sql := range s.wrong {
			if r := auditSequence(t, sessions, []string{sql}, 50); r.Verdict == analysis.Violation {
				t.Errorf("%s: %s alone: %s", sql, r.Verdict, r.Reason)
			}
		}
	}
}

// worldSessions returns a session on the data of 41 people, and one on those without number 0.
func worldSessions(t *testing.T) (sessions [2]*pgx.Conn) {
	t.Helper()
	dsn := pgtest.Database(t)
	conn := connect(t, dsn)
	if _, err := conn.Exec(t.Context(), `create schema d0; create schema d1;
create table d0.users as select id, 50000 - 1000 * id as income, case when id % 2 = 0 then 'even' else 'odd' end as class from generate_series(0, 40) as id;
create table d1.users as select * from d0.users where id > 0`); err != nil {
		t.Fatal(err)
	}
	if err := zoo.Install(t.Context(), conn, "public"); err != nil {
		t.Fatal(err)
	}
	for w := range sessions {
		sessions[w] = connect(t, dsn)
		if _, err := sessions[w].Exec(context.Background(), "set search_path to d"+strconv.Itoa(w)+", public"); err != nil {
			t.Fatal(err)
		}
	}
	return sessions
}

// auditSequence audits the sequence of queries against the claim of 0.5 for each. A trial begins with what a new
// session has: none of the zoo's settings. The seed of random() goes on, so that trials are independent, and is the
// same in every run of a test.
func auditSequence(t *testing.T, sessions [2]*pgx.Conn, queries []string, pairs int) analysis.Report {
	t.Helper()
	for w, conn := range sessions {
		if _, err := conn.Exec(t.Context(), "select setseed($1)", .25+float64(w)/2); err != nil {
			t.Fatal(err)
		}
	}
	a, err := analysis.New(analysis.Claim{Epsilon: .5 * float64(len(queries))}, analysis.Options{Confidence: 1 - 5e-8, MaxTrials: pairs, Unordered: true})
	if err != nil {
		t.Fatal(err)
	}
	for !a.Decided() {
		var pair [2]outcome.Outcome
		for w, conn := range sessions {
			const clear = "select set_config('zoo.' || name, '', false) from unnest(array['seed', 'parts', 'running', 'sum']) as name"
			if _, err := conn.Exec(t.Context(), clear); err != nil {
				t.Fatal(err)
			}
			steps := make([]outcome.Outcome, len(queries))
			for i, sql := range queries {
				steps[i] = trial(t, conn, sql)
			}
			pair[w] = outcome.Join(steps)
		}
		a.Add(pair[0], pair[1])
	}
	return a.Report()
}
