// Package diagnosis ranks the probable causes of a violation.
//
// In: the numbers and the counts of other outcomes that an audit kept of each column and group in both worlds, and the
// event with the strongest evidence. Out: causes, the most likely one first, each with its figures and the page that
// explains the fix. Every cause is a heuristic: it never changes a verdict. The package keeps nothing, draws nothing
// and does no I/O.
//
// Scales, shifts and other figures in the units of the data are withheld in texts; ratios are not.
package diagnosis
