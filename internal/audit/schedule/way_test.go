package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/schedule"
)

// TestFirstTrialsOfAll: of one user's queries, each of its own shape and ten times as many as places, all have had
// their first trials after as many turns, however long their audits take, if the ledger keeps the evidence. Without a
// ledger an audit keeps its place.
func TestFirstTrialsOfAll(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{true, false} {
		b := newBench(t, schedule.Limits{Audits: 10, PerShape: 20})
		tried := map[*schedule.Audit]bool{}
		turn := func() {
			if a := b.turn(0); a != nil {
				a.Kept, tried[a] = kept, true
			}
		}
		admitted := 0
		for i := range 100 {
			if _, refusal := b.Admit(b.audit("app", fmt.Sprint("shape ", i), 1), b.now); refusal == "" {
				admitted++
			}
			turn()
			turn() // the other one in two turns is not a first one
		}
		if want := map[bool]int{true: 100, false: 10}[kept]; admitted != want || len(tried) != want {
			t.Errorf("evidence kept: %v: %d of 100 had a place, %d a turn; want %d", kept, admitted, len(tried), want)
		}
	}
}

// TestWhichGivesItsPlace: the audit whose query is run least often, and a suspicious one last. One that lost its place
// gets another's only if its query is run more than twice as often, and then waits like audits that have begun.
func TestWhichGivesItsPlace(t *testing.T) {
	t.Parallel()
	b := newBench(t, schedule.Limits{Audits: 3, PerShape: 20})
	rare, often, suspect := b.add("app", "rare"), b.add("app", "often"), b.add("app", "suspect")
	often.Seen = 8
	for range 3 {
		a, _ := b.Next(b.now)
		a.Trials, a.Kept = 50, true
		if a == suspect {
			a.Wealth = 1
		}
		b.Return(a, time.Second, b.now)
	}
	admit := func(a *schedule.Audit, want *schedule.Audit) {
		t.Helper()
		switch evicted, refusal := b.Admit(a, b.now); {
		case evicted != want:
			t.Errorf("%s evicted %+v, want %+v", a.Key, evicted, want)
		case (refusal == "") != (want != nil):
			t.Errorf("%s: %q", a.Key, refusal)
		}
	}
	again := func(seen uint64) *schedule.Audit {
		a := b.audit("app", "rare", seen)
		a.Tried = true
		return a
	}
	fresh := b.audit("app", "new", 1)
	admit(fresh, rare)
	admit(again(2), nil) // not more than twice as often as the suspicious one
	admit(b.audit("app", "newer", 1), often)
	admit(again(3), suspect)
	var order []string
	for range 2 {
		a, _ := b.Next(b.now)
		order = append(order, a.Shape)
	}
	if order[0] != "new" || order[1] != "newer" {
		t.Errorf("turns of %v, want the new ones first", order)
	}
	if b.Pressing(b.now) {
		t.Error("an audit that lost its place presses like a new one")
	}
}
