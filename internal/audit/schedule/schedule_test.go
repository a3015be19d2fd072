package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/schedule"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// bench is a Roster with a clock of its own and workers that take turns: a first turn takes a second, any other two.
type bench struct {
	*schedule.Roster
	t   *testing.T
	now time.Time
	n   int
}

func newBench(t *testing.T, limits schedule.Limits) *bench {
	t.Helper()
	return &bench{Roster: schedule.New(limits), t: t, now: start}
}

// audit returns an audit of a user's query that was run seen times.
func (b *bench) audit(user, shape string, seen uint64) *schedule.Audit {
	b.n++
	a := schedule.NewAudit(fmt.Sprintf("%s/%s/%d", user, shape, b.n), shape, schedule.Owner{User: user})
	a.Seen, a.LastSeen, a.Threshold, a.Bytes = seen, b.now, 3, 1000
	return &a
}

// add admits an audit for which there must be a place.
func (b *bench) add(user, shape string) *schedule.Audit {
	b.t.Helper()
	a := b.audit(user, shape, 1)
	if _, refusal := b.Admit(a, b.now); refusal != "" {
		b.t.Fatalf("%s: %s", a.Key, refusal)
	}
	return a
}

// turn runs the turn of the next audit, after which it has the given wealth.
func (b *bench) turn(wealth float64) *schedule.Audit {
	b.t.Helper()
	a, _ := b.Next(b.now)
	if a == nil {
		return nil
	}
	took := 2 * time.Second
	if a.Turns() == 1 {
		took = time.Second
	}
	b.now = b.now.Add(took)
	a.Trials += 50
	a.Wealth = wealth
	b.Return(a, took, b.now)
	return a
}

func (b *bench) count(user string) int {
	n := 0
	b.All(func(a *schedule.Audit) {
		if a.Owner.User == user {
			n++
		}
	})
	return n
}

// TestNewShapeUnderAFlood: whatever constants, aliases and shapes a user floods the auditor with, a new query of
// another user has the next turn, and so does a new shape during the same user's flood of constants.
func TestNewShapeUnderAFlood(t *testing.T) {
	t.Parallel()
	b := newBench(t, schedule.Limits{Audits: 1000, PerShape: 20})
	turned := map[schedule.Refusal]int{}
	for i := range 10_000 { // a flood of one shape, then one of shapes
		for _, shape := range []string{"literals", fmt.Sprint("shape ", i)} {
			if _, refusal := b.Admit(b.audit("hostile", shape, 1), b.now); refusal != "" {
				turned[refusal]++
			}
		}
		if i%20 == 0 {
			b.turn(0)
		}
	}
	if b.Len() != 1000 || turned[schedule.ShapeSampled] == 0 || turned[schedule.TooManyAudits] == 0 {
		t.Fatalf("%d audits, turned away %v", b.Len(), turned)
	}
	for i := range 5 {
		victim := b.add("dashboard", fmt.Sprint("new ", i))
		if got := b.turn(0); got != victim {
			t.Fatalf("query %d: the next turn is %s's", i, got.Key)
		}
	}
	if n := b.count("dashboard"); n != 5 {
		t.Errorf("%d of the 5 queries are left", n)
	}
	if b.Len() != 1000 {
		t.Errorf("%d audits, want 1000", b.Len())
	}
}

// TestNewShapeOfTheFloodsOwner: if all clients share one user, a flood of constants does not delay other queries.
func TestNewShapeOfTheFloodsOwner(t *testing.T) {
	t.Parallel()
	b := newBench(t, schedule.Limits{Audits: 100, PerShape: 20})
	for i := range 300 {
		for _, shape := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			_, _ = b.Admit(b.audit("app", shape, 1), b.now)
		}
		if i%10 == 0 {
			b.turn(0)
		}
	}
	if b.Len() != 100 {
		t.Fatalf("%d audits, want 100", b.Len())
	}
	broken := b.add("app", "broken")
	if got := b.turn(0); got != broken {
		t.Errorf("the next turn is %s's", got.Key)
	}
}

// TestPromises: each claim has places of its own in a shape, a retired violation keeps one of its claim alone, and a
// flood of claims takes no place of another shape.
func TestPromises(t *testing.T) {
	t.Parallel()
	b := newBench(t, schedule.Limits{Audits: 60, PerShape: 2})
	admit := func(shape, promise string) (*schedule.Audit, schedule.Refusal) {
		a := b.audit("app", shape, 1)
		a.Promise = promise
		_, refusal := b.Admit(a, b.now)
		return a, refusal
	}
	others := []*schedule.Audit{b.add("app", "other 1"), b.add("app", "other 2")}
	for i := range 20 {
		for j := range 3 {
			if _, refusal := admit("a", fmt.Sprint("epsilon ", i)); (refusal != "") != (j == 2) {
				t.Fatalf("epsilon %d, query %d: %q", i, j, refusal)
			}
		}
	}
	if _, refusal := admit("a", "epsilon 20"); refusal != "" {
		t.Errorf("the 21st claim has no place: %s", refusal)
	}
	for i := range 200 {
		_, _ = admit("a", fmt.Sprint("flood ", i))
	}
	if _, refusal := admit("other 3", ""); refusal != "" {
		t.Errorf("after a flood of claims, another query has no place: %s", refusal)
	}
	for _, a := range others {
		if b.Find(a.Key) != a {
			t.Errorf("a flood of claims evicted %s", a.Key)
		}
	}
}

// TestShapeFloodOfOneUser: a query that is run again gets a place during a flood of shapes that are run once.
func TestShapeFloodOfOneUser(t *testing.T) {
	t.Parallel()
	b := newBench(t, schedule.Limits{Audits: 10, PerShape: 3})
	for i := range 10 {
		b.add("app", fmt.Sprint("shape ", i))
	}
	if _, refusal := b.Admit(b.audit("app", "late", 1), b.now); refusal != schedule.TooManyAudits {
		t.Errorf("asked for once: %q, want %q", refusal, schedule.TooManyAudits)
	}
	late := b.audit("app", "late", 2)
	if evicted, refusal := b.Admit(late, b.now); refusal != "" || evicted == nil {
		t.Fatalf("asked for twice: %q", refusal)
	}
	if got := b.turn(0); got != late {
		t.Errorf("the next turn is %s's, want that of the query that was asked for most", got.Key)
	}
}

// TestShares: when all places are taken, users with fewer audits displace those of users with more until all have the
// same number; then no user displaces another's.
func TestShares(t *testing.T) {
	t.Parallel()
	b := newBench(t, schedule.Limits{Audits: 30, PerShape: 5})
	for i := range 100 {
		_, _ = b.Admit(b.audit("x", fmt.Sprint("x", i), 1), b.now)
	}
	for i := range 100 {
		_, _ = b.Admit(b.audit("y", fmt.Sprint("y", i), 1), b.now)
		_, _ = b.Admit(b.audit("z", fmt.Sprint("z", i), 1), b.now)
	}
	for i := range 100 {
		_, _ = b.Admit(b.audit("x", fmt.Sprint("more", i), uint64(i)), b.now)
	}
	for _, user := range []string{"x", "y", "z"} {
		if n := b.count(user); n < 9 || n > 11 {
			t.Errorf("%s has %d of 30 places", user, n)
		}
	}
}

// TestWhatIsEvicted: decided audits first, then by wealth; never a running one, never a violation.
func TestWhatIsEvicted(t *testing.T) {
	t.Parallel()
	b := newBench(t, schedule.Limits{Audits: 6, PerShape: 2})
	var all []*schedule.Audit
	for i := range 6 {
		all = append(all, b.add("app", fmt.Sprint("shape ", i)))
	}
	for range 6 {
		a, _ := b.Next(b.now)
		a.Trials = 50
		switch a {
		case all[0]:
			b.Decide(a, true, time.Second)
		case all[1]:
			b.Decide(a, false, time.Second)
		case all[2]: // running
		default:
			a.Wealth = map[*schedule.Audit]float64{all[3]: 1, all[4]: -1, all[5]: 2}[a]
			b.Return(a, time.Second, b.now)
		}
	}
	evicted, refusal := b.Admit(b.audit("app", "new", 1), b.now)
	if evicted != all[1] || refusal != "" {
		t.Errorf("evicted %v, want the decided one", evicted)
	}
	// Of a user with more audits than another: the audit that has not begun has more wealth than the one with -1.
	for i := range 4 {
		evicted, refusal := b.Admit(b.audit("other", fmt.Sprint("other ", i), 1), b.now)
		ok := false
		switch i {
		case 0:
			ok = evicted == all[4]
		case 1:
			ok = evicted != nil && evicted.Trials == 0
		case 2:
			ok = evicted == all[3]
		default: // three audits each
			ok = evicted == nil && refusal == schedule.TooManyAudits
		}
		if !ok {
			t.Errorf("audit %d of the other user: evicted %+v, %q", i, evicted, refusal)
		}
	}
}

// TestConstantsOfAShape: a further constant replaces a decided audit of the shape, or one whose query was run less
// often.
func TestConstantsOfAShape(t *testing.T) {
	t.Parallel()
	b := newBench(t, schedule.Limits{Audits: 100, PerShape: 2})
	first, second := b.add("app", "s"), b.add("app", "s")
	if _, refusal := b.Admit(b.audit("app", "s", 1), b.now); refusal != schedule.ShapeSampled {
		t.Errorf("a third constant: %q", refusal)
	}
	if evicted, _ := b.Admit(b.audit("app", "s", 5), b.now); evicted != second {
		t.Errorf("a constant that is asked for more: evicted %v, want the second", evicted)
	}
	b.add("other", "s") // another user's places
	a, _ := b.Next(b.now)
	for a != first {
		a.Trials = 50
		b.Return(a, time.Second, b.now)
		a, _ = b.Next(b.now)
	}
	b.Decide(first, false, time.Second)
	if evicted, _ := b.Admit(b.audit("app", "s", 1), b.now); evicted != first {
		t.Errorf("evicted %v, want the decided one", evicted)
	}
}

// TestNobodyStarves: with an unlimited number of first turns and audits whose evidence grows, every audit still gets
// turns repeatedly.
func TestNobodyStarves(t *testing.T) {
	t.Parallel()
	b := newBench(t, schedule.Limits{Audits: 50, PerShape: 5})
	var dull []*schedule.Audit
	for i := range 5 {
		dull = append(dull, b.add("app", fmt.Sprint("dull ", i)))
	}
	last := map[*schedule.Audit]int{}
	for turn := range 5000 {
		_, _ = b.Admit(b.audit("app", fmt.Sprint("shape ", turn), 2), b.now) // displaces other audits of the flood
		_, _ = b.Admit(b.audit("hostile", fmt.Sprint("shape ", turn), 2), b.now)
		a := b.turn(1)
		for _, d := range dull {
			if a == d {
				a.Wealth = -1
				last[d] = turn
			}
		}
	}
	for _, d := range dull {
		if b.Find(d.Key) == d && last[d] < 2500 {
			t.Errorf("%s had its last turn at %d of 5000", d.Key, last[d])
		}
	}
}

// TestGrowingEvidenceFirst: of one user's audits, the one that reaches its threshold soonest gets two turns in three.
func TestGrowingEvidenceFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t, schedule.Limits{Audits: 50, PerShape: 5})
	var growing *schedule.Audit
	for i := range 10 {
		a := b.add("app", fmt.Sprint("shape ", i))
		if i == 7 {
			growing = a
		}
	}
	wealth := func() {
		b.All(func(a *schedule.Audit) {
			if a.Wealth = -.5; a == growing {
				a.Wealth = 1
			}
		})
	}
	turns := 0
	for i := range 40 {
		a := b.turn(0)
		wealth()
		if i >= 10 && a == growing {
			turns++
		}
	}
	if turns < 19 || turns > 22 {
		t.Errorf("%d of 30 turns, want two in three", turns)
	}
}

// TestOwnersTakeTurns: users share the time in turns, however many audits each has.
func TestOwnersTakeTurns(t *testing.T) {
	t.Parallel()
	b := newBench(t, schedule.Limits{Audits: 50, PerShape: 5})
	for i := range 20 {
		b.add("x", fmt.Sprint("x", i))
	}
	b.add("y", "y")
	turns := map[string]int{}
	for i := range 121 {
		a := b.turn(0)
		if i >= 21 {
			turns[a.Owner.User]++
		}
	}
	if turns["y"] < 45 {
		t.Errorf("turns %v, want half each", turns)
	}
}

// TestViolationsAreBounded: violations have half of the places; a retired one keeps its place in its shape until its
// record is dropped.
func TestViolationsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, schedule.Limits{Audits: 10, PerShape: 8})
	var retired []*schedule.Audit
	for range 8 {
		b.add("app", "broken")
		a, _ := b.Next(b.now)
		b.Decide(a, true, time.Second)
		if r := b.Retire(); r != nil {
			retired = append(retired, r)
		}
	}
	if len(retired) != 3 || b.Len() != 5 {
		t.Fatalf("%d retired, %d left; want 3 and 5", len(retired), b.Len())
	}
	if _, refusal := b.Admit(b.audit("app", "broken", 9), b.now); refusal != schedule.ShapeSampled {
		t.Errorf("a ninth constant of a broken query: %q, want %q", refusal, schedule.ShapeSampled)
	}
	b.Reopen(retired[0])
	if _, refusal := b.Admit(b.audit("app", "broken", 9), b.now); refusal != "" {
		t.Errorf("after a record is forgotten: %q", refusal)
	}
}

// TestMemory: audits beyond the budget are evicted, the largest without growing evidence first, of the user with the
// most.
func TestMemory(t *testing.T) {
	t.Parallel()
	b := newBench(t, schedule.Limits{Audits: 100, PerShape: 5, Bytes: 100_000})
	small, large, grows := b.add("x", "small"), b.add("x", "large"), b.add("x", "grows")
	b.Resize(large, 60_000)
	b.Resize(grows, 70_000)
	grows.Wealth = 1
	other := b.add("y", "other")
	b.Resize(other, 20_000)
	if got := b.Shed(); got != large {
		t.Errorf("evicted %v, want the large one", got)
	}
	if got := b.Shed(); got != nil || b.Bytes() != 91_000 || b.Find(small.Key) == nil {
		t.Errorf("evicted %v with %d bytes", got, b.Bytes())
	}
}

// TestWaitingTime: an audit has no turn before NotBefore, and a first turn without a trial does not count.
func TestWaitingTime(t *testing.T) {
	t.Parallel()
	b := newBench(t, schedule.Limits{Audits: 10, PerShape: 5})
	a := b.add("x", "s")
	got, _ := b.Next(b.now)
	got.NotBefore = b.now.Add(time.Minute)
	b.Return(got, 0, b.now)
	if next, wait := b.Next(b.now); next != nil || wait != time.Minute || a.Turns() != 0 {
		t.Errorf("%v, wait %s, %d turns", next, wait, a.Turns())
	}
	if b.Pressing(b.now) {
		t.Error("it does not press before its time")
	}
	b.now = b.now.Add(time.Minute)
	if !b.Pressing(b.now) {
		t.Error("it presses when its time has come")
	}
	if next, _ := b.Next(b.now); next != a {
		t.Errorf("%v, want the audit", next)
	}
}

// TestMeasuring: a violation that is measured has turns after the audits that are not decided, except for every third;
// it stays a violation, is not retired in its turn, and has none after its measurement.
func TestMeasuring(t *testing.T) {
	t.Parallel()
	b := newBench(t, schedule.Limits{Audits: 2, PerShape: 5})
	broken, dull := b.add("app", "broken"), b.add("app", "dull")
	for a, _ := b.Next(b.now); a != nil; a, _ = b.Next(b.now) {
		a.Trials = 50
		if a == broken {
			b.Decide(a, true, time.Second)
			a.Measuring = true
			break
		}
		b.Return(a, time.Second, b.now)
	}
	turns := map[*schedule.Audit]int{}
	for range 30 {
		a, _ := b.Next(b.now)
		if a == broken && (!a.Busy() || a.Phase() != schedule.Violation || b.Retire() != nil) {
			t.Fatalf("phase %v, busy %t in its turn", a.Phase(), a.Busy())
		}
		a.Trials += 50
		turns[a]++
		b.now = b.now.Add(time.Second)
		b.Return(a, time.Second, b.now)
	}
	if turns[broken] < 9 || turns[broken] > 11 || turns[dull] != 30-turns[broken] {
		t.Errorf("%d of 30 turns, want a third", turns[broken])
	}
	broken.Measuring = false
	if a, _ := b.Next(b.now); a != dull {
		t.Errorf("%v has a turn, want the audit that is not decided", a)
	}
	if a, _ := b.Next(b.now); a != nil {
		t.Errorf("%v has a turn, want none", a)
	}
}
