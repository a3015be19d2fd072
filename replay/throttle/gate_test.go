package throttle_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/throttle"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var _ replay.Pace = (*throttle.Gate)(nil)

// work runs sessions that ask for batches of 25 trials, of duration each, for the time long, and returns how many ran.
// It runs inside a synctest bubble with fake time.
func work(t *testing.T, g *throttle.Gate, sessions int, each, long time.Duration) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var mu sync.Mutex
	total := 0
	var group sync.WaitGroup
	for range sessions {
		group.Go(func() {
			for {
				n, err := g.Enter(ctx, 25, each)
				if err != nil {
					return
				}
				time.Sleep(time.Duration(n) * each)
				g.Leave()
				mu.Lock()
				total += n
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return total
}

func TestSessions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// 3 sessions of trials of 10 ms run 300 a second, however many sessions ask.
		g := throttle.New(throttle.Options{Sessions: 3})
		if n := work(t, g, 8, 10*time.Millisecond, 10*time.Second); n < 2900 || n > 3060 {
			t.Errorf("%d trials in 10 s, want about 3000", n)
		}
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := throttle.New(throttle.Options{})
		g.Pause(true)
		if n := work(t, g, 2, time.Millisecond, time.Minute); n != 0 || g.State().Held != "paused" {
			t.Errorf("%d trials while paused, state %+v", n, g.State())
		}
		time.AfterFunc(30*time.Second, func() { g.Pause(false) })
		if n := work(t, g, 1, 10*time.Millisecond, time.Minute); n < 2900 || n > 3050 {
			t.Errorf("%d trials in the half minute after the pause, want about 3000", n)
		}
	})
}

func TestWindows(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	night := []throttle.Window{{From: 22 * 60, To: 6 * 60, Zone: berlin}, {From: 12 * 60, To: 12*60 + 30, Zone: time.UTC}}
	for _, tc := range []struct {
		at   string
		open bool
	}{
		{"2026-07-01T21:59:59+02:00", false},
		{"2026-07-01T22:00:00+02:00", true},
		{"2026-07-01T03:59:59Z", true},  // 05:59:59 in Berlin, in summer
		{"2026-07-01T04:00:00Z", false}, // 06:00
		{"2026-12-01T04:59:59Z", true},  // 05:59:59 in winter
		{"2026-12-01T12:29:00Z", true},
		{"2026-12-01T12:30:00Z", false},
	} {
		now, err := time.Parse(time.RFC3339, tc.at)
		if err != nil {
			t.Fatal(err)
		}
		g := throttle.New(throttle.Options{Windows: night, Now: func() time.Time { return now }})
		if held := g.State().Held; (held == "") != tc.open {
			t.Errorf("%s: held %q, want open %t", tc.at, held, tc.open)
		}
	}
}

// Several sessions together get only their share of the time.
func TestShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := throttle.New(throttle.Options{Sessions: 4, Share: 0.1, Default: "the reason"})
		if n := work(t, g, 4, 10*time.Millisecond, 100*time.Second); n < 950 || n > 1050 {
			t.Errorf("%d trials of 10 ms in 100 s at a tenth of the time, want about 1000", n)
		}
		if s := g.State(); s.Limit != 0.1 || s.Default != "the reason" {
			t.Errorf("state %+v", s)
		}
		g.SetShare(0, "another")
		if n := work(t, g, 4, 10*time.Millisecond, 10*time.Second); n < 3900 || n > 4060 {
			t.Errorf("%d trials in 10 s of four sessions, want about 4000", n)
		}
	})
}
