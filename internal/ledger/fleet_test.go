package ledger_test

import (
	"testing"

	"github.com/dpwatch/dpwatch/internal/ledger"
)

// TestFleet: each beginning of evidence that ends in a violation counts once, however often it is saved, and stays
// counted.
func TestFleet(t *testing.T) {
	t.Parallel()
	_, o := open(t)
	e, other := acquire(t, o, "e"), acquire(t, o, "another")
	a := ledger.Audit{Query: query(), State: "running", DataEpoch: "1"}
	processes := map[*ledger.Engine]int{}
	begin := func(e *ledger.Engine, want ledger.Fleet) {
		t.Helper()
		begun, fleet, err := e.Audits.Begin(t.Context(), a)
		if processes[e] = begun; err != nil || fleet != want {
			t.Errorf("fleet %+v, %v; want %+v", fleet, err, want)
		}
	}
	save := func(e *ledger.Engine, verdict string) {
		t.Helper()
		decided := a
		decided.State, decided.Verdict, decided.Processes = "decided", verdict, processes[e]
		for range 2 {
			if err := e.Audits.Save(t.Context(), decided); err != nil {
				t.Fatal(err)
			}
		}
	}
	begin(e, ledger.Fleet{Begun: 1})
	save(e, "violation")
	begin(other, ledger.Fleet{Begun: 2, Reported: 1})
	save(other, "no_evidence")
	begin(e, ledger.Fleet{Begun: 3, Reported: 1})
	save(e, "violation")
	begin(other, ledger.Fleet{Begun: 4, Reported: 2})
	save(e, "inconclusive")
	begin(e, ledger.Fleet{Begun: 5, Reported: 2})
}
