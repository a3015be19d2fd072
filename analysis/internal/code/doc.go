// Package code encodes each outcome of a score as one float64. A Label identifies an outcome that is not a number; a
// Dictionary assigns category numbers to texts and error classes.
package code
