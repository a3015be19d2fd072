package budget

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dpwatch/dpwatch/replay"
)

var _ replay.Pace = (*Budget)(nil)

// admission is what a Budget admitted at one time.
type admission struct {
	at      time.Time
	trials  int
	seconds float64
}

// spend runs sessions that ask a Budget for as much as they can get for a time, and returns what they ran.
func spend(t *testing.T, b *Budget, sessions int, each, long time.Duration) (all []admission) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var mu sync.Mutex
	var group sync.WaitGroup
	for range sessions {
		group.Go(func() {
			for {
				n, err := b.Enter(ctx, 25, each)
				if err != nil {
					return
				}
				took := time.Duration(n) * each
				mu.Lock()
				all = append(all, admission{time.Now(), n, took.Seconds()})
				mu.Unlock()
				time.Sleep(took)
				b.Leave()
			}
		})
	}
	group.Wait()
	return all
}

// most returns the greatest use in any hour, and the use in all.
func most(all []admission, use func(admission) float64) (hour, total float64) {
	from, sum := 0, 0.
	for _, a := range all {
		for ; a.at.Sub(all[from].at) >= time.Hour; from++ {
			sum -= use(all[from])
		}
		sum += use(a)
		hour, total = max(hour, sum), total+use(a)
	}
	return hour, total
}

// TestBudgetOfTrials: no hour, wherever it begins, has more trials than the budget, also over a restart, and nearly all
// of it is used.
func TestBudgetOfTrials(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := Limits{Trials: 3600}
		all := spend(t, New(limits, nil, time.Now), 4, 20*time.Millisecond, 90*time.Minute)
		time.Sleep(30 * time.Minute) // idle: the bucket fills up
		all = append(all, spend(t, New(limits, nil, time.Now), 4, 20*time.Millisecond, 90*time.Minute)...)
		hour, total := most(all, func(a admission) float64 { return float64(a.trials) })
		if hour > 3600 || total < .95*3*3480 {
			t.Errorf("%g trials in an hour, %g in three; want at most 3600 in an hour, and nearly as many as that in each", hour, total)
		}
	})
}

// TestBudgetOfSeconds: no hour has more seconds of trials than the budget, up to the time of the trials in progress.
func TestBudgetOfSeconds(t *testing.T) {
	t.Parallel()
	for _, each := range []time.Duration{100 * time.Millisecond, 7 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := New(Limits{Seconds: 120}, nil, time.Now)
			all := spend(t, b, 2, each, 3*time.Hour)
			hour, total := most(all, func(a admission) float64 { return a.seconds })
			if hour > 120+each.Seconds() || total < .85*3*116 {
				t.Errorf("trials of %s: %g s in an hour, %g s in three; want at most 120 s in an hour, and nearly as much in each", each, hour, total)
			}
			if got := b.used.Seconds; math.Abs(got-total) > 1e-6*total+each.Seconds()*2 {
				t.Errorf("trials of %s: %g s are counted, want %g", each, got, total)
			}
		})
	}
}

// TestBudgetTurns: a turn begins when the buckets are half full and ends when one is empty; what was not used is given
// back.
func TestBudgetTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := &refusing{}
		b := New(Limits{Trials: 3600}, inner, time.Now)
		if w := b.Wait(); w < time.Minute || w > 65*time.Second || !b.Spent() {
			t.Errorf("an empty budget: wait %s, spent %t", w, b.Spent())
		}
		b.Fill()
		for b.trials.level > 100 {
			n, err := b.Enter(t.Context(), 25, time.Microsecond)
			if err != nil || n != 10 {
				t.Fatalf("%d trials, %v; want the 10 that the next pace admits", n, err)
			}
			b.Leave()
		}
		if b.used.Trials != 20 || inner.left != 2 || b.Wait() != 0 || b.Spent() {
			t.Errorf("used %d, left %d, wait %s, spent %t; want 20 trials used", b.used.Trials, inner.left, b.Wait(), b.Spent())
		}
		if all := b.Take(); len(all) != 1 || all[0].Trials != 20 || len(b.Take()) != 0 {
			t.Errorf("%+v to be written, want the 20 trials once", all)
		}
	})
	if b := New(Limits{}, nil, time.Now); b.Wait() != 0 || b.Spent() || b.Take() != nil {
		t.Error("no budget sets no limit")
	}
}

// refusing is a Pace that admits 10 trials at a time.
type refusing struct{ left int }

func (p *refusing) Enter(_ context.Context, n int, _ time.Duration) (int, error) {
	return min(n, 10), nil
}
func (p *refusing) Leave() { p.left++ }
