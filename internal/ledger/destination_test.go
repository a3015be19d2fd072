package ledger_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDestinations: the ledger keeps where the answers of a query went, each once and at most eight, whether an
// execution or an audit is stored.
func TestDestinations(t *testing.T) {
	t.Parallel()
	l, o := open(t)
	e := acquire(t, o, "e")
	for i := range 10 {
		b := batch(int64(i + 1))
		b.Term = e.Term()
		b.Sightings[0].Query.Destinations = []string{"to the client", fmt.Sprintf("into table t%d", 9-i)}
		if err := e.Record(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"into table t3", "into table t4", "into table t5", "into table t6", "into table t7", "into table t8", "into table t9", "to the client"}
	stored, err := l.Stored(t.Context(), "", 10)
	if err != nil || len(stored) != 1 {
		t.Fatalf("%+v, %v", stored, err)
	}
	if diff := cmp.Diff(want, stored[0].Destinations); diff != "" {
		t.Error(diff)
	}
}
