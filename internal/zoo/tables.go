package zoo

// Function describes one SQL function of the zoo, as needed for a signature rule.
type Function struct {
	Name string
	// Epsilon is the position of the epsilon argument, counted from the end as a negative number: -1 is the last
	// argument. 0 means that there is none.
	Epsilon int
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
		// These leak more than the epsilon that they are called with.
		{Name: "anon_count_half_noise", Epsilon: -1},
		{Name: "anon_count_seeded", Epsilon: -1},
		{Name: "anon_sum_unclipped", Epsilon: -1},
		{Name: "anon_sum_unbounded", Epsilon: -1},
		// The answers of several of these in one session leak more than the sum of their epsilons.
		{Name: "anon_count_session_seed", Epsilon: -1},
		{Name: "anon_count_part", Epsilon: -1},
		{Name: "anon_count_total", Epsilon: -1},
		{Name: "anon_count_running", Epsilon: -1},
		{Name: "anon_sum_kept", Epsilon: -1},
		{Name: "anon_avg_kept", Epsilon: -1},
	}
}
