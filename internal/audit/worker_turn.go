package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
)

// workerTime is the minimum of a turn in a worker that is not a first one, unless a new query waits: handing it over
// takes some 50 ms.
const workerTime = 2 * time.Second

// errRefused is wrapped by the reasons why a worker cannot run a turn: another one may.
type errRefused struct{ reason string }

func (e *errRefused) Error() string { return e.reason }

func refuse(format string, args ...any) error { return &errRefused{fmt.Sprintf(format, args...)} }

// play runs the trials of a turn, and returns the state of its audit afterwards; nil if it is as before. The error is
// an errRefused or that of the ledger. A panic is the fault of the audit, not of this worker: the auditor sets the
// audit aside.
func (w *Worker) play(ctx context.Context, t *ledger.Turn) (state *ledger.Audit, o ledger.Outcome, err error) {
	defer func() {
		if r := recover(); r != nil {
			w.guard.Recovered("audit "+desk.ShortID(t.Key), r)
			state, o, err = nil, ledger.Outcome{Broken: brokenInWorker}, nil
		}
	}()
	row, p, a, err := w.load(ctx, t)
	if ctx.Err() != nil {
		return nil, ledger.Outcome{Early: true}, nil // the worker ends before the first trial: nothing is lost
	} else if err != nil {
		return nil, o, err
	}
	a, found, err := w.stages.Slots.Step(ctx, a, step.KindOf(p.Measuring, t.TurnArgs.Turns), step.Hooks{Least: workerTime, Pressing: hurriedBy(ctx, t, w.opt.Audit.Now)})
	did := desk.OutcomeOf(&a, found, err)
	var ends *replay.EndsError
	switch {
	case did.Stop != nil:
		return nil, ledger.Outcome{Stop: say(did.Stop)}, nil // the state before the turn is valid
	case did.Restart != nil:
		return nil, o, nil // the auditor compares the copies and the engine, too
	case ctx.Err() != nil:
		o.Early = true
	case errors.As(did.Trouble, new(*replay.ReadsError)):
		return nil, ledger.Outcome{Void: say(did.Trouble)}, nil
	case errors.As(did.Trouble, &ends):
		return nil, ledger.Outcome{Ends: &ends.Ends}, nil
	case did.Trouble != nil:
		o.Trouble, o.Lost = say(did.Trouble), replay.Lost(did.Trouble)
	}
	o.Fresh = did.Fresh
	state, err = delivered(row, p, &did)
	return state, o, err
}

const brokenInWorker = "internal error: see the log of the worker"

// load returns a turn with its texts, and the stored state of its audit, after checks that this worker would run the
// same audit on the same copies. The error is an errRefused or that of the ledger.
func (w *Worker) load(ctx context.Context, t *ledger.Turn) (row *ledger.Audit, p *saved.Progress, work step.Audit, err error) {
	stored, found, err := t.Audits.Find(ctx, t.Key)
	switch {
	case err != nil:
		return nil, nil, work, err
	case t.TurnArgs.Engine != w.opt.Worker.Engine:
		return nil, nil, work, refuse("the turn is one of engine %s, this worker's is %s", t.TurnArgs.Engine, w.opt.Worker.Engine)
	case !found || stored.Progress == nil:
		return nil, nil, work, refuse("the ledger has no evidence of the audit")
	}
	p, e, err := saved.Unpack(&stored, w.opt.Audit.D1)
	switch {
	case errors.Is(err, saved.ErrNeighbours):
		return nil, nil, work, refuse("shadow.d1 of this worker (%s) lists other neighbours than that of the auditor", strings.Join(w.opt.Audit.D1, ", "))
	case err != nil:
		return nil, nil, work, refuse("%s", say(err))
	case e == nil:
		return nil, nil, work, refuse("the ledger has no evidence of the audit")
	}
	now, err := w.stages.Environment.Read(ctx)
	switch {
	case err != nil:
		return nil, nil, work, refuse("shadow database: %s", say(err))
	case now.Copies != stored.DataEpoch:
		return nil, nil, work, refuse("the copies in the shadow database of this worker are not those of the audit: shadow.dsn differs from that of the auditor, or the copies were just replaced")
	}
	if work, err = w.parse(ctx, t, &stored); err != nil {
		return nil, nil, work, err
	}
	work.Beginning, work.Copies, work.Evidence, work.Doubted = stored.Processes, stored.DataEpoch, e, p.Confirming
	work.Seed = p.Seed + uint64(t.TurnArgs.Turns) //nolint:gosec // positive
	p.Turns, p.Used = t.TurnArgs.Turns, t.Used
	return &stored, p, work, nil
}

// parse returns the turn of a stored audit with the texts of this worker's rewriting, without evidence.
func (w *Worker) parse(ctx context.Context, t *ledger.Turn, row *ledger.Audit) (work step.Audit, err error) {
	if err := row.Query.Unreadable; err != nil {
		return work, refuse("the statement in the ledger cannot be read: %v", err)
	}
	q, err := capture.DecodeBinary(row.Query.Statement)
	if err != nil {
		return work, refuse("the statement was captured by another version of dpwatch")
	}
	plan, _, err := w.stages.Recognizer.AnalyzeStored(ctx, t.Engine, t.Key, q)
	switch unsupported := (*rewrite.UnsupportedError)(nil); {
	case errors.As(err, &unsupported):
		return work, refuse("this worker cannot rewrite the statement: %s", unsupported.Reason)
	case errors.Is(err, recognize.ErrPanic):
		return work, refuse("this worker cannot rewrite the statement: internal error")
	case recognize.ReasonOf(err) == recognize.SkippedUnevaluated:
		return work, refuse("%s", say(err))
	case err != nil:
		return work, err
	}
	if key, _ := identity(&w.opt.Audit, q, plan.Key); key != t.Key {
		return work, refuse("the statement is another audit here: claims, privacy, shadow.d0 and shadow.d1 must be those of the auditor, and the catalogs the same")
	}
	if err := w.stages.Catalogs.Recent(false, time.Time{}); err != nil {
		return work, refuse("%s", say(err))
	}
	worlds, err := w.stages.Texts.Worlds(plan, len(q.Then) > 0)
	if err != nil {
		return work, refuse("this worker cannot rewrite the statement: %s", say(err))
	}
	work = step.Audit{Key: t.Key, SQL: q.SQL, Statement: step.Statement(q, plan, worlds), Twin: worlds[0].Twin}
	if plan.Claim != nil {
		work.Source = plan.Claim.Source
	}
	return work, nil
}

// delivered returns the state of an audit after a turn, in the form of the ledger. It changes row and p, the state
// before.
func delivered(row *ledger.Audit, p *saved.Progress, o *desk.Outcome) (*ledger.Audit, error) {
	body, err := o.Evidence.MarshalBinary()
	if err != nil {
		return nil, err
	}
	p.Evidence, p.Trials = body, o.Evidence.Executions()
	p.Confirming = o.Evidence.Stage() != evidence.Searching
	for _, f := range o.Findings {
		if f.Kind == step.Suspected {
			p.Suspected = f.Wealth
		}
	}
	if o.Hoisting != nil {
		p.Hoisting = o.Hoisting
	}
	reports := o.Reports
	if reports == nil {
		reports = step.Reports(o.Evidence, "", false)
	}
	p.Profiles, row.Trials = saved.ProfilesOf(reports), 0
	for i := range reports {
		row.Trials = max(row.Trials, reports[i].Trials.D0)
	}
	worst := reports[evidence.Worst(reports)]
	if worst.Verdict == analysis.Violation {
		row.Verdict, row.Reason = string(worst.Verdict), worst.Reason
	}
	row.Lower = saved.LowerOf(&worst)
	row.State = string(stateOf(p))
	row.EvidenceTrials = p.Trials
	if row.Progress, err = p.Encode(); err == nil {
		row.Progress = ledger.Seal(row.Progress)
	}
	return row, err
}

// stateOf returns the state of an audit with a turn.
func stateOf(p *saved.Progress) view.State {
	switch {
	case p.Measuring:
		return view.Measuring
	case p.Confirming || p.Doubted:
		return view.Unconfirmed
	}
	return view.Running
}
