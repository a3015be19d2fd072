// Package bins divides the codes of a score into at most 64 bins, learned from past codes, and counts, sorts and ranks
// codes for that.
package bins
