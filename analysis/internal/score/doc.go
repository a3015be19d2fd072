// Package score turns pairs of results into scores, learns from past pairs how to bin and bet on each, and divides the
// wealth among them.
//
// A score of a result is a number or a category: the value of one column of one group, the number of rows, a
// combination of all columns. Each kind of score has a file with its kind and its statistic, and a line in kinds. A
// statistic reads [Input] alone: the layout, the kept past of the scores, and the claim. Every bet must be computed
// from earlier pairs.
//
// A [Set] holds the scores of an audit. Package book keeps the bets on their tables, and package analysis computes
// bounds and verdicts.
package score
