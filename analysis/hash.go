package analysis

import "fmt"

const hashPrime = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio

// hashString is FNV-1a.
func hashString(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// maxKeptText is the most bytes that are kept of a text.
const maxKeptText = 256

// brief returns a text that is as good as the given one for telling texts apart: itself, or the beginning and a hash of a
// long one.
func brief(s string) string {
	if len(s) <= maxKeptText {
		return s
	}
	return fmt.Sprintf("%s%016x", s[:maxKeptText-16], hashString(s))
}
