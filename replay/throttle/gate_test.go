package throttle_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/throttle"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var _ replay.Pace = (*throttle.Gate)(nil)

// work runs sessions that ask for batches of 25 trials, of duration each, for the time long, and returns how many ran.
// It runs inside a synctest bubble with fake time.
func work(t *testing.T, g *throttle.Gate, sessions int, each, long time.Duration, slowdown func() float64) int {
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
				g.Leave(slowdown())
				mu.Lock()
				total += n
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return total
}

func steady() float64 { return 1 }

func TestRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := throttle.New(throttle.Options{Rate: 40})
		if n := work(t, g, 4, time.Millisecond, 10*time.Second, steady); n < 396 || n > 404 {
			t.Errorf("%d trials in 10 s at 40 a second", n)
		}
		g = throttle.New(throttle.Options{Rate: 0.5})
		if n := work(t, g, 4, time.Millisecond, 20*time.Second, steady); n < 9 || n > 11 {
			t.Errorf("%d trials in 20 s at one in two seconds", n)
		}
	})
}

func TestSessions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// 3 sessions of trials of 10 ms run 300 a second, however many sessions ask.
		g := throttle.New(throttle.Options{Sessions: 3})
		if n := work(t, g, 8, 10*time.Millisecond, 10*time.Second, steady); n < 2900 || n > 3060 {
			t.Errorf("%d trials in 10 s, want about 3000", n)
		}
	})
}

// When trials become slow, the sessions are halved down to a share of one, and are then added one by one.
func TestSlowdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := throttle.New(throttle.Options{Sessions: 8, Slowdown: 3})
		work(t, g, 8, 10*time.Millisecond, 5*time.Second, steady)
		if s := g.State(); s.Limit != 8 {
			t.Errorf("limit %g with quick trials, want 8", s.Limit)
		}
		slow := func() float64 { return 5 }
		work(t, g, 8, 10*time.Millisecond, 2200*time.Millisecond, slow)
		if s := g.State(); s.Limit != 2 {
			t.Errorf("limit %g after two slow seconds, want 2", s.Limit)
		}
		work(t, g, 8, 10*time.Millisecond, time.Minute, slow)
		if s := g.State(); s.Limit != 1.0/16 {
			t.Errorf("limit %g after a slow minute, want 1/16", s.Limit)
		}
		if n := work(t, g, 8, 10*time.Millisecond, time.Minute, slow); n < 300 || n > 450 {
			t.Errorf("%d trials in a minute of a sixteenth of a session, want about 375", n)
		}
		work(t, g, 8, 10*time.Millisecond, 12*time.Second, steady)
		if s := g.State(); s.Limit != 8 {
			t.Errorf("limit %g after twelve quick seconds, want 8", s.Limit)
		}
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := throttle.New(throttle.Options{})
		g.Pause(true)
		if n := work(t, g, 2, time.Millisecond, time.Minute, steady); n != 0 || g.State().Held != "paused" {
			t.Errorf("%d trials while paused, state %+v", n, g.State())
		}
		time.AfterFunc(30*time.Second, func() { g.Pause(false) })
		if n := work(t, g, 1, 10*time.Millisecond, time.Minute, steady); n < 2900 || n > 3050 {
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
		if n := work(t, g, 4, 10*time.Millisecond, 100*time.Second, steady); n < 950 || n > 1050 {
			t.Errorf("%d trials of 10 ms in 100 s at a tenth of the time, want about 1000", n)
		}
		if s := g.State(); s.Limit != 0.1 || s.Default != "the reason" {
			t.Errorf("state %+v", s)
		}
		g.SetShare(0, "another")
		if n := work(t, g, 4, 10*time.Millisecond, 10*time.Second, steady); n < 3900 || n > 4060 {
			t.Errorf("%d trials in 10 s of four sessions, want about 4000", n)
		}
		g = throttle.New(throttle.Options{Sessions: 4, Share: 0.1, Slowdown: 3})
		work(t, g, 4, 10*time.Millisecond, time.Minute, func() float64 { return 5 })
		if s := g.State(); s.Limit != 1.0/16 {
			t.Errorf("limit %g with slow trials, want 1/16", s.Limit)
		}
		work(t, g, 4, 10*time.Millisecond, time.Minute, steady)
		if s := g.State(); s.Limit != 0.1 {
			t.Errorf("limit %g with quick trials again, want 0.1", s.Limit)
		}
	})
}

// TestGuardShortStatements: sessions of short statements, which are idle at most moments, count as load.
func TestGuardShortStatements(t *testing.T) {
	dsn := pgtest.Start(t).DSN("postgres")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g := throttle.New(throttle.Options{Guard: throttle.Guard{DSN: dsn, MaxActive: 2}})
	var done sync.WaitGroup
	done.Go(func() { g.Run(ctx) })
	until(t, g, "")
	busy, stop := context.WithCancel(ctx)
	for range 3 {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		done.Go(func() {
			defer conn.Close(context.Background())
			for busy.Err() == nil {
				if _, err := conn.Exec(context.Background(), "SELECT 1"); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	until(t, g, "3 other sessions are active")
	if l := g.State().Load; l == nil || l.ActiveSessions < 3 || l.MaxActive != 2 {
		t.Errorf("load %+v", l)
	}
	stop()
	until(t, g, "")
	cancel()
	done.Wait()
}

// until waits for a state; the time limit only ends a test that hangs.
func until(t *testing.T, g *throttle.Gate, held string) {
	t.Helper()
	eventually.True(t, "held: "+held, func() bool {
		s := g.State()
		return s.Held == "" && held == "" || held != "" && strings.Contains(s.Held, held)
	}, func() any { return g.State() })
}

// Not parallel, like the tests below: the guard counts the sessions of all databases.
func TestGuard(t *testing.T) {
	dsn := pgtest.Start(t).DSN("postgres")
	ctx, cancel := context.WithCancel(t.Context())
	g := throttle.New(throttle.Options{Guard: throttle.Guard{DSN: dsn, MaxActive: 1, MaxLag: time.Minute, Every: 20 * time.Millisecond}})
	if held := g.State().Held; held == "" {
		t.Error("open before the guard looked")
	}
	var done sync.WaitGroup
	done.Go(func() { g.Run(ctx) })
	until(t, g, "")
	busy, stop := context.WithCancel(ctx)
	for range 2 {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		done.Go(func() {
			if _, err := conn.Exec(busy, "SELECT pg_sleep(600)"); !errors.Is(err, context.Canceled) {
				t.Errorf("pg_sleep: %v", err)
			}
			_ = conn.Close(context.Background())
		})
	}
	until(t, g, "2 other sessions are active")
	stop()
	until(t, g, "")
	cancel()
	done.Wait()
}

func TestGuardWithoutRights(t *testing.T) {
	cluster := pgtest.Start(t)
	conn := pgtest.Connect(t, cluster.DSN("postgres"))
	if _, err := conn.Exec(t.Context(), "CREATE ROLE blind LOGIN PASSWORD 'blind'"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	g := throttle.New(throttle.Options{Guard: throttle.Guard{DSN: cluster.UserDSN("postgres", "blind", "blind"), MaxActive: 5, Every: 20 * time.Millisecond}})
	var done sync.WaitGroup
	done.Go(func() { g.Run(ctx) })
	until(t, g, "")
	if w := g.State().Warning; !strings.Contains(w, "GRANT pg_read_all_stats") {
		t.Errorf("warning %q, want the grant that is missing", w)
	}
	if _, err := conn.Exec(t.Context(), "ALTER ROLE blind NOLOGIN"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'blind'"); err != nil {
		t.Fatal(err)
	}
	until(t, g, "cannot be read")
	cancel()
	done.Wait()
}
