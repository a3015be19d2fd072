package eprocess

import (
	"math"
	"sync"
)

// KrichevskyTrofimov is the log-probability of a coin's tosses by Krichevsky and Trofimov's estimator: the average over
// all coins by the law Beta(1/2, 1/2).
func KrichevskyTrofimov(k0, k1 int32) float64 {
	return logGamma(int(k0), .5) + logGamma(int(k1), .5) - logGamma(int(k0)+int(k1), 1) - logPi
}

var logPi = math.Log(math.Pi)

// logGamma returns the logarithm of the gamma function at k plus a half or one.
func logGamma(k int, plus float64) float64 {
	if k < tabledGamma {
		return gammas()[int(2*plus)-1][k]
	}
	l, _ := math.Lgamma(float64(k) + plus)
	return l
}

// tabledGamma is the count up to which the logarithms are kept in a table: estimates take hundreds for each slot and
// report.
const tabledGamma = 1 << 13

var gammas = sync.OnceValue(func() (logs [2][]float64) {
	for i, plus := range [...]float64{.5, 1} {
		logs[i] = make([]float64, tabledGamma)
		for k := range logs[i] {
			logs[i][k], _ = math.Lgamma(float64(k) + plus)
		}
	}
	return logs
})
