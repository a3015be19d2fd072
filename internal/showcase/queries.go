package showcase

import (
	_ "embed"
	"math"
	"strings"
)

//go:embed sql/rewritten.sql
var rewrittenSQL string

// The planted verdicts, as in the audit's report.
const (
	Violation  = "violation"
	NoEvidence = "no_evidence"
)

// Query is one query of the demo's client. It is sent through the proxy, to the shop database, in a session of its own.
type Query struct {
	Name   string
	SQL    string
	Params []any    // for the extended protocol; none if Simple
	Simple bool     // use the simple protocol
	Then   string   // sent after SQL in the same session: the two together are the query; "" = none
	Setup  []string // statements to send first, in the same session
	// WantVerdict is the planted verdict: Violation, NoEvidence, or "" for a query that is not audited.
	WantVerdict string
	Claim       Claim
	// Epsilon is the true privacy loss at Claim.Delta between the data with and without the heavy user, generated with
	// Seed; an upper bound of it if WantVerdict is NoEvidence. +Inf: some result is possible in only one world.
	Epsilon float64
	Fails   bool // the server rejects it
	Note    string
}

// Claim is the claim of a query, and its source.
type Claim struct {
	Epsilon, Delta float64
	Source         string // "argument", "comment" or "setting"
}

// Queries returns the demo's queries: every protocol, every source of a claim, right and wrong engines, and unrelated
// queries in between.
func Queries() []Query {
	var mix []Query
	honest, broken, ordinary := Honest(), append(Broken(), Causes()...), Ordinary()
	for i := range max(len(honest), len(broken), len(ordinary)) {
		for _, kind := range [][]Query{ordinary, honest, broken} {
			if i < len(kind) {
				mix = append(mix, kind[i])
			}
		}
	}
	return mix
}

// Honest returns the queries that keep their claim.
func Honest() []Query {
	return planted(NoEvidence, []Query{
		{
			Name: "count of users", Simple: true,
			SQL:   `SELECT anon_count(id, 0.5) FROM users`,
			Claim: Claim{Epsilon: 0.5, Source: "argument"}, Epsilon: 0.5,
			// One user more changes the count by 1; Laplace noise of scale 1/0.5. Tight.
			Note: "noise for one user",
		},
		{
			Name: "clipped sum", Simple: true,
			SQL: `SELECT anon_sum(total, 0, 5000, 1.0) FROM (
  SELECT user_id, sum(spent) AS total FROM transactions WHERE store_id < 40 GROUP BY user_id) AS per_user`,
			Claim: Claim{Epsilon: 1, Source: "argument"}, Epsilon: 1,
			// The heavy user spent 15,300 there and is clipped to 5,000, the sensitivity. Tight.
			Note: "per-user totals, clipped to 5000",
		},
		{
			Name: "visitors of ten stores",
			SQL: `SELECT s.store_id, noisy(count(DISTINCT t.user_id), 10 / 1.0) AS visitors
FROM stores AS s LEFT JOIN transactions AS t ON t.store_id = s.store_id
WHERE s.store_id >= 190 GROUP BY s.store_id ORDER BY s.store_id /*dp_epsilon='1.0'*/`,
			Claim: Claim{Epsilon: 1, Source: "comment"}, Epsilon: 1,
			// The heavy user is one visitor in each of the ten: ten shifts of 1 against Laplace noise of scale 10.
			// Tight, but only all ten together show it: each group alone loses 0.1.
			Note: "public groups, noise for a user who is in all of them",
		},
		{
			Name: "count by setting", Simple: true, Setup: []string{`SET dp.epsilon = '0.8'`},
			SQL:   `SELECT dp_count(id) FROM users WHERE income > 45000`,
			Claim: Claim{Epsilon: 0.8, Source: "setting"}, Epsilon: 0.8,
			// The heavy user has the highest income: 1 more, Laplace noise of scale 1/0.8. Tight.
			Note: "epsilon from the session",
		},
		{
			Name: "average by parameter", Params: []any{1.0},
			SQL:   `SELECT anon_avg(income, 0, 100000, $1) FROM users`,
			Claim: Claim{Epsilon: 1, Source: "argument"}, Epsilon: 0.5 + 0.5*(71228.6953540247-50000)/50000,
			// Half of epsilon for the count, which changes by its sensitivity, 1; half for the sum of distances from
			// the middle, which changes by 21,229 of at most 50,000. The result depends only on these two.
			Note: "bound parameter as epsilon",
		},
		{
			Name: "rewriter's SQL", Simple: true,
			SQL:   strings.TrimSpace(rewrittenSQL) + " /*dp_epsilon='2.0',dp_delta='1e-4'*/",
			Claim: Claim{Epsilon: 2, Delta: 1e-4, Source: "comment"}, Epsilon: 0.98,
			// epsilon 1 and delta 3e-5 for the number of users per store, the same for the sums, and delta 3e-5 for the
			// threshold: m = sqrt(2 ln(1.25/3e-5)) = 4.61247. A user is in at most 3 stores (L2 sqrt 3: sigma = m sqrt
			// 3 = 7.98904) with sums clipped to L2 norm 500 (sigma = 500 m = 2306.24). tau = 1 + m sqrt 3 z, z the
			// quantile at (1 - 3e-5)^(1/3). All four stores have other visitors, so that on this pair only the two
			// Gaussians count: mu = sqrt(2)/m = 0.30661, which at delta 1e-4 is epsilon 0.974 (Balle and Wang 2018,
			// theorem 8).
			Note: "clipping, Gaussian noise, a threshold on rare groups",
		},
	})
}

// Broken returns the queries that break their claim.
func Broken() []Query {
	inf := math.Inf(1)
	return planted(Violation, []Query{
		{
			Name: "half the noise", Params: []any{1.0},
			SQL:   `SELECT anon_count_half_noise(id, $1) FROM users`,
			Claim: Claim{Epsilon: 1, Source: "argument"}, Epsilon: 2,
			Note: "scale 1/2 where the claim needs 1",
		},
		{
			Name: "one person in all stores", Simple: true,
			SQL: `SELECT store_id, noisy(count(DISTINCT user_id), 1 / 1.0) AS visitors
FROM transactions GROUP BY store_id /*dp_epsilon='1.0'*/`,
			Claim: Claim{Epsilon: 1, Source: "comment"}, Epsilon: Stores,
			// A shift of 1 against noise of scale 1 in each of 200 groups. Each group alone keeps the claim.
			Note: "noise for one store, a user in 200",
		},
		{
			Name: "group of one person",
			SQL:  `SELECT income_class, anon_count(id, 1.0) FROM users GROUP BY income_class`, Simple: true,
			Claim: Claim{Epsilon: 1, Source: "argument"}, Epsilon: inf,
			Note: "the group 'top' is there or not",
		},
		{
			Name: "NULL for an empty set", Simple: true,
			SQL:   `SELECT anon_sum(income, 0, 100000, 1.0) FROM users WHERE income_class = 'top'`,
			Claim: Claim{Epsilon: 1, Source: "argument"}, Epsilon: inf,
			Note: "noise over one row, NULL over none",
		},
		{
			Name:  "same noise every time",
			SQL:   `SELECT anon_count_seeded(id, 1.0) FROM users`,
			Claim: Claim{Epsilon: 1, Source: "argument"}, Epsilon: inf,
			Note: "a fixed seed: the two answers differ by exactly 1",
		},
		{
			Name: "sum not clipped", Simple: true,
			SQL:   `SELECT anon_sum_unclipped(income, 0, 30000, 1.0) FROM users`,
			Claim: Claim{Epsilon: 1, Source: "argument"}, Epsilon: 71228.6953540247 / 30000,
			// The heavy user's income against noise for 30,000.
			Note: "bounds set the noise, but nothing is clipped to them",
		},
	})
}

// planted sets the verdict of all queries.
func planted(verdict string, queries []Query) []Query {
	for i := range queries {
		queries[i].WantVerdict = verdict
	}
	return queries
}

// Ordinary returns queries that a client also sends and that are not audited.
func Ordinary() []Query {
	return []Query{
		{Name: "ping", SQL: `SELECT 1`, Simple: true},
		{
			Name: "catalog", SQL: `SELECT c.relname, c.reltuples FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r' ORDER BY 1`,
			Params: []any{"public"},
		},
		{Name: "public table", SQL: `SELECT region, count(*) FROM stores GROUP BY region ORDER BY region`},
		{Name: "insert", SQL: `INSERT INTO notes (body) VALUES ($1)`, Params: []any{"opened at nine"}},
		{Name: "syntax error", SQL: `SELEC anon_count(id, 1.0) FROM users`, Simple: true, Fails: true},
	}
}
