//go:build linux

package chaos_test

import (
	"strings"
	"testing"
	"time"
)

const (
	remoteWorkers = 2
	// A turn in a worker, with one slot, ends after the batch in which it reaches 200 rounds and two seconds.
	longestRemoteTurn = 400 + 2*largestBatch
)

// remotes are the processes dpwatch worker, each with one slot, and what the ledger may lack because of them since the
// last checkpoint.
type remotes struct {
	config  string
	running []*sidecar
	lost    int // turns
	early   int // turns that ended early: each without the batch that was running
}

// startWorkers starts the workers that are missing.
func (r *remotes) startWorkers(t *testing.T) {
	t.Helper()
	for len(r.running) < remoteWorkers {
		r.running = append(r.running, start(t, binary(t), "worker", "--config", r.config, "--slots", "1"))
	}
}

// end ends the nth worker, at once or as an operator does: then it delivers its turn, which ends early.
func (r *remotes) end(t *testing.T, n int, atOnce bool) {
	t.Helper()
	w := r.running[n]
	if atOnce {
		w.Kill()
		w.provenKill(t, "a worker")
		r.lost++
	} else {
		w.Stop()
		r.early++
	}
	// The auditor withdraws the turns of a worker that was silent for long.
	r.lost += strings.Count(w.Log.String(), "the trials of a turn are dropped")
	r.running = append(r.running[:n:n], r.running[n+1:]...)
}

// endWorker ends a worker, and starts another one.
func (r *rig) endWorker(t *testing.T, atOnce bool) {
	t.Helper()
	r.remotes.end(t, r.random.IntN(remoteWorkers), atOnce)
	r.pause(time.Second)
	r.startWorkers(t)
}

// endWorkers ends the workers when their auditor has ended, so that nothing changes during a checkpoint: each at once
// or as an operator does. One that cannot reach the ledger is not waited for.
func (r *rig) endWorkers(t *testing.T) {
	t.Helper()
	if r.random.IntN(2) == 0 {
		r.pause(2 * time.Second) // without an auditor, their turns go on
	}
	for len(r.remotes.running) > 0 {
		r.remotes.end(t, 0, r.down || r.random.IntN(2) == 0)
	}
}

// delivered returns the turns that workers have delivered to the present auditor.
func (r *rig) delivered(t *testing.T) int {
	t.Helper()
	_, turns := r.fleet(t)
	return turns.Delivered
}
