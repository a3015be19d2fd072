package replay_test

import (
	"context"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// TestOddAnswers: whatever a server answers to dpwatch's own queries and to trials, the result is an error or an
// outcome. A panic would end the auditor, again and again.
func TestOddAnswers(t *testing.T) {
	t.Parallel()
	worlds := []string{"SELECT count(*) + random() FROM d0.people", "SELECT count(*) + random() FROM d1.people"}
	for _, answer := range pgtest.OddAnswers() {
		t.Run(answer.Name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			dsn := pgtest.ServeAnswer(t, answer)
			opt := options(dsn)
			opt.Public = []string{"public.stores"}
			p := player(t, opt)
			if _, err := p.Check(ctx, "d0", []string{"d1"}, []string{"people"}); err == nil {
				t.Error("Check: no error")
			}
			_, _ = p.Excess(ctx, []string{"d0", "d1"})
			_, _ = p.Tables(ctx, "d0")
			_, _ = p.Epoch(ctx, []string{"d0", "d1"})
			if p.NoTables(ctx, "d0") == nil {
				t.Error("NoTables: no error")
			}
			for _, s := range []replay.Statement{
				{Worlds: worlds},
				{Worlds: worlds, Simple: true},
				{Worlds: worlds, Hoist: replay.ForceHoisting()},
				{Worlds: worlds, Separate: &replay.Separation{}, Then: []replay.Step{{Worlds: worlds}, {Worlds: worlds, Simple: true}}},
			} {
				replayOnce(ctx, t, p, s)
			}
			opt.Engines, opt.Copies = []string{dsn, dsn}, []string{"d0", "d1"}
			p = player(t, opt)
			_, _ = p.CheckEngine(ctx, 0)
			replayOnce(ctx, t, p, replay.Statement{Worlds: worlds})
			replayOnce(ctx, t, p, replay.Statement{Worlds: worlds, Simple: true})
			if ctx.Err() != nil {
				t.Error("a call waits for more than the server sends")
			}
		})
	}
}

func replayOnce(ctx context.Context, t *testing.T, p *replay.Player, s replay.Statement) {
	t.Helper()
	run, err := p.Start(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	n := 20
	if s.Hoist != nil {
		n = 250 // the samples, and some rounds after them
	}
	_, _ = run.Rounds(ctx, n)
}
