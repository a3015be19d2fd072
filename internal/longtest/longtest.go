// Package longtest separates the tests that users run at every change (make test) from the simulations, generated
// queries and clients that take longer. make test-long sets DPWATCH_TEST_LONG=1 and runs the tests that use Skip,
// Scheduled, Enabled, Count, Number, Omits or Other; the Makefile finds them by these names. CI does that every night,
// and at a push make test-long-part, which sets DPWATCH_TEST_LONG=part and runs those that use Skip, Omits or Other, in
// packages of running programs.
package longtest

import (
	"os"
	"strconv"
	"testing"
)

const variable = "DPWATCH_TEST_LONG" // "1": all long tests; "part": the part for a push

// Enabled reports whether long tests run.
func Enabled() bool { return whole() || os.Getenv(variable) == "part" }

func whole() bool { return os.Getenv(variable) == "1" }

// Skip skips a test that is run by make test-long alone.
func Skip(t testing.TB) {
	t.Helper()
	skipUnless(t, Enabled())
}

// Scheduled is Skip for a test of about a minute or more, which the part for a push leaves out.
func Scheduled(t testing.TB) {
	t.Helper()
	skipUnless(t, whole())
}

func skipUnless(t testing.TB, runs bool) {
	t.Helper()
	if !runs {
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
func Number(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	text, ok := os.LookupEnv(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		t.Fatalf("%s=%q: want a whole number", name, text)
	}
	return n
}

// Omits reports whether case i of a test is left to make test-long, which is all but every n-th.
func Omits(i, n int) bool { return i%n != 0 && !Enabled() }

// Other reports whether case i of a test belongs to the other of two targets: make test runs every n-th, make test-long
// and make test-long-part the rest.
func Other(i, n int) bool { return (i%n == 0) == Enabled() }
