package code

import "fmt"

const HashPrime = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio

// Hash is FNV-1a.
func Hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// MaxKeptText is the most bytes that are kept of a text.
const MaxKeptText = 256

// Brief returns a text that identifies the given one within a bound of memory: the text itself, or the beginning and a hash of a long one.
func Brief(s string) string {
	if len(s) <= MaxKeptText {
		return s
	}
	return fmt.Sprintf("%s%016x", s[:MaxKeptText-16], Hash(s))
}
