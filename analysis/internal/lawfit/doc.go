// Package lawfit fits laws of noise to the past numbers of both worlds, as working alternatives for bets on every bin:
// mixtures of Laplace and normal laws with an optional peak, and log-likelihood ratios that are calibrated bin by bin.
package lawfit
