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
	whole.exec.stmt.Hoist = nil
	whole.sessions, whole.exec.planning = make([]*session, len(r.sessions)), newPlanning(r.exec.planning.get())
	return &hoistRun{Hoisting: r.exec.stmt.Hoist, origin: r, whole: &whole}
}

// rounds returns n rounds. While hoisting is on, each kind of rounds gets half of the time of all batches.
func (h *hoistRun) rounds(ctx context.Context, n int) (p played, err error) {
	defer h.note()
	for len(p.whole)+len(p.hoisted) < n {
		left := n - len(p.whole) - len(p.hoisted)
		if h.phase == hoistSampling && h.counts.UnmodifiedRounds >= hoistSample {
			if err := h.decide(ctx); err != nil {
				return played{}, err
			}
		}
		behind := h.slow.spent - h.quick.spent
		if on := h.phase == hoistOn && !h.origin.sparing.whole; on && (h.always || behind > 0) {
			if !h.always {
				left = min(left, 1+int(behind/h.quick.round()))
			}
			rounds, err := h.hoistedRounds(ctx, left)
			if err != nil {
				return played{}, err
			}
			p.hoisted = append(p.hoisted, rounds...)
			continue
		}
		switch {
		case h.phase == hoistSampling:
			left = min(left, hoistSample-h.counts.UnmodifiedRounds)
		case h.phase == hoistOn && !h.origin.sparing.whole:
			left = min(left, 1+int(batchTime/2/h.slow.round()))
		}
		rounds, err := h.wholeRounds(ctx, left)
		if err != nil {
			return played{}, err
		}
		h.counts.UnmodifiedRounds += left
		p.whole = append(p.whole, rounds...)
	}
	return p, nil
}

// wholeRounds runs rounds of the query as it is.
func (h *hoistRun) wholeRounds(ctx context.Context, n int) ([]Round, error) {
	if err := h.whole.open(ctx); err != nil { // not part of the measured time
		return nil, err
	}
	began := time.Now()
	rounds, err := h.whole.wholeRounds(ctx, n)
	if err == nil {
		h.slow.add(n, h.took(false, n, time.Since(began)))
	}
	return rounds, err
}

// hoistedRounds returns rounds of the random part; none, and hoisting is off, if tables can no longer be created.
func (h *hoistRun) hoistedRounds(ctx context.Context, n int) ([]Round, error) {
	if h.rest == nil {
		h.start()
	}
	err := h.rest.open(ctx) // not part of the measured time
	var rounds []Round
	began := time.Now()
	if err == nil {
		rounds, err = h.rest.wholeRounds(ctx, n)
	}
	var no *unhoistable
	if errors.As(err, &no) {
		h.stop(no.reason)
		if no.rows != "" {
			h.broken = no.reason
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	h.quick.add(n, h.took(true, n, time.Since(began)))
	h.counts.HoistedRounds += n
	return rounds, nil
}

// start creates the Run of the random part, which opens its sessions when they are needed.
func (h *hoistRun) start() {
	s := h.origin.exec.stmt
	s.Hoist, s.setup, s.Worlds, s.together = nil, h.parts.make, h.parts.rests, h.parts.together
	h.rest = &Run{
		exec: executor{
			player: h.origin.exec.player, stmt: s, values: h.parts.values, oids: h.parts.oids, format: h.parts.format, planning: newPlanning(unknownPlanning),
			by: h.origin.exec.by,
		},
		coin: h.origin.coin, sessions: make([]*session, len(h.origin.sessions)), halt: h.origin.halt, sparing: h.origin.sparing,
	}
}

// decide splits the query and turns hoisting on if it is faster. The decision does not depend on rounds that are
// evidence.
func (h *hoistRun) decide(ctx context.Context) error {
	spared := h.origin.sparing.now
	h.origin.sparing.now = nil // the times of whole rounds are compared
	defer func() { h.origin.sparing.now = spared }()
	h.slow, h.quick = meter{}, meter{}
	err := h.try(ctx)
	var no *unhoistable
	switch {
	case errors.As(err, &no):
		h.stop(no.reason)
		h.never = !no.later
		return nil
	case err != nil && ctx.Err() == nil && !errors.Is(err, errHalted) && !Transient(err):
		h.stop(err.Error())
		return nil
	case err != nil:
		return err
	}
	if gain := float64(h.slow.round()) / float64(h.quick.round()); gain < hoistGain && !h.always {
		h.stop(fmt.Sprintf("hoisted trials are not %d times as fast (%.2g times)", hoistGain, gain))
		h.never = true
		return nil
	}
	h.slow.spent, h.quick.spent = 0, 0
	h.phase, h.reason = hoistOn, ""
	return nil
}

// try splits the query, and measures the time of both kinds of rounds, without the creation of tables.
func (h *hoistRun) try(ctx context.Context) error {
	parts, err := h.origin.exec.player.splitQuery(ctx, h.origin, h.noise)
	if err != nil {
		return err
	}
	h.parts = parts
	h.start()
	for i := 0; i < timedBatches && (i < 2 || h.slow.spent < timedMost && !h.always); i++ {
		if _, err := h.wholeRounds(ctx, 1); err != nil {
			return err
		}
		if err := h.rest.open(ctx); err != nil {
			return err
		}
		began := time.Now()
		if _, err := h.rest.wholeRounds(ctx, timedHoisted); err != nil {
			return err
		}
		h.quick.add(timedHoisted, h.took(true, timedHoisted, time.Since(began)))
	}
	return nil
}

// stop ends hoisting for the rest of the audit. Hoisted rounds that are already evidence remain evidence.
func (h *hoistRun) stop(reason string) {
	h.phase, h.reason = hoistOff, reason
	if h.rest != nil {
		h.rest.end()
		h.rest = nil
	}
}

func (h *hoistRun) close() {
	h.whole.end()
	if h.rest != nil {
		h.rest.end()
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
