package flood_test

import (
	"os"
	"testing"

	"github.com/dpwatch/dpwatch/bench/flood"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// TestFlood: a small flood through the program that make builds. The broken query is found, and the ledger has every
// statement: as an execution of its text or, where the auditor could not follow, as skipped.
func TestFlood(t *testing.T) {
	longtest.Skip(t)
	const program = "../../bin/dpwatch"
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: build it with make build", err)
	}
	r, err := flood.Measure(t.Context(), flood.Options{Program: program, Texts: 1000, Shapes: 20, PerText: 3, Sessions: 4, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(); err != nil {
		t.Errorf("%v; %+v", err, r)
	}
}
