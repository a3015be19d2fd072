// Package exact compares results whole: every byte of every value, beside the numbers that other scores compute with. It
// asks many small questions of a result, each with at most 32 answers (a character at a place, a bin of a number, whether
// a value was seen before and in which world), learns from the past which of them tell the worlds apart, and gives a
// result one score: the sum of the log-odds of the answers to the best of these.
//
// Everything that a score depends on comes from earlier pairs, so that every bet on it is predictable. Of more questions
// than there is room for a slice is asked at a time. The slice follows from the number of pairs, and the best stay.
package exact
