// Package code holds the codes of outcomes: every outcome of a score as one float64, the labels of those that are not numbers, and the
// dictionaries that number texts and error classes.
package code
