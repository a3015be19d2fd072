package code

import "fmt"

// HashMultiplier is the constant of Fibonacci hashing: 2^64 divided by the golden ratio, rounded down.
const HashMultiplier = 0x9E3779B97F4A7C15

// Hash returns the 64-bit FNV-1a hash of s.
func Hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// MaxKeptText is the maximum length in bytes of a text that is kept.
const MaxKeptText = 256

// Brief returns s if it has at most MaxKeptText bytes, and otherwise its beginning followed by its hash.
func Brief(s string) string {
	if len(s) <= MaxKeptText {
		return s
	}
	return fmt.Sprintf("%s%016x", s[:MaxKeptText-16], Hash(s))
}
