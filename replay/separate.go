package replay

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Separation configures how the trials of a Statement are isolated from each other.
type Separation struct {
	// VaryText puts a comment with a random number before each trial's statement, which defeats a cache of results.
	VaryText bool
	Skip     []bool // worlds that are skipped, by index: their outcomes are zero; nil = none
}

// The mean gap between separate trials is 1/gapPart of the time that the previous trial took with its session, at most
// of longestGap.
const (
	gapPart    = 4
	longestGap = 20 * time.Millisecond
)

// separate is one trial in a session of its own.
type separate struct {
	trial
	gap     float64 // before it, in units of the mean gap
	comment uint64
}

// runSeparate runs n trials on each world, each in a session of its own that is closed afterwards. All trials of the
// call run in random order, with random gaps.
func (r *Run) runSeparate(ctx context.Context, n int) ([]Round, error) {
	rounds := r.newRounds(n)
	trials := r.separated(rounds)
	var next atomic.Int64
	group, gctx := errgroup.WithContext(ctx)
	for range r.sessions {
		group.Go(func() error {
			return guarded(func() error {
				for took := time.Duration(0); !r.halt.Load(); {
					i := int(next.Add(1)) - 1
					if i >= len(trials) {
						return nil
					}
					var err error
					if took, err = r.playSeparate(gctx, &trials[i], took); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	return r.finish(ctx, group, rounds)
}

// separated returns the trials of rounds in random order. The trials of one world fill the rounds in the order in which
// they run, so that a statistic can find a dependence on the previous trial.
func (r *Run) separated(rounds []Round) []separate {
	worlds := len(r.exec.stmt.Worlds)
	order := make([]int, 0, len(rounds)*worlds)
	for range rounds {
		for w := range worlds {
			if !spares(r.exec.stmt.Separate.Skip, w) && !spares(r.sparing.now, w) {
				order = append(order, w)
			}
		}
	}
	r.coin.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	trials := make([]separate, len(order))
	filled := make([]int, worlds)
	for i, w := range order {
		trials[i] = separate{trial: trial{world: w, into: &rounds[filled[w]][w]}, gap: r.coin.ExpFloat64(), comment: r.coin.Uint64()}
		filled[w]++
	}
	return trials
}

// playSeparate waits for a gap and runs one trial. before is the time that the previous trial took in the same
// goroutine, including the time to open its session.
func (r *Run) playSeparate(ctx context.Context, t *separate, before time.Duration) (took time.Duration, err error) {
	gap := time.NewTimer(time.Duration(t.gap * float64(min(before/gapPart, longestGap))))
	defer gap.Stop()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-gap.C:
	}
	pace := r.exec.player.opt.Pace
	query := r.exec.player.means.key("separate\x00" + r.exec.stmt.Text(0)) // a session's first trial is slower than the others
	if pace != nil {
		if _, err := pace.Enter(ctx, 1, max(before, r.exec.player.means.least(query))); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	ran, err := r.exec.inOwnSession(ctx, t)
	if err == nil {
		r.exec.player.means.record(query, ran)
	}
	if pace != nil {
		pace.Leave()
	}
	return time.Since(began), err
}

// inOwnSession runs a trial in a new session and closes it.
func (x *executor) inOwnSession(ctx context.Context, t *separate) (ran time.Duration, err error) {
	one := *x
	one.planning, one.by = newPlanning(freshPlanning), new(bystander)
	defer func() {
		for _, l := range one.by.take() { // the statements of a separate trial have one world
			x.by.note(loss{world: t.world, announced: l.announced})
		}
	}()
	var s *session
	if engines := len(x.player.engines); engines > 0 {
		conn, err := x.openEngine(ctx, min(x.stmt.place(t.world), engines-1))
		if err != nil {
			return 0, err
		}
		s = &session{share: 1}
		s.engines, s.conn = append(s.engines, conn), conn
	} else if s, err = one.session(ctx); err != nil {
		return 0, err
	}
	defer s.close()
	began := time.Now()
	err = one.sequence(ctx, s, t)
	return time.Since(began), err
}

// separateText returns the text of a statement for one separate trial.
func (x *executor) separateText(text string, t *separate) string {
	if x.stmt.Separate.VaryText {
		return fmt.Sprintf("/* %016x */ %s", t.comment, text)
	}
	return text
}
