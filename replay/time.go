package replay

import (
	"context"
	"time"
)

// warmUpTrials is the number of trials of each world before those that Time measures: a session's first ones read its
// catalog.
const warmUpTrials = 3

// Time runs pairs of trials of D0 and another world, one after the other in one session, and gives the time of each to
// add, until add returns false. The order of a pair is random. Trials run the whole query, whatever Statement.Hoist
// says; an error or a time limit is an outcome that takes time, too. A sequence cannot be timed: see Statement.Then.
func (r *Run) Time(ctx context.Context, world int, add func(d0, other time.Duration) bool) (err error) {
	whole := *r
	whole.sessions, whole.hoist, whole.exec.stmt.together = make([]*session, 1), nil, false
	defer whole.Close()
	whole.accompany(ctx)
	defer func() { err = whole.examine(ctx, err) }()
	if err := whole.open(ctx); err != nil {
		return err
	}
	worlds := [2]int{0, world}
	for n := 0; ; n++ {
		var took [2]time.Duration
		first := whole.coin.IntN(2)
		for _, i := range [2]int{first, 1 - first} {
			var err error
			if took[i], err = whole.timeOne(ctx, worlds[i]); err != nil {
				return err
			}
		}
		if n >= warmUpTrials && !add(took[0], took[1]) {
			return nil
		}
	}
}

// timeOne runs one trial and returns its time.
func (r *Run) timeOne(ctx context.Context, world int) (time.Duration, error) {
	pace, query := r.exec.player.opt.Pace, r.exec.player.means.key(r.exec.stmt.Worlds[0])
	if pace != nil {
		if _, err := pace.Enter(ctx, 1, r.exec.player.means.least(query)); err != nil {
			return 0, err
		}
		defer pace.Leave()
	}
	round := r.newRounds(1)[0]
	began := time.Now()
	err := r.exec.pipeline(ctx, r.sessions[0], []trial{{world: world, into: &round[world]}})
	return time.Since(began), err
}
