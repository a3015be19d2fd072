// Package analysis decides what a query leaks: outcomes of trials on neighbouring datasets go in, evidence
// and a verdict come out.
//
// # What it does
//
// An [Audit] takes pairs of trials (one fresh execution on D0, one on D1) and keeps, at every moment, an anytime-valid
// lower bound on the empirical epsilon: an e-process for each epsilon of a grid, betting against the claim "for every
// event S, P(S) <= e^eps Q(S) + delta and the other way round". The bound may be read after every pair, and the audit
// may stop at any time; the bound exceeds the true epsilon, ever, with probability at most 1-Confidence. The point
// estimate of the seeds' bucket method is computed beside it ([BucketEstimate]); it is shown and never decides.
//
// # What it does not do
//
// No input or output, no clock, no logger, no randomness: the same pairs give the same report. It reads no SQL
// and no wire format. It never concludes "safe": no finite test shows differential privacy.
//
// # What is assumed
//
// The hypothesis under test is that each trial, given the trials before it, is (epsilon, delta)-differentially
// private, and that the two trials of a pair are independent given the past. Cached, reused or seeded noise breaks that
// assumption. A violation is therefore reported only if the trials have shown that they are independent, and certain
// dependence makes the verdict inconclusive. Answers that never vary, or repeat exactly, are a separate finding
// ([Deterministic]), without an epsilon. If the two worlds share their noise, a bet that needs no independence is used.
//
// # How a result becomes scores
//
// Columns that act as group keys are learned from the first results. Every (key, measure) is a slot with the
// outcomes: a number, absent, NULL, NaN, plus or minus infinity, a text category, an error class, a changed
// shape. Each slot is a score; so are the number of rows (with error classes and shapes), results seen
// before in one world only, the lowest bit set in the numbers, and, where there are two slots or more, two joint scores
// learned from earlier trials (naive Bayes with Laplace and with Gaussian noise).
//
// Some scores are bet on only if the past shows a difference in them, so that they cost the others nothing: the
// difference or sum of two columns or groups of which one explains the other (their noise is shared), a sum of many
// in which the noise cancels out, exact values and parts of texts and of what the server says, a quadratic
// discriminant that uses how all of them vary together in each world, the most extreme value of a result, a rare
// number that comes again in one world only or lies beyond the range of the other, another number of rows in few of
// the trials, what a value leaves over a modulus, and lowest bits too fine for floating-point noise around a world's
// centre. What each is computed from is chosen from the past, at most one of each at a time; of many columns and
// groups some look at a few in turn.
//
// The order in which a result gives its groups is another score of this kind. Columns of texts that stand for numbers
// are found in the first results; each of their numbers is a slot.
//
// Most scores bet on events; a single value, the texts of a single column, and the joint scores that estimate a
// log-likelihood ratio bet on every bin by its own ratio as well.
//
// # What is withheld
//
// Group keys, texts, thresholds and whatever else comes from rows is held in reports by the types of package withheld,
// which print the kind of a value and not the value. [Report.Reveal] and Figures are for readers who may see the raw
// data.
//
// # How it grows
//
// Learning happens at the ends of blocks that grow with the number of pairs (an eighth of it). In between only counts
// per bin are kept, and they are all that is needed for every epsilon of the grid. Memory is bounded whatever the
// number of trials: at most about 64 MiB of past values for learning, 32 MiB of whole results to learn the layout from
// (of a result beyond 1 MiB the first 512 rows are kept), 2 x 65,536 hashes of results, and a number of count tables
// that grows with the logarithm of the number of pairs. Of results with more than [Options].MaxSlots cells the rest
// counts in the number of rows only, of texts beyond the 256th of a column a hash is kept, and of a text longer than
// 256 bytes its beginning and a hash are kept.
package analysis
