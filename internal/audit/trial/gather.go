package trial

import (
	"context"

	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/replay"
)

// Gather adds the rounds of a run to the evidence, in batches of at least the given number, until it is decided or
// shows a violation, or until more returns false. It calls more after each batch.
func Gather(ctx context.Context, run Trials, rounds int, e *evidence.Evidence, more func(replay.Batch) bool) error {
	n := 0
	for batch, err := range run.Stream(ctx, rounds) {
		if err != nil {
			return err
		}
		for _, round := range batch.Rounds {
			if e.Decided() {
				break
			}
			e.AddPart(round, batch.Spared)
		}
		n++
		run.Spare(e.Spared(n))
		if !more(batch) || e.Decided() {
			break
		}
	}
	return nil
}

// Confirm begins the confirmation of the violation that the evidence shows, without hoisting. before is the number of
// hoisted rounds of the query when the evidence began.
func Confirm(e *evidence.Evidence, hoist *replay.Hoisting, before int) error {
	hoisted := hoist != nil && hoist.Report().HoistedRounds > before
	if err := e.Confirm(hoisted); err != nil {
		return err
	}
	if hoisted {
		hoist.Stop("hoisted trials show a violation, which is confirmed on whole trials")
	}
	return nil
}

// Separation returns how the next trials are replayed: nil before a confirmation.
func Separation(e *evidence.Evidence, varyText bool) *replay.Separation {
	if !e.Confirming() {
		return nil
	}
	return &replay.Separation{VaryText: varyText, Skip: e.Settled()}
}
