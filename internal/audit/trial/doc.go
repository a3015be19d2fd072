// Package trial runs the trials of one query: batches of rounds into evidence, confirmation by separate trials, and the
// audit of one query without pauses (Once).
package trial
