// Package results reads results: it learns from the first ones which columns are group keys and which are measures, and
// turns each result into codes. It also names groups and columns, with keys withheld.
package results
