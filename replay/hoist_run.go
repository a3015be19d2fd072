package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// hoistRun is a Run that may hoist: one Run of the query as it is, and one of its random part.
type hoistRun struct {
	*Hoisting
	origin *Run // holds the client's parameters and settings; runs no trials
	whole  *Run
	rest   *Run // nil until hoisting is on
}

// hoisting returns the two Runs for a Run that may hoist.
func (r *Run) hoisting() *hoistRun {
	whole := *r
	whole.stmt.Hoist = nil
	whole.sessions, whole.planning = make([]*session, len(r.sessions)), newPlanning(r.planning.get())
	return &hoistRun{Hoisting: r.stmt.Hoist, origin: r, whole: &whole}
}

// rounds returns n rounds that count as evidence.
func (h *hoistRun) rounds(ctx context.Context, n int) ([]Round, error) {
	defer h.note()
	if h.phase == hoistSampling {
		h.origin.sparing.now = nil // the times of whole rounds are compared
	}
	var given []Round
	for h.phase == hoistSampling && len(given) < n {
		rounds, err := h.unmodified(ctx, min(n-len(given), h.ask-h.slow.rounds, hoistChunk))
		if err != nil {
			return nil, err
		}
		h.counts.UnmodifiedRounds += len(rounds)
		given = append(given, rounds...)
		if h.slow.rounds >= h.ask {
			if err := h.decide(ctx); err != nil {
				return nil, err
			}
		}
	}
	left := n - len(given)
	if left == 0 {
		return given, nil
	}
	unmodified := left
	if h.phase == hoistOn {
		unmodified = h.unmodifiedDue(left)
	}
	if unmodified > 0 {
		rounds, err := h.unmodified(ctx, unmodified)
		if err != nil {
			return nil, err
		}
		h.counts.UnmodifiedRounds += len(rounds)
		given = append(given, rounds...)
	}
	if unmodified < left {
		rounds, err := h.hoistedRounds(ctx, left-unmodified)
		if err != nil {
			return nil, err
		}
		given = append(given, rounds...)
	}
	return given, h.check()
}

// unmodifiedDue returns how many of the next n rounds must be unmodified.
func (h *hoistRun) unmodifiedDue(n int) int {
	h.credit = min(h.credit+plainShare*float64(n), float64(n))
	total := h.quick.spent + time.Duration(n)*h.quick.round()
	after := time.Duration(h.slow.rounds-h.first) * h.slow.round() // without the rounds of the first sample
	affordable := (plainTime/(1-plainTime)*float64(total) - float64(after)) / float64(h.slow.round())
	if h.always {
		affordable = 0
	}
	unmodified := max(0, int(min(h.credit, affordable)))
	h.credit -= float64(unmodified)
	return unmodified
}

// unmodified runs rounds of the query as it is.
func (h *hoistRun) unmodified(ctx context.Context, n int) ([]Round, error) {
	if err := h.whole.open(ctx); err != nil { // not part of the measured time
		return nil, err
	}
	began := h.now()
	rounds, err := h.whole.Rounds(ctx, n)
	if err != nil {
		return nil, err
	}
	h.slow.add(n, h.now().Sub(began))
	if h.phase != hoistOff {
		h.comparison.add(rounds, false, h.origin.sparing.now)
	}
	return rounds, nil
}

// hoistedRounds returns rounds of the random part. If tables can no longer be created it returns unmodified rounds.
func (h *hoistRun) hoistedRounds(ctx context.Context, n int) ([]Round, error) {
	if h.rest == nil {
		h.start()
	}
	began := h.now()
	rounds, err := h.rest.Rounds(ctx, n)
	var no *unhoistable
	if errors.As(err, &no) {
		if no.rows != "" && h.counts.HoistedRounds > 0 {
			return nil, h.disagree(no.rows)
		}
		h.stop(no.reason)
		rounds, err := h.unmodified(ctx, n)
		h.counts.UnmodifiedRounds += len(rounds)
		return rounds, err
	}
	if err != nil {
		return nil, err
	}
	h.quick.add(n, h.now().Sub(began))
	h.counts.HoistedRounds += n
	h.comparison.add(rounds, true, h.origin.sparing.now)
	h.comparison.addEvidence(rounds, h.origin.sparing.now)
	return rounds, nil
}

// start creates the Run of the random part, which opens its sessions when they are needed.
func (h *hoistRun) start() {
	s := h.origin.stmt
	s.Named = true // the rest of the query is always prepared
	s.Hoist, s.setup, s.Worlds, s.together = nil, h.parts.make, h.parts.rests, h.parts.together
	h.rest = &Run{
		player: h.origin.player, stmt: s, coin: h.origin.coin, sessions: make([]*session, len(h.origin.sessions)),
		values: h.parts.values, oids: h.parts.oids, format: h.parts.format, planning: newPlanning(unknownPlanning),
		halt: h.origin.halt, sparing: h.origin.sparing,
	}
}

// decide splits the query, runs hoisted rounds that do not count as evidence, and turns hoisting on if they agree with
// the unmodified ones and are faster. If they are not faster the decision is repeated later.
func (h *hoistRun) decide(ctx context.Context) error {
	h.quick = meter{}
	err := h.try(ctx)
	var no *unhoistable
	switch {
	case errors.As(err, &no) && no.later:
		h.postpone(no.reason)
		return nil
	case errors.As(err, &no):
		h.stop(no.reason)
		return nil
	case err != nil && ctx.Err() == nil && !errors.Is(err, errHalted) && !Transient(err):
		h.stop(err.Error())
		return nil
	case err != nil:
		return err
	}
	if h.comparison.due() {
		if what, differ := h.comparison.look(); differ {
			h.stop("hoisted trials differ from unmodified ones in " + what)
			return nil
		}
	}
	if gain := float64(h.slow.round()) / float64(h.quick.round()); gain < hoistGain && !h.always {
		h.postpone(fmt.Sprintf("hoisted trials are not faster (%.2g times)", gain))
		return nil
	}
	h.phase, h.reason, h.first = hoistOn, "", h.slow.rounds
	return nil
}

// postpone schedules the next decision after more unmodified rounds, or ends hoisting after hoistAsks decisions.
func (h *hoistRun) postpone(reason string) {
	if h.asks++; h.asks >= hoistAsks {
		h.stop(reason)
		return
	}
	h.reason = reason
	h.ask *= hoistAgain
	if h.rest != nil {
		h.rest.Close()
		h.rest = nil
	}
}

// try splits the query, unless that is done, and runs hoisted rounds. Their time excludes the creation of tables.
func (h *hoistRun) try(ctx context.Context) error {
	if h.parts == nil {
		parts, err := h.origin.player.splitQuery(ctx, h.origin, h.noise)
		if err != nil {
			return err
		}
		h.parts = parts
	}
	h.start()
	for range hoistSample / hoistChunk {
		if err := h.rest.open(ctx); err != nil {
			return err
		}
		began := h.now()
		rounds, err := h.rest.Rounds(ctx, hoistChunk)
		if err != nil {
			return err
		}
		h.quick.add(hoistChunk, h.now().Sub(began))
		h.comparison.add(rounds, true, nil)
	}
	return nil
}

// check compares the two samples when they have the size of the next look.
func (h *hoistRun) check() error {
	if h.phase != hoistOn || !h.comparison.due() {
		return nil
	}
	if what, differ := h.comparison.look(); differ {
		return h.disagree(what)
	}
	return nil
}

// disagree ends hoisting and returns a DisagreementError that names the difference.
func (h *hoistRun) disagree(what string) error {
	h.stop("hoisted trials differed from unmodified ones in " + what)
	h.comparison.forget()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.differ = &DisagreementError{What: what}
	return h.differ
}

// stop ends hoisting for the rest of the audit. Hoisted rounds that are already evidence remain evidence and can still
// be verified.
func (h *hoistRun) stop(reason string) {
	h.phase, h.reason = hoistOff, reason
	h.comparison.samples = nil
	if h.rest != nil {
		h.rest.Close()
		h.rest = nil
	}
}

func (h *hoistRun) close() {
	h.whole.Close()
	if h.rest != nil {
		h.rest.Close()
	}
}

// meterBatches is the number of latest batches from which the time of a round is computed.
const meterBatches = 15

// meter measures the time of rounds. The median is not affected when a busy machine delays some batches.
type meter struct {
	rounds int
	spent  time.Duration
	each   []time.Duration // time of a round, by batch
}

// add records a batch.
func (m *meter) add(rounds int, took time.Duration) {
	if rounds == 0 {
		return
	}
	m.rounds += rounds
	m.spent += took
	if len(m.each) == meterBatches {
		m.each = slices.Delete(m.each, 0, 1)
	}
	m.each = append(m.each, took/time.Duration(rounds))
}

// round returns the time of a round: the median over the batches, at least 1 ns.
func (m *meter) round() time.Duration {
	if len(m.each) == 0 {
		return 1
	}
	sorted := slices.Sorted(slices.Values(m.each))
	return max(sorted[len(sorted)/2], 1)
}
