package analysis

import "math"

// Odds describes an attacker: the odds of D0 to D1 before an answer is seen, and the odds above which there is a
// breach. Both are finite and positive.
type Odds struct {
	Prior, Breach float64
}

// ImpliedEpsilon is the greatest epsilon under which no single answer can lift the prior odds above the threshold:
// ln(breach/prior), for delta 0. It is negative when the prior is a breach already.
func (o Odds) ImpliedEpsilon() float64 { return math.Log(o.Breach) - math.Log(o.Prior) }

// After returns the posterior odds after n answers in which the same event came, with the given likelihood ratio of one
// answer: prior times ratio to the n. The answers are taken to be independent. NaN for a ratio that is NaN or negative.
func (o Odds) After(ratio float64, n int) float64 {
	if !(ratio >= 0) || n < 0 {
		return math.NaN()
	}
	if n == 0 {
		return o.Prior
	}
	return math.Exp(math.Log(o.Prior) + float64(n)*math.Log(ratio))
}

// Breached reports whether the odds after n such answers are above the threshold.
func (o Odds) Breached(ratio float64, n int) bool { return o.After(ratio, n) > o.Breach }

// AnswersToBreach returns the fewest answers of the same query after which an attacker's odds can pass the threshold
// when each answer's privacy loss is epsilon; 0 when the prior is above it, -1 when no number is enough (epsilon of 0
// or less, or not a number), or more than 2^53 are.
func (o Odds) AnswersToBreach(epsilon float64) int {
	return answersToBreach(o.ImpliedEpsilon(), epsilon)
}

// at returns the figures of an attacker that follow from a bound and from the estimated ratio.
func (t Attacker) at(lower float64) Attacker {
	gap := float64(t.ImpliedEpsilon)
	t.Breached = math.Log(float64(t.LikelihoodRatio)) > gap
	t.PosteriorOddsLower, t.BreachCertified, t.AnswersToBreach = Float(t.PriorOdds*math.Exp(lower)), lower > gap, nil
	if n := answersToBreach(gap, lower); n >= 0 {
		t.AnswersToBreach = &n
	}
	return t
}

func answersToBreach(gap, epsilon float64) int {
	if gap < 0 {
		return 0
	}
	n := math.Floor(gap/epsilon) + 1 // the odds must exceed the threshold
	if !(epsilon > 0) || !(n <= 1<<53) {
		return -1
	}
	return int(n)
}
