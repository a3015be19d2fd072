package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/schedule"
)

// watchBench is a bench with a watch share in which decided audits are watched.
func watchBench(t *testing.T) *bench {
	return newBench(t, schedule.Limits{Audits: 100, PerShape: 100, Watch: schedule.Watch{Share: .1, Every: time.Minute}})
}

// decide gives a user so many decided audits that are watched.
func (b *bench) decide(user string, n int) (all []*schedule.Audit) {
	b.t.Helper()
	for i := range n {
		a := b.add(user, fmt.Sprint("decided ", i))
		if next, _ := b.Next(b.now); next != a {
			b.t.Fatalf("the next turn is %v's, want the new audit's", next)
		}
		a.Trials = 100
		b.Decide(a, false, 0)
		a.Watched = true
		all = append(all, a)
	}
	return all
}

// step runs one turn of the given length, or waits for the next one, and returns the audit.
func (b *bench) step(took time.Duration) *schedule.Audit {
	b.t.Helper()
	a, wait := b.Next(b.now)
	switch {
	case a == nil && wait <= 0:
		b.t.Fatal("nothing to do, and no time to wait")
	case a == nil:
		b.now = b.now.Add(wait)
	case a.Phase() == schedule.Watching:
		b.now = b.now.Add(took)
		b.Rest(a, took, b.now)
	default:
		b.now = b.now.Add(took)
		a.Trials += 50
		b.Return(a, took, b.now)
	}
	return a
}

// TestWatchShareWhileOthersWait: watched and repeated audits together have their share of the time and no more,
// whatever the lengths of the turns, and none of them is left out.
func TestWatchShareWhileOthersWait(t *testing.T) {
	t.Parallel()
	b := watchBench(t)
	watched := map[*schedule.Audit]time.Duration{}
	for _, a := range append(b.decide("x", 5), b.decide("y", 1)...) {
		watched[a] = 0
	}
	again := b.decide("x", 6)[5]
	b.Restart(again, b.now)
	again.Background = true
	for i := range 4 {
		b.add("x", fmt.Sprint("undecided ", i))
	}
	began, background := b.now, time.Duration(0)
	for i := range 20_000 {
		took := time.Duration(1+i%7) * time.Second / 2
		switch a := b.step(took); {
		case a == nil:
			t.Fatal("nothing to do while audits wait")
		case a == again:
			background += took
		case a.Watched:
			watched[a] += took
		}
	}
	total, short := b.now.Sub(began), time.Duration(0)
	for a, took := range watched {
		short += took
		if took == 0 {
			t.Errorf("%s had no turn", a.Key)
		}
	}
	if share := float64(short+background) / float64(total); share > .1001 || share < .099 {
		t.Errorf("a share of %.4f, want 0.1", share)
	}
	if background < short/2 || background > 2*short {
		t.Errorf("%s of repeated audits, %s of watched ones: want about the same", background, short)
	}
}

// TestWatchShareWhileIdle: without other audits, the turns take no more than the share of the time, and an audit has
// one at most once a minute.
func TestWatchShareWhileIdle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		audits int
		most   float64 // of the time
	}{{1, 1. / 60}, {3, 3. / 60}, {50, .1}} {
		b := watchBench(t)
		b.decide("x", c.audits)
		last, used, began := map[*schedule.Audit]time.Time{}, time.Duration(0), b.now
		for b.now.Sub(began) < 10*time.Hour {
			a := b.step(time.Second)
			if a == nil {
				continue
			}
			used += time.Second
			if at, ok := last[a]; ok && b.now.Sub(at) < time.Minute {
				t.Fatalf("%d audits: %s after %s", c.audits, a.Key, b.now.Sub(at))
			}
			last[a] = b.now
		}
		if share := float64(used) / float64(b.now.Sub(began)); share > c.most+.001 || share < .9*c.most {
			t.Errorf("%d audits: a share of %.4f, want %.4f", c.audits, share, c.most)
		}
	}
}

// TestNewShapeBeforeWatched: a new query does not wait for watched ones, and a flood of new shapes does not stop them.
func TestNewShapeBeforeWatched(t *testing.T) {
	t.Parallel()
	b := watchBench(t)
	b.decide("x", 3)
	b.now = b.now.Add(time.Hour)
	if a := b.step(time.Second); a != nil && !a.Watched {
		t.Fatalf("%s", a.Key)
	}
	b.now = b.now.Add(time.Hour)
	broken := b.add("y", "new")
	if a := b.step(time.Second); a != broken {
		t.Errorf("the next turn is %s's, want that of the new query", a.Key)
	}
	turns := 0
	for i := range 2000 {
		_, _ = b.Admit(b.audit("flood", fmt.Sprint("shape ", i), 1), b.now)
		if a := b.step(time.Second); a != nil && a.Watched {
			turns++
		}
	}
	if turns < 90 {
		t.Errorf("%d turns in 2000 s of a flood, want about 100: each audit once a minute", turns)
	}
}

// TestWithoutWatchShare: with a share of 0, decided audits have no turns.
func TestWithoutWatchShare(t *testing.T) {
	t.Parallel()
	b := newBench(t, schedule.Limits{Audits: 100, PerShape: 100})
	b.decide("x", 3)
	if a, _ := b.Next(b.now.Add(24 * time.Hour)); a != nil {
		t.Errorf("%s has a turn", a.Key)
	}
}

// TestWatchTurnsAtOnce: turns in the watch share count from their beginning, so that a share that was saved up begins
// few of them at once, and one of a known length costs what it took.
func TestWatchTurnsAtOnce(t *testing.T) {
	t.Parallel()
	for name, repeated := range map[string]bool{"watched": false, "repeated": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, schedule.Limits{Audits: 500, PerShape: 500, Watch: schedule.Watch{Share: .1, Every: time.Minute}})
			for _, a := range b.decide("x", 300) {
				if repeated {
					b.Restart(a, b.now)
					a.Background = true
				}
			}
			burst := func(after time.Duration) (all []*schedule.Audit) {
				for range 2 { // the time without waiting audits counts from the first look
					for a, _ := b.Next(b.now); a != nil; a, _ = b.Next(b.now) {
						all = append(all, a)
					}
					b.now, after = b.now.Add(after), 0
				}
				return all
			}
			if first := len(burst(time.Second)); first != 1 {
				t.Errorf("%d turns at once after one second, want 1: the share is a tenth of a second", first)
			}
			late := burst(time.Hour)
			if len(late) != 5 {
				t.Errorf("%d turns at once after an hour, want 5: what can be saved up", len(late))
			}
			for _, a := range late {
				if repeated {
					b.Return(a, 10*time.Millisecond, b.now)
				} else {
					b.Rest(a, 10*time.Millisecond, b.now)
				}
			}
			if more := len(burst(0)); more != 5 {
				t.Errorf("%d turns at once after short ones, want 5", more)
			}
		})
	}
}
