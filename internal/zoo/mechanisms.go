package zoo

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Mechanism is one query over the showcase tables and its actual privacy loss.
type Mechanism struct {
	Name string
	SQL  string // unqualified table names: users, transactions
	// Claim is the claimed epsilon; delta is 0.
	Claim float64
	// Epsilon is the true privacy loss between the showcase data with and without its heavy user (generated with
	// showcase.Seed), or an upper bound of it if Bound is set. +Inf: some result is possible in only one world.
	Epsilon float64
	Bound   bool
	Honest  bool // Epsilon <= Claim
	Why     string
}

// Mistake is one query over the showcase tables that breaks a claim of epsilon 1 for a known cause.
type Mistake struct {
	Name, SQL string
	Cause     string // a code of package diagnosis
}

// Sorted reports whether the query determines the order of its rows.
func (m Mistake) Sorted() bool { return strings.Contains(m.SQL, " ORDER BY ") }

var constant = regexp.MustCompile(` [*/+-] ([\d.]+)::float8`)

// Constants returns the numbers with which the query calculates, the last operation first: those with a cast to float8.
func (m Mistake) Constants() (all []float64) {
	for _, found := range constant.FindAllStringSubmatch(m.SQL, -1) {
		x, _ := strconv.ParseFloat(found[1], 64) // the pattern matches numbers alone
		all = append([]float64{x}, all...)
	}
	return all
}

// Mechanisms returns right and wrong mechanisms. If a figure depends on the data, its derivation is in Why.
func Mechanisms() []Mechanism {
	return []Mechanism{
		{
			Name: "count", SQL: "SELECT anon_count(id, 1.0) FROM users",
			Claim: 1, Epsilon: 1, Honest: true, Why: "one user, one row: the count moves by its sensitivity",
		},
		{
			Name: "count by noisy", SQL: "SELECT noisy(count(*), 1 / 1.0) FROM users",
			Claim: 1, Epsilon: 1, Honest: true, Why: "the same with plain noise",
		},
		{
			Name: "count of an empty set", SQL: "SELECT round(noisy(count(*), 1 / 1.0) * 1024) / 1024 FROM users WHERE income_class = 'top'",
			Claim: 1, Epsilon: 1, Honest: true, Why: "1 against 0 rows, noise in both, rounded since low bits depend on small answers",
		},
		{
			Name: "sum within bounds", SQL: "SELECT anon_sum(income, 0, 50000, 1.0) FROM users",
			Claim: 1, Epsilon: 1, Honest: true, Why: "the heavy user's income is above the bound: the sum moves by its sensitivity",
		},
		{
			Name: "count with two digits", SQL: "SELECT round(noisy(count(*), 1 / 1.0)::numeric, 2) FROM users",
			Claim: 1, Epsilon: 1, Honest: true, Why: "the same number of digits, whatever the count",
		},
		{
			Name: "count on a grid, times 1.1", SQL: "SELECT round(noisy(count(*), 1 / 1.0) * 1024) / 1024 * 1.1::float8 FROM users",
			Claim: 1, Epsilon: 1, Honest: true, Why: "what the query does to a rounded answer depends on that alone",
		},
		{
			Name: "average within bounds", SQL: "SELECT anon_avg(income, 0, 100000, 1.0) FROM users",
			Claim: 1, Epsilon: 1, Bound: true, Honest: true, Why: "half of epsilon for the count, half for the sum",
		},
		{
			Name: "rows of one user", SQL: "SELECT noisy(count(*), 500 / 1.0) FROM transactions",
			Claim: 1, Epsilon: 1, Honest: true, Why: "500 rows of one user, noise for 500",
		},
		{
			Name: "no difference", SQL: "SELECT noisy(count(*), 1 / 1.0) FROM users WHERE id > 0",
			Claim: 1, Epsilon: 0, Honest: true, Why: "the heavy user, number 0, is not in the set",
		},
		{
			Name: "half the noise", SQL: "SELECT anon_count_half_noise(id, 1.0) FROM users",
			Claim: 1, Epsilon: 2, Why: "Laplace noise of half the scale",
		},
		{
			Name: "sum not clipped", SQL: "SELECT anon_sum_unclipped(income, 0, 30000, 1.0) FROM users",
			Claim: 1, Epsilon: 71228.6953540247 / 30000, Why: "the heavy user's income over the bound that the noise was made for",
		},
		{
			Name: "sum not bounded", SQL: "SELECT anon_sum_unbounded(spent, 1.0) FROM transactions",
			Claim: 1, Epsilon: math.Inf(1),
			Why: "500 rows of one user, noise for one average row: 507 scales apart, and the scale itself depends on the data",
		},
		{
			Name: "rows for users", SQL: "SELECT anon_count(id, 1.0) FROM transactions",
			Claim: 1, Epsilon: 500, Why: "the row taken for the unit: 500 rows of one user, noise for one",
		},
		{
			Name: "null for an empty set", SQL: "SELECT anon_count(id, 1.0) FROM users WHERE income_class = 'top'",
			Claim: 1, Epsilon: math.Inf(1), Why: "noise around 1 against NULL",
		},
		{
			Name: "group of one", SQL: "SELECT income_class, anon_count(id, 1.0) FROM users GROUP BY income_class",
			Claim: 1, Epsilon: math.Inf(1), Why: "the group 'top' is there or not",
		},
		{
			Name: "fixed seed", SQL: "SELECT anon_count_seeded(id, 1.0) FROM users",
			Claim: 1, Epsilon: math.Inf(1), Why: "the same noise every time: two numbers that differ by exactly 1",
		},
		{
			Name: "no noise", SQL: "SELECT count(*) FROM users",
			Claim: 1, Epsilon: math.Inf(1), Why: "the true count",
		},
	}
}

// Mistakes returns queries with the usual mistakes. The person is the showcase's heavy user, number 0.
func Mistakes() []Mistake {
	return []Mistake{
		{"half the noise", "SELECT anon_count_half_noise(id, 1.0) FROM users", "noise_scale"},
		{"half the noise, not rounded", "SELECT noisy(count(*), 0.5) FROM users", "noise_scale"},
		{"Gaussian noise without delta", "SELECT round(noisy_gauss(count(*), 0.5) * 1024) / 1024 FROM users", "noise_family"},
		{"sum not bounded", "SELECT anon_sum_unbounded(spent, 1.0) FROM transactions", "clipping"},
		{"rows for users", "SELECT anon_count(id, 1.0) FROM transactions WHERE store_id < 20", "contribution_bounds"},
		{"one person in many stores", "SELECT store_id, noisy(count(DISTINCT user_id), 1) FROM transactions WHERE store_id < 40 GROUP BY store_id", "contribution_bounds"},
		{"every column spends the claim", "SELECT noisy(count(*), 1), noisy(sum(income / 71228.6875), 1), noisy(count(income_class), 1) FROM users", "composition"},
		{"one noise for two columns", "SELECT count(*) + z, 2 * z FROM users, (SELECT noisy(0, 2) AS z OFFSET 0) AS n GROUP BY z", "shared_noise"},
		{"group of one", "SELECT income_class, anon_count(id, 1.0) FROM users GROUP BY income_class", "partition_selection"},
		{"null for an empty set", "SELECT anon_count(id, 1.0) FROM users WHERE income_class = 'top'", "empty_set"},
		{"no row for an empty set", "SELECT noisy(1, 1) FROM users WHERE income_class = 'top'", "empty_set"},
		{"an error for an empty set", "SELECT noisy(1 / count(*), 1) FROM users WHERE income_class = 'top'", "error"},
		{"an error in 1 of 20 trials", "SELECT noisy(1 / (1 - count(*) * (random() < 0.05)::int), 1) FROM users WHERE id = 0", "error"},
		{"fixed seed", "SELECT anon_count_seeded(id, 1.0) FROM users", "seed_or_cache"},
		{"no noise", "SELECT count(*) FROM users", "seed_or_cache"},
		{"randomised response", "SELECT CASE WHEN random() < 0.9 THEN count(*) ELSE 1 - count(*) END FROM users WHERE id = 0", "randomised_response"},
		{"a scale from the data", "SELECT noisy(500, 1 + 4 * count(*)) FROM users WHERE id = 0", "data_dependent_scale"},
		{"naive floating point", "SELECT count(*) + 2 * ln((1 - random()) / (1 - random())) FROM users WHERE id = 0", "floating_point"},
		{"naive floating point, times 1.1", "SELECT (count(*) + 2 * ln((1 - random()) / (1 - random()))) * 1.1::float8 FROM users WHERE id = 0", "floating_point"},
		{"naive floating point, in thousandths, times 37", "SELECT (count(*) + 2 * ln((1 - random()) / (1 - random()))) / 1000::float8 * 37::float8 FROM users WHERE id = 0", "floating_point"},
		{"digits of a sum", "SELECT round(noisy(count(*), 1)::numeric, 2) + sum(CASE id WHEN 0 THEN 0.500 ELSE 0.25 END) FROM users", "form"},
		{"digits of one of four sums", "SELECT round(noisy(0, 1)::numeric, (9 * random())::int), round(noisy(0, 1)::numeric, (9 * random())::int), round(noisy(0, 1)::numeric, (9 * random())::int), round(noisy(count(*), 1)::numeric, 2) + sum(CASE id WHEN 0 THEN 0.500 ELSE 0.25 END) FROM users", "form"},
		{"an optional key", `SELECT jsonb_build_object('n', noisy(count(*), 1)) || CASE count(*) FILTER (WHERE id = 0) WHEN 0 THEN '{}' ELSE '{"vip": true}'::jsonb END FROM users`, "form"},
		{"an error with the count", "SELECT CASE WHEN random() < 0.5 THEN noisy(count(*), 1) ELSE (count(*) || ' people')::float8 END FROM users", "form"},
		{"a value in an error", "SELECT CASE WHEN random() < 0.5 THEN noisy(0, 1) ELSE (noisy(count(*), 0.25) || ' people')::float8 END FROM users", "form"},
		{"an element of a list", "SELECT array_append(array(SELECT noisy(0, 1) FROM generate_series(1, 1 + 2 * round(random() * 2)::int)), noisy(count(*), 0.25)) FROM users", "form"},
		{"the length of a list", "SELECT array(SELECT round(noisy(0, 1) * 1024) / 1024 FROM generate_series(1, 1 + (SELECT count(*) % 2 FROM users)::int + 2 * round(random() * 2)::int))", "form"},
		{"a letter before a hash", "SELECT CASE count(*) % 2 WHEN 0 THEN 'a' ELSE 'b' END || md5(random()::text) FROM users", "form"},
		{"one bit of a hash", "SELECT overlay(md5(random()::text) placing CASE count(*) % 2 WHEN 0 THEN '0' ELSE '8' END FROM 11) FROM users", "form"},
		{"numbers in a wrapper", "SELECT 'np.float64(' || round(noisy(count(*), 0.5) * 1024) / 1024 || ')' FROM users", "noise_scale"},
		{"an exact total", "SELECT store_id, n + z - avg(z) OVER () FROM (SELECT store_id, count(*) AS n, noisy(0, 500) AS z FROM transactions WHERE store_id < 40 GROUP BY store_id OFFSET 0) AS s", "exact_total"},
		{"an exact largest group", "SELECT store_id, n + z - max(n + z) OVER () + max(n) OVER () FROM (SELECT store_id, count(*) AS n, noisy(0, 500) AS z FROM transactions WHERE store_id < 40 GROUP BY store_id OFFSET 0) AS s", "aggregate"},
		{"rows by their exact counts", "SELECT store_id, noisy(count(*), 500) FROM transactions WHERE store_id < 40 GROUP BY store_id ORDER BY count(*), store_id", "row_order"},
		{"noise on whole numbers", "SELECT count(*) / 4.0 + round(noisy(0, 20)) FROM users", "rounding"},
	}
}
