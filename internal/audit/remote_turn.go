package audit

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/turn"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// give gives the turn of a job to the workers. It returns false if the turn has ended here. The error is that of the
// ledger, and the job waits again.
func (a *Auditor) give(ctx context.Context, engine *ledger.Engine, j *job) (given bool, err error) {
	if !a.inTurn(j, func() { given, err = a.giveTurn(ctx, engine, j) }) {
		a.unlist(j)
	}
	return given, err
}

// unlist forgets the turn of a job that was set aside. The next look withdraws it.
func (a *Auditor) unlist(j *job) {
	maps.DeleteFunc(a.remote.out, func(_ int64, o *job) bool { return o == j })
}

// giveTurn is give without protection against panics. The ledger gets the state that the turn begins with first, and
// this process keeps no evidence meanwhile.
func (a *Auditor) giveTurn(ctx context.Context, engine *ledger.Engine, j *job) (bool, error) {
	if j.Phase() == schedule.Watching { // short, and without evidence
		a.remote.watches.Go(func() { a.turn(ctx, j) })
		return false, nil
	}
	_, before, ready, err := a.prepare(ctx, j)
	switch {
	case err != nil:
		a.finish(ctx, j, before, turn.Outcome{Trouble: err})
		return false, nil
	case !ready:
		a.save(ctx, j)
		return false, nil
	}
	if !j.stored {
		a.locked(func() { a.put(j, a.progress(j)) })
		if err := a.keeper.Write(ctx, j.Key); err != nil {
			a.giveBack(j)
			return false, err
		}
		j.stored = true
	}
	id, err := engine.Give(ctx, ledger.TurnArgs{Key: j.Key, Turns: j.Turns(), Used: j.Used()})
	if err != nil && id == 0 {
		a.giveBack(j)
		return false, err
	}
	a.sent(j, givenTurn{id: id}) // with an error it may be given: the next look at the ledger shows it
	return true, err
}

// giveBack ends the turn of a job that could not be handed out.
func (a *Auditor) giveBack(j *job) {
	a.locked(func() {
		a.roster.Return(&j.Audit, 0, a.now)
		a.do(wake{})
	})
}

// sent notes that a job's turn was given to the workers.
func (a *Auditor) sent(j *job, t givenTurn) {
	a.runner.Drop(j.Key)
	a.remote.out[t.id] = j
	a.mu.Lock()
	defer a.mu.Unlock()
	if j.evidence != nil {
		t.before = j.evidence.Executions()
	}
	j.given, j.evidence = &t, nil
	a.roster.Resize(&j.Audit, j.size())
}

// adopt takes over the turns that workers were given by an earlier process. It is called before turns are handed out.
func (a *Auditor) adopt(ctx context.Context, engine *ledger.Engine) error {
	turns, err := engine.Turns(ctx)
	if err != nil {
		return err
	}
	for _, t := range turns {
		a.mu.Lock()
		j := a.jobs[t.Key]
		mine := j != nil && j.given == nil && !j.Busy() && (j.state() != view.Decided)
		if mine {
			a.roster.Take(&j.Audit)
		}
		a.mu.Unlock()
		if mine {
			a.sent(j, givenTurn{id: t.ID, worker: t.Worker})
		} // otherwise settle withdraws it
	}
	return nil
}

// land ends the turn of a job that a worker had: it takes the evidence from the ledger. The error is that of the
// ledger; then the turn is still out.
func (a *Auditor) land(ctx context.Context, engine *ledger.Engine, j *job, t ledger.GivenTurn) error {
	row, found, err := engine.Find(ctx, j.Key)
	if err != nil {
		return err
	}
	delete(a.remote.out, t.ID)
	if !a.inTurn(j, func() { a.landTurn(ctx, j, t, &row, found) }) {
		a.unlist(j)
	}
	return nil
}

// landTurn ends the turn of a job with the evidence that the ledger has.
func (a *Auditor) landTurn(ctx context.Context, j *job, t ledger.GivenTurn, row *ledger.Audit, found bool) {
	before, confirming := j.given.before, j.confirming
	if err := a.unload(j, row, found); err != nil {
		a.setAside(ctx, j.id, j.Key, err)
	}
	trials := 0
	if j.evidence != nil {
		trials = j.evidence.Executions() - before
	}
	a.opt.Budget.Charge(trials, sessionsPerTurn*t.Outcome.Took.Seconds())
	ended := !t.Lost && t.Outcome.Refused == ""
	a.mu.Lock()
	switch {
	case ended:
		a.remote.ended++
	case t.Worker != "":
		a.remote.lost++
	}
	there := j.evidence != nil
	if there && j.confirming && !confirming {
		a.confirmationBegan(j)
	}
	a.mu.Unlock()
	switch {
	case t.Lost && t.Worker == "": // no worker had taken it
	case t.Lost:
		a.opt.Logger.Warn("a worker ended or was cut off during a turn: the turn's trials are dropped, and the audit goes on", zap.String("audit", j.id), zap.String("worker", t.Worker))
	case t.Outcome.Refused != "":
		a.refused(j, t)
	}
	if !ended || !there {
		a.giveBack(j)
		return
	}
	a.take(ctx, j, t.Outcome)
}

// refused notes that a worker cannot take turns of an audit: its configuration, version or copies are others.
func (a *Auditor) refused(j *job, t ledger.GivenTurn) {
	a.remote.refused[t.Worker] = refusal{t.Outcome.Refused, a.opt.Now().Add(a.opt.RetryAfter)}
	a.opt.Logger.Warn("a worker refused a turn: it gets none for a while, and the audit goes on elsewhere", zap.String("audit", j.id),
		zap.String("worker", t.Worker), zap.String("reason", t.Outcome.Refused), zap.Duration("retry_in", a.opt.RetryAfter))
}

// unload gives a job the evidence that the ledger has. Without any, the audit begins again in its next turn. The error
// says why the stored evidence cannot be used.
func (a *Auditor) unload(j *job, row *ledger.Audit, found bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	j.given = nil
	if !found || row.Progress == nil {
		j.worlds, j.evidence, j.processes = nil, nil, max(j.processes, row.Processes)
		return nil
	}
	p, e, err := unpack(row, a.opt.D1)
	if err != nil {
		j.worlds, j.evidence = nil, nil
		return err
	}
	worlds, reported, reports := j.worlds, j.reported, j.reports
	j.goOn(&a.desk, row, p, e)
	for i := range min(len(worlds), len(j.worlds)) {
		j.worlds[i] = worlds[i] // with the texts
		j.reported[i] = j.reported[i] || reported[i] && j.Measuring
	}
	if len(reports) == len(j.reports) {
		j.reports = reports // until they are published
	}
	j.stored, j.Kept = true, true
	a.roster.Resize(&j.Audit, j.size())
	return nil
}

// take ends a turn whose evidence a worker has delivered, as if it had been run here.
func (a *Auditor) take(ctx context.Context, j *job, d ledger.Outcome) {
	o := turn.Outcome{Took: d.Took}
	var before *saved.Progress
	a.locked(func() {
		if j.Measuring {
			before = a.progress(j)
		}
		o.Evidence, j.evidence = j.evidence, nil
	})
	switch {
	case d.Early:
	case d.Broken != "":
		o.Broken = errors.New(d.Broken)
	case d.Stop != "":
		o.Stop = errors.New(d.Stop)
	case d.Void != "":
		o.Trouble = &voidTrials{errors.New(d.Void)}
	case d.Trouble != "":
		o.Trouble = errors.New(d.Trouble)
	case !j.Measuring:
		var now *environment.Environment // the engine may have changed during the turn
		if now, o.Trouble = a.env.Read(ctx); o.Trouble != nil {
			break
		}
		a.locked(func() {
			if !a.present(j, now) {
				o.Restart = &turn.Restart{Environment: now}
			}
		})
		o.Fresh = d.Fresh && o.Restart == nil
	default:
		o.Fresh = true
	}
	if o.Fresh {
		o.Reports, o.Confirming = turn.Reports(o.Evidence, j.source(), true), o.Evidence.Confirming()
	}
	a.finish(ctx, j, before, o)
}

func sortWorkers(all []knownWorker) {
	slices.SortFunc(all, func(x, y knownWorker) int { return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.ID, y.ID)) })
}

// sessionsPerTurn is the number of sessions of one turn: see replay.Options.
const sessionsPerTurn = 2
