// Package longtest separates the tests that users run at every change (make test) from the simulations, generated
// queries and clients that take longer: make test-long, which CI runs too, sets DPWATCH_TEST_LONG=1 and runs the tests
// that use Skip, Enabled, Count, Number, Omits or Other; the Makefile finds them by these names.
package longtest

import (
	"os"
	"strconv"
	"testing"
)

// Enabled reports whether long tests run.
func Enabled() bool { return os.Getenv("DPWATCH_TEST_LONG") == "1" }

// Skip skips a test that is run by make test-long alone.
func Skip(t testing.TB) {
	t.Helper()
	if !Enabled() {
		t.Skip("SKIPPED: make test-long runs it")
	}
}

// SkipFast skips a simulation under go test -short (make test-fast).
func SkipFast(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: a simulation; make test runs it")
	}
}

// Count returns usual, or long where long tests run.
func Count(usual, long uint64) uint64 {
	if Enabled() {
		return long
	}
	return usual
}

// Number returns the value of an environment variable that chooses how much a test does, or otherwise where it is not
// set.
func Number(t testing.TB, variable string, otherwise uint64) uint64 {
	t.Helper()
	text, ok := os.LookupEnv(variable)
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		t.Fatalf("%s=%q: want a whole number", variable, text)
	}
	return n
}

// Omits reports whether case i of a test is left to make test-long, which is all but every n-th.
func Omits(i, n int) bool { return i%n != 0 && !Enabled() }

// Other reports whether case i of a test belongs to the other of two targets: make test runs every n-th, make test-long
// the rest.
func Other(i, n int) bool { return (i%n == 0) == Enabled() }
