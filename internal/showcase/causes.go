package showcase

import "math"

// Causes returns further queries that break their claim of epsilon 1, each for another cause, and a sequence: each of
// its queries keeps its claim, and their answers together do not.
func Causes() []Query {
	inf := math.Inf(1)
	claim := Claim{Epsilon: 1, Source: "comment"}
	const comment = " /*dp_epsilon='1'*/"
	return planted(Violation, []Query{
		{
			Name: "three columns", Simple: true, Claim: claim,
			SQL:     "SELECT noisy(count(*), 1), noisy(sum(income / 71228.6953540247), 1), noisy(count(income_class), 1) FROM users" + comment,
			Epsilon: 3, // the heavy user changes each by 1, the scale of its noise
			Note:    "each column spends the whole claim",
		},
		{
			Name: "one noise for two columns", Simple: true, Claim: claim,
			SQL:     "SELECT count(*) + z, 2 * z FROM users, (SELECT noisy(0, 2) AS z OFFSET 0) AS n GROUP BY z" + comment,
			Epsilon: inf, Note: "the difference of the columns has no noise",
		},
		{
			Name: "Gaussian noise, no delta", Simple: true, Claim: claim,
			SQL:     "SELECT round(noisy_gauss(count(*), 0.5) * 1024) / 1024 FROM users" + comment,
			Epsilon: inf, Note: "Gaussian noise has no pure epsilon",
		},
		{
			Name: "randomised response", Simple: true, Claim: claim,
			SQL:     "SELECT CASE WHEN random() < 0.9 THEN count(*) ELSE 1 - count(*) END FROM users WHERE id = 0" + comment,
			Epsilon: math.Log(9), Note: "true with probability 0.9 where the claim allows 0.73",
		},
		{
			Name: "scale from the data", Simple: true, Claim: claim,
			SQL:     "SELECT noisy(500, 1 + 4 * count(*)) FROM users WHERE id = 0" + comment,
			Epsilon: inf, Note: "noise of scale 5 with the user, 1 without",
		},
		{
			Name: "noise on whole numbers", Simple: true, Claim: claim,
			SQL:     "SELECT count(*) / 4.0 + round(noisy(0, 20)) FROM users" + comment,
			Epsilon: inf, Note: "the remainder is the answer before noise",
		},
		{
			Name: "naive floating point", Simple: true, Claim: claim,
			SQL:     "SELECT count(*) + 2 * ln((1 - random()) / (1 - random())) FROM users WHERE id = 0" + comment,
			Epsilon: inf, Note: "the lowest bits show the answer before noise",
		},
		{
			Name: "error for an empty set", Simple: true, Claim: claim,
			SQL:     "SELECT noisy(1 / count(*), 1) FROM users WHERE income_class = 'top'" + comment,
			Epsilon: inf, Note: "noise over one row, a division by zero over none",
		},
		{
			Name: "two queries, one seed", Simple: true, Claim: Claim{Epsilon: 1, Source: "argument"},
			SQL:     "SELECT anon_count_session_seed(id, 0.5) FROM users",
			Then:    "SELECT anon_count_session_seed(id, 0.5) FROM users WHERE id > 0",
			Epsilon: inf, Note: "each keeps its claim; their difference has no noise",
		},
	})
}
