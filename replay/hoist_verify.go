package replay

import (
	"context"
	"errors"
	"time"
)

// Bounds of the samples that Verify takes: rounds, and time as long as they are more than verifyLeast.
const (
	verifyLeast = 4 * hoistSample
	verifyMost  = hoistSample << 6
	verifyTime  = 2 * time.Second
)

// Verify brings the comparison of hoisted and unmodified trials up to date: it is for the moment in which an audit would
// report a violation. It makes the tables once more and compares their rows with those of every session before. Then it runs unmodified rounds, which are no evidence, and compares them with as many hoisted ones of this
// moment and with as many of those given before, or fewer. The samples have 400, 800, ... up to 6400 rounds: as many as
// are likely to take no longer than the audit's trials took, or 2 s, but 400 at least. Without hoisted rounds since
// the last call it does nothing. A difference is a *DisagreementError; other errors are as those of Rounds. No loop over
// Stream may be running.
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
	if differ != nil { // the batch that was read ahead has shown it
		return differ
	}
	if len(h.proof.spread) == 0 || h.counts.HoistedRounds == h.verified {
		return nil
	}
	defer h.note()
	if err := h.again(ctx); err != nil {
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
	now, err := h.fresh(ctx, n)
	if err != nil {
		return err
	}
	given := h.counts.HoistedRounds
	if what, differ := h.proof.verify(plain, now, given); differ {
		return h.disagree(what)
	}
	h.verified = given
	return nil
}

// again makes the tables once more, in a session of its own, and compares them with those that the evidence was gathered on.
func (h *hoistRun) again(ctx context.Context) error {
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
	case errors.As(err, &no): // no space, say: what cannot be compared is left to the trials
		return nil
	case err != nil:
		return err
	}
	release()
	return nil
}

// fresh gives hoisted rounds that are no evidence; none where tables cannot be made any more.
func (h *hoistRun) fresh(ctx context.Context, n int) ([]Round, error) {
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
		h.off(no.reason)
		return nil, nil
	}
	return rounds, err
}
