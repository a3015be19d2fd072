// Package spelling finds the name that a mistyped one was probably meant to be. Names go in, a name comes out.
package spelling

import "slices"

// maxDistance is how many letters may be wrong.
const maxDistance = 2

// Nearest returns the name with the fewest letters to change, of equals the first in order; "" where each has more than two,
// or as many as the word is long.
func Nearest(word string, names []string) string {
	best, distance := "", min(maxDistance, len(word)-1)+1
	for _, name := range slices.Sorted(slices.Values(names)) {
		if n := editDistance(word, name); n < distance {
			best, distance = name, n
		}
	}
	return best
}

// editDistance is Levenshtein's, over bytes.
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
