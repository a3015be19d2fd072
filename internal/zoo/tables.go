package zoo

import "math"

// Function describes one SQL function of the zoo, as needed for a signature rule.
type Function struct {
	Name string
	// Epsilon is the position of the epsilon argument, counted from the end as a negative number: -1 is the last argument.
	// 0 means that there is none.
	Epsilon int
	// Broken reports that the function leaks more than the epsilon that it is called with.
	Broken bool
}

// Functions returns every function that a query can call, in no particular order.
func Functions() []Function {
	return []Function{
		{Name: "noisy"},
		{Name: "noisy_gauss"},
		{Name: "dp_count"}, // epsilon from the setting dp.epsilon
		{Name: "anon_count", Epsilon: -1},
		{Name: "anon_sum", Epsilon: -1},
		{Name: "anon_sum_with_bounds", Epsilon: -1},
		{Name: "anon_avg", Epsilon: -1},
		{Name: "anon_avg_with_bounds", Epsilon: -1},
		{Name: "anon_count_half_noise", Epsilon: -1, Broken: true},
		{Name: "anon_count_seeded", Epsilon: -1, Broken: true},
		{Name: "anon_sum_unclipped", Epsilon: -1, Broken: true},
		{Name: "anon_sum_unbounded", Epsilon: -1, Broken: true},
	}
}

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

// Mechanisms returns the right and the wrong mechanisms for calibration. If a figure depends on the data, its derivation is
// in Why; the tests of this package check all of them on a real server.
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
			Name: "count of an empty set", SQL: "SELECT noisy(count(*), 1 / 1.0) FROM users WHERE income_class = 'top'",
			Claim: 1, Epsilon: 1, Honest: true, Why: "1 against 0 rows, noise in both",
		},
		{
			Name: "sum within bounds", SQL: "SELECT anon_sum(income, 0, 50000, 1.0) FROM users",
			Claim: 1, Epsilon: 1, Honest: true, Why: "the heavy user's income is above the bound: the sum moves by its sensitivity",
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
