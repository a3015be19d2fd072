package replay

import (
	"context"
	"errors"
	"time"
)

// Bounds of the samples of Verify: a number of rounds, and a time that holds above verifyLeast rounds.
const (
	verifyLeast = 4 * hoistSample
	verifyMost  = hoistSample << 6
	verifyTime  = 2 * time.Second
)

// Verify compares hoisted and unmodified trials before an audit reports what hoisting may have caused. It creates the
// tables once more and compares their rows with those of all earlier sessions. Then it runs unmodified rounds, which
// are no evidence, and compares them with as many new hoisted rounds and with as many (or fewer) of the hoisted rounds
// that are evidence. The samples have 400, 800, ... up to 6400 rounds: as many as are likely to take no longer than the
// audit's trials took, or 2 s if that is longer, but at least 400. Without hoisted rounds since the last call it does
// nothing. A difference is a *DisagreementError; other errors are as for Rounds. No loop over Stream may be active.
func (r *Run) Verify(ctx context.Context) error {
	if r.hoist == nil {
		return nil
	}
	return r.hoist.verify(ctx)
}

func (h *hoistRun) verify(ctx context.Context) error {
	h.mu.Lock()
	differ := h.differ
	h.mu.Unlock()
	if differ != nil { // found in the batch that was read ahead
		return differ
	}
	if len(h.comparison.spread) == 0 || h.counts.HoistedRounds == h.verified {
		return nil
	}
	defer h.note()
	if err := h.recreateTables(ctx); err != nil {
		return err
	}
	n := verifyLeast
	afford := max(verifyTime, h.slow.spent+h.quick.spent)
	for 2*n <= verifyMost && 2*time.Duration(n)*h.slow.round() <= afford {
		n *= 2
	}
	plain, err := h.unmodified(ctx, n)
	if err != nil {
		return err
	}
	now, err := h.freshRounds(ctx, n)
	if err != nil {
		return err
	}
	given := h.counts.HoistedRounds
	if what, differ := h.comparison.verify(plain, now, given); differ {
		return h.disagree(what)
	}
	h.verified = given
	return nil
}

// recreateTables creates the tables in a new session and compares their rows with those of the first session.
func (h *hoistRun) recreateTables(ctx context.Context) error {
	conn, err := h.origin.player.connectLimited(ctx, h.origin.stmt)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	release, err := h.parts.make(ctx, conn)
	var no *unhoistable
	switch {
	case errors.As(err, &no) && no.rows != "":
		return h.disagree(no.rows)
	case errors.As(err, &no): // no space, for example: the comparison of trials remains
		return nil
	case err != nil:
		return err
	}
	release()
	return nil
}

// freshRounds returns new hoisted rounds, which are no evidence; none if tables can no longer be created.
func (h *hoistRun) freshRounds(ctx context.Context, n int) ([]Round, error) {
	if h.phase != hoistOn {
		return nil, nil
	}
	if h.rest == nil {
		h.start()
	}
	rounds, err := h.rest.Rounds(ctx, n)
	var no *unhoistable
	switch {
	case errors.As(err, &no) && no.rows != "":
		return nil, h.disagree(no.rows)
	case errors.As(err, &no):
		h.stop(no.reason)
		return nil, nil
	}
	return rounds, err
}
