// Package event holds the counts of a score's outcomes by bin, and chooses what to bet on from past counts: two
// disjoint events, laws on all bins, or events of pairs whose trials may share their noise.
package event
