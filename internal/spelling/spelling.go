// Package spelling finds the name that a mistyped word was probably meant to be.
package spelling

import "slices"

// maxDistance is the greatest accepted edit distance.
const maxDistance = 2

// Nearest returns the name with the smallest edit distance to word, the first in sorted order if several are equal. It
// returns "" if every distance is above two or at least the length of word.
func Nearest(word string, names []string) string {
	best, distance := "", min(maxDistance, len(word)-1)+1
	for _, name := range slices.Sorted(slices.Values(names)) {
		if n := editDistance(word, name); n < distance {
			best, distance = name, n
		}
	}
	return best
}

// editDistance returns the Levenshtein distance, over bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost++
			}
			corner = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
