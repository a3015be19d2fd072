package multiplicity

import "math"

// RateUpper returns an upper bound of the probability of an alarm after k alarms in n decided audits of identical data,
// which holds at all n together with probability at least 1 - alpha: the figure may be read after every audit. It is 1
// without audits, and NaN unless 0 <= k <= n and 0 < alpha < 1.
//
// For a probability p the ratio of the likelihood of the alarms, averaged over the prior beta(0.5, 10), to that under p
//
//	B(k+0.5, n-k+10) / B(0.5, 10) / (p^k (1-p)^(n-k))
//
// is a martingale with mean 1 if each audit alarms with probability p, given those before it. It reaches 1/alpha with
// probability at most alpha (Ville's inequality). The bound is the largest p for which it is below 1/alpha. It is about
// one probability: audits of queries that alarm with different ones are taken as draws from all of them. A bound that is
// made for one n, such as that of Clopper and Pearson, fails in 12 to 30 % of the cases if it is read again and again.
func RateUpper(k, n int, alpha float64) float64 {
	switch {
	case k < 0 || n < k || !(alpha > 0 && alpha < 1):
		return math.NaN()
	case k == n:
		return 1
	}
	alarms, others := float64(k), float64(n-k)
	mixture := logBeta(alarms+ratePriorAlarm, others+ratePriorOther) - logBeta(ratePriorAlarm, ratePriorOther)
	least, most := alarms/float64(n), 1.
	for range 60 { // of the interval remains less than 1e-18
		p := (least + most) / 2
		if mixture-alarms*math.Log(p)-others*math.Log1p(-p) < -math.Log(alpha) {
			least = p
		} else {
			most = p
		}
	}
	return most
}

// The prior is concentrated on small probabilities.
const (
	ratePriorAlarm = 0.5
	ratePriorOther = 10
)

func logBeta(a, b float64) float64 {
	x, _ := math.Lgamma(a)
	y, _ := math.Lgamma(b)
	z, _ := math.Lgamma(a + b)
	return x + y - z
}
