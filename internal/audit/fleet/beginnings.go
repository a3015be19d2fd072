package fleet

import (
	"context"
	"errors"

	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/rewrite"
)

// beginnings prepare audits for their turns: they read the ledger, the environment and the catalogs, and rewrite
// queries. Their callers have the audits' turns.
type beginnings struct{ opt *Options }

// begin gives an audit whose turn begins the texts to replay, and evidence that belongs to the present copies, engine
// and texts. It returns false if the audit has no more turns, because the ledger has its verdict, production runs
// other functions or its statement ends its sessions, or with an error.
func (b *beginnings) begin(ctx context.Context, g desk.Given) (bool, error) {
	if decided, err := b.recall(ctx, g); decided || err != nil { // first: nothing is known of the audit before
		return false, err
	}
	same, err := b.judge(ctx, g.Key)
	if err != nil {
		return false, err
	}
	diverted := false
	if b.opt.Use(func(d *desk.Desk) { diverted = d.Engines.Diverted(g.Key) || d.Turns.SetAside(g.Key) }); diverted {
		return false, nil
	}
	troubled := b.opt.Catalogs.Troubled()
	if err := b.createTexts(g.Key); err != nil {
		return false, unjudged(troubled, err)
	}
	now, err := b.opt.Environment.Lately(ctx)
	if err != nil {
		return false, err
	}
	uncontrolled := false
	if b.opt.Use(func(d *desk.Desk) { uncontrolled = d.Beginnings.Uncontrolled(g.Key, now.Twin) }); uncontrolled {
		return false, nil
	}
	var beginning desk.Beginning
	b.opt.Use(func(d *desk.Desk) { beginning = d.Beginnings.Compare(g.Key, now, same) })
	switch beginning {
	case desk.GoesOn:
		return true, nil
	case desk.FromZero:
		err = b.beginAgain(ctx, g.Key)
	case desk.Replaced:
		err = b.beginEvidence(ctx, g.Key, now)
	}
	return err == nil, err
}

// beginAgain begins the evidence of an audit, whose texts exist, from zero. What was reported stays reported.
func (b *beginnings) beginAgain(ctx context.Context, key string) error {
	err := b.beginEvidence(ctx, key, nil)
	if errors.As(err, new(*desk.LedgerError)) { // the next turn begins it
		b.opt.Use(func(d *desk.Desk) { d.Beginnings.Unbegun(key) })
	}
	return err
}

// beginEvidence records in the ledger that an audit's evidence begins, which keeps the evidence before there, and
// begins it. now is the environment if the evidence before was of another one, else nil. The error is that of the
// ledger, or a desk.Unjudgeable.
func (b *beginnings) beginEvidence(ctx context.Context, key string, now *environment.Environment) error {
	var counted *desk.Begun
	if _, control := ledger.ControlOf(key); b.opt.Keeper.On && !control {
		var err error
		if counted, err = b.record(ctx, key); err != nil {
			return &desk.LedgerError{Err: err}
		}
	}
	var err error
	b.opt.Use(func(d *desk.Desk) { err = d.Beginnings.Begin(key, counted, now) })
	return err
}

// record records in the ledger that an audit's evidence begins.
func (b *beginnings) record(ctx context.Context, key string) (*desk.Begun, error) {
	if err := b.opt.Keeper.Write(ctx, key); err != nil { // what the ledger keeps of the evidence before
		return nil, err
	}
	var row ledger.Audit
	var err error
	if b.opt.Use(func(d *desk.Desk) { row, err = d.Beginnings.Row(key) }); err != nil {
		return nil, err
	}
	processes, fleet, err := b.opt.Keeper.Engine.Load().Audits.Begin(ctx, row)
	return &desk.Begun{Processes: processes, Fleet: fleet}, err
}

// recall looks for the evidence of an audit of an earlier process, or of one that had lost its place, and reports
// whether the audit is decided. With an error, of the ledger or the shadow database, the next turn does it.
func (b *beginnings) recall(ctx context.Context, g desk.Given) (decided bool, err error) {
	if !b.opt.Keeper.On || b.statement(g.Key).Recalled {
		return false, nil
	}
	if err = b.opt.Keeper.Write(ctx, g.Key); err != nil { // what it had when it lost its place, if the ledger was away
		return false, &desk.LedgerError{Err: err}
	}
	row, found, err := b.opt.Keeper.Engine.Load().Audits.Find(ctx, g.Key)
	if err != nil {
		return false, &desk.LedgerError{Err: err}
	}
	copies := ""
	if found && row.Progress != nil {
		if err = b.opt.Environment.ReadCopies(ctx); err != nil {
			return false, err
		}
		copies = b.opt.Environment.Now().Copies
	}
	var fault error
	b.opt.Use(func(d *desk.Desk) { decided, fault = d.Beginnings.Recall(g.Key, &row, found, copies) })
	if fault != nil {
		SetAside(ctx, b.opt.Keeper, b.opt.Logger, b.opt.Say, g.Key, fault)
	}
	return decided, nil
}

func (b *beginnings) statement(key string) (s desk.Statement) {
	b.opt.Use(func(d *desk.Desk) { s = d.Beginnings.Statement(key) })
	return s
}

// judge ensures, before the trials of a turn, that the present catalogs allow the query of an audit to be replayed, and
// that they are recent: they were read after the last change of the shadow database's functions and, if the query has
// names that no catalog has, after it was captured. same is false if its texts are others than before.
func (b *beginnings) judge(ctx context.Context, key string) (same bool, err error) {
	if !b.opt.Renews {
		return true, nil
	}
	if _, err := b.opt.Environment.Lately(ctx); err != nil {
		return false, err
	}
	s := b.statement(key)
	if err := b.opt.Catalogs.Recent(s.Plan.UnknownNames, s.Captured); err != nil {
		return false, err
	}
	if s.Edition == b.opt.Recognizer.Edition() {
		return true, nil
	}
	return b.judgeAgain(key, s)
}

// judgeAgain analyses the query of an audit with the present catalogs. The error is a desk.Unjudgeable if they do not
// allow a replay.
func (b *beginnings) judgeAgain(key string, before desk.Statement) (same bool, err error) {
	troubled := b.opt.Catalogs.Troubled()
	plan, edition, err := b.planAgain(key, before.Query)
	if err != nil {
		return false, unjudged(troubled, err)
	}
	b.opt.Use(func(d *desk.Desk) { d.Beginnings.AnalyzedAgain(key, plan, edition) })
	if !before.HasTexts {
		return true, nil
	}
	if err := b.createTexts(key); err != nil {
		return false, unjudged(troubled, err)
	}
	same = true
	for i, now := range b.statement(key).Texts {
		same = same && now == before.Texts[i]
	}
	return same, nil
}

// unjudged returns the error of a turn whose query cannot be rewritten: it waits if a catalog could not be read since
// before that, or the claim could not be evaluated, and ends the audit otherwise.
func unjudged(troubled func() bool, err error) error {
	if troubled() || recognize.ReasonOf(err) == recognize.SkippedUnevaluated {
		return err
	}
	return &desk.Unjudgeable{Err: err}
}

// createTexts creates the texts to replay, unless the audit has them. It parses the query if its plan was reduced.
func (b *beginnings) createTexts(key string) error {
	s := b.statement(key)
	if s.HasTexts {
		return nil
	}
	done := b.opt.Announce(s.Query.SQL) // the texts are parsed for verification
	defer done()
	if s.Reduced {
		plan, edition, err := b.planAgain(key, s.Query)
		if err != nil {
			return err
		}
		s.Plan = plan
		b.opt.Use(func(d *desk.Desk) { d.Beginnings.Analyzed(key, plan, edition) })
	}
	texts := b.opt.Texts
	if _, control := ledger.ControlOf(key); control {
		texts = texts.OfControl()
	}
	worlds, err := texts.Worlds(s.Plan, len(s.Query.Then) > 0)
	if err != nil {
		return err
	}
	b.opt.Use(func(d *desk.Desk) { d.Beginnings.Rewritten(key, worlds) })
	return nil
}

// planAgain analyses the query of an audit again, and returns the edition of the catalogs: functions and tables may
// have changed.
func (b *beginnings) planAgain(key string, q capture.Query) (*rewrite.Plan, uint64, error) {
	plan, edition, err := b.opt.Recognizer.Analyze(q)
	if recognize.ReasonOf(err) == recognize.SkippedUnevaluated {
		return nil, 0, err
	}
	if err != nil {
		text := "its statement cannot be rewritten any more: " + recognize.ReasonOf(err)
		if object := recognize.Unlisted(err); object != "" {
			text += ": " + object
		}
		return nil, 0, errors.New(text)
	}
	if of, _ := ledger.ControlOf(key); b.opt.Key(q, plan.Key) != of {
		return nil, 0, errors.New("its claim, its settings or the configuration of its tables changed: it is another audit when it is run again")
	}
	return plan, edition, nil
}

// prepareMeasurement creates the texts of a restored measurement, and ends one whose copies were replaced.
func (b *beginnings) prepareMeasurement(ctx context.Context, key string) error {
	now, err := b.opt.Environment.Read(ctx)
	if err != nil {
		return err
	}
	same := false
	if b.opt.Use(func(d *desk.Desk) { same = d.Beginnings.Present(key, now) }); !same {
		return &desk.EndOfMeasurement{Err: errors.New("the copies or the engine were replaced")}
	}
	switch same, err := b.judge(ctx, key); {
	case errors.As(err, new(*desk.Unjudgeable)):
		return &desk.EndOfMeasurement{Err: err}
	case err != nil:
		return err
	case !same:
		return &desk.EndOfMeasurement{Err: errors.New("the catalogs changed: the query is rewritten to other texts")}
	}
	if err := b.createTexts(key); err != nil {
		return &desk.EndOfMeasurement{Err: err}
	}
	return nil
}
