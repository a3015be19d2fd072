package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/trial"
	"github.com/dpwatch/dpwatch/internal/audit/turn"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
)

// simulation is a Player whose answers are numbers with Laplace noise. On d1 those of a statement with the word
// "broken" are larger by ten scales.
type simulation struct{ coin *rand.Rand }

func (simulation) Check(context.Context, string, []string, []string) ([]string, error) {
	return nil, nil
}
func (simulation) Epoch(context.Context, []string) (string, error) { return "", nil }

func (s simulation) Start(q replay.Statement, _ uint64) (trial.Trials, error) {
	if s.coin.IntN(12) == 0 {
		return nil, errors.New("the shadow database is away")
	}
	if s.coin.IntN(40) == 0 {
		panic("planted")
	}
	return simulated{s, strings.Contains(q.Worlds[0], "broken"), len(q.Worlds)}, nil
}

type simulated struct {
	simulation
	broken bool
	worlds int
}

func (s simulated) Stream(ctx context.Context, n int) iter.Seq2[replay.Batch, error] {
	return func(yield func(replay.Batch, error) bool) {
		for range 4 {
			var b replay.Batch
			for range n {
				round := make(replay.Round, s.worlds)
				for w := range round {
					shift := 0.0
					if s.broken && w > 0 {
						shift = 10
					}
					round[w], _ = new(outcome.Parser).ParseLine(strconv.AppendFloat(nil, shift+s.coin.ExpFloat64()-s.coin.ExpFloat64(), 'g', -1, 64))
				}
				b.Rounds = append(b.Rounds, round)
			}
			if !yield(b, ctx.Err()) || ctx.Err() != nil {
				return
			}
		}
	}
}

func (simulated) Choose(replay.Choice)                                             {}
func (simulated) Reads(context.Context) (replay.Reads, error)                      { return replay.Reads{}, nil }
func (simulated) Rest() bool                                                       { return false }
func (simulated) Close()                                                           {}
func (simulated) Time(context.Context, int, func(d0, d1 time.Duration) bool) error { return nil }

// proof is what the evidence of an audit has shown.
type proof struct{ decided, found bool }

// model drives a desk as an Auditor does, without databases, and knows what must be true.
type model struct {
	*testing.T
	desk
	coin   *rand.Rand
	runner *turn.Runner
	turns  map[string]turn.Turn    // that are out, by key
	rows   map[string]ledger.Audit // what was written, by key
	firing map[string]int          // violations that alert, by id
	void   map[string]bool         // audits whose evidence may be dropped, by key
	proofs map[string]proof        // of the evidence that turns brought back, by key
	steps  []string

	verdicts map[analysis.Verdict]int // that were written
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{
		T: t, coin: rand.New(rand.NewPCG(seed, 1)), turns: map[string]turn.Turn{}, rows: map[string]ledger.Audit{}, firing: map[string]int{},
		void: map[string]bool{}, proofs: map[string]proof{},
	}
	m.environment = &environment.Environment{Copies: "1", Read: time.Now()}
	m.now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	m.begin()
	return m
}

// begin makes the desk of a new process.
func (m *model) begin() {
	opt := &Options{
		D0: "d0", D1: []string{"d1", "d2"}, Analysis: analysis.Options{Confidence: 0.95, MaxTrials: 200}, MaxAudits: 5, PerShape: 3, MeasureTrials: 50,
		RetryAfter: time.Second, WatchShare: 0.2, WatchEvery: time.Second, BatchTrials: 10, TurnTrials: 30, Logger: zap.NewNop(),
		Ledger: func(context.Context) (*ledger.Engine, error) { return nil, errors.ErrUnsupported }, Suspected: true,
		OnFinding: func(alert.Finding) {}, Seed: m.coin.Uint64, Now: func() time.Time { return m.now },
	}
	now, env := m.now, m.environment
	m.desk = newDesk(opt, "secret")
	m.at(now, now, env)
	m.runner = newStages(opt, &guard{log: opt.Logger, say: say}, newReplayMetrics(), nil).runner
	m.runner.Player = simulation{m.coin}
	m.runner.Environment = func(context.Context) (*environment.Environment, error) { return m.environment, nil }
	clear(m.turns)
}

func (m *model) fail(format string, args ...any) {
	m.Helper()
	m.Fatalf("%s\nafter\n  %s", fmt.Sprintf(format, args...), strings.Join(m.steps, "\n  "))
}

// settle performs the effects of a step, and compares them with what must be true.
func (m *model) settle(step string, args ...any) {
	m.Helper()
	m.steps = append(m.steps, fmt.Sprintf(step, args...))
	for _, e := range m.drain() {
		switch e := e.(type) {
		case write:
			m.written(e.Audit)
		case found:
			if e.Kind == finding.Unconfirmed {
				continue
			}
			if e.Status == finding.Resolved {
				m.firing[e.ID] = 0
			} else if m.firing[e.ID]++; m.firing[e.ID] > len(m.opt.D1) { // one for each neighbour
				m.fail("the violation of %s alerts once more", e.ID)
			}
		}
	}
	m.consistent()
}

// written compares what is written with the evidence that there was, and keeps it.
func (m *model) written(row ledger.Audit) {
	m.Helper()
	key := row.Query.Key
	m.verdicts[analysis.Verdict(row.Verdict)]++
	if row.Verdict == string(analysis.Violation) || row.Verdict == string(analysis.NoEvidence) {
		if p := m.proofs[key]; !p.decided || row.Verdict == string(analysis.Violation) && !p.found {
			m.fail("%s: %s without evidence", key, row.Verdict)
		}
	}
	if before := m.rows[key]; row.Progress == nil || row.EvidenceTrials == 0 && row.Processes == before.Processes && before.EvidenceTrials > 0 {
		row.Progress, row.EvidenceTrials, row.DataEpoch = before.Progress, before.EvidenceTrials, before.DataEpoch // as Keeper.Note does
	} else if row.EvidenceTrials < before.EvidenceTrials && row.Processes == before.Processes {
		m.fail("%s: evidence of %d trials replaces that of %d", key, row.EvidenceTrials, before.EvidenceTrials)
	}
	m.rows[key] = row
}

// consistent compares who has a turn with the turns that are out.
func (m *model) consistent() {
	m.Helper()
	busy := 0
	for _, j := range m.order {
		t, out := m.turns[j.Key]
		if j.Busy() != out {
			m.fail("%s: busy %t, and a turn is out: %t", j.Key, j.Busy(), out)
		}
		if out {
			busy++
		}
		if out && t.Evidence != nil && j.evidence != nil {
			m.fail("%s has evidence that a turn has", j.Key)
		}
		if j.state() == view.Decided && j.evidence != nil && !j.Measuring {
			m.fail("%s is decided and has evidence", j.Key)
		}
		if len(j.reports) == 0 {
			m.fail("%s has no report", j.Key)
		}
	}
	if busy != len(m.turns) {
		m.fail("%d turns are out, %d audits have one", len(m.turns), busy)
	}
	if len(m.order) != len(m.jobs) || m.roster.Len() != len(m.jobs) || len(m.jobs) > m.opt.MaxAudits {
		m.fail("%d in order, %d by key, %d in the roster", len(m.order), len(m.jobs), m.roster.Len())
	}
}

// arrive captures a query.
func (m *model) arriveOne() {
	n := m.coin.IntN(9)
	sql := fmt.Sprintf("honest %d", n)
	if n%3 == 0 {
		sql = fmt.Sprintf("broken %d", n)
	}
	plan := &rewrite.Plan{Key: fmt.Sprintf("%x%063x", n+1, 0), Shape: sql, Summary: sql, Claim: &rewrite.Claim{Epsilon: 1, Source: "comment"}}
	q := capture.Query{SQL: sql, User: "ann", Completed: m.now}
	m.desk.arrive(q, recognize.Recognized{Key: plan.Key, Shape: sql, Plan: plan}, plan.Key, "")
	m.settle("arrives: %s", sql)
}

// beginTurn gives the next turn, if one is due.
func (m *model) beginTurn() {
	seat, _ := m.roster.Next(m.now)
	if seat == nil {
		return
	}
	j := m.jobs[seat.Key]
	if _, out := m.turns[j.Key]; out {
		m.fail("%s has a second turn", j.Key)
	}
	kind := turn.KindOf(j.Measuring, j.Turns())
	if j.Phase() == schedule.Watching {
		kind = turn.Watch
	}
	if !j.hasTexts() {
		var worlds []turn.World
		for _, d1 := range m.opt.D1 {
			worlds = append(worlds, turn.World{Schema: d1, SQL: view.SQLPair{D0: j.query.SQL, D1: j.query.SQL}})
		}
		j.adopt(worlds)
	}
	if kind == turn.First || kind == turn.Trials {
		if m.recall(j); j.Phase() != schedule.Running {
			m.settle("%s is decided already", j.query.SQL)
			return
		}
		switch m.compare(j, m.environment, true) {
		case replaced:
			m.desk.replaced(j, m.environment)
			m.beginEvidence(j)
		case fromZero:
			m.beginEvidence(j)
		case goesOn:
		}
	}
	m.turns[j.Key] = m.turnOf(j, kind)
	m.settle("a turn of kind %d of %s begins", kind, j.query.SQL)
}

// recall gives an audit what was written of it before it had lost its place, as Auditor.recall does.
func (m *model) recall(j *job) {
	row, found := m.rows[j.Key]
	if j.recalled || !found {
		return
	}
	j.recalled, j.processes = true, row.Processes
	j.recallLife(&row)
	if row.Progress == nil || row.DataEpoch != m.environment.Copies {
		return
	}
	row.Progress = ledger.Seal(row.Progress)
	if err := m.resume(j, &row); err != nil {
		m.fail("%s cannot be recalled: %v", j.Key, err)
	}
}

// beginEvidence begins the evidence of an audit, as the ledger allows.
func (m *model) beginEvidence(j *job) {
	j.processes++
	delete(m.void, j.Key)
	if err := m.resetEvidence(j, 0.5); err != nil {
		m.fail("%v", err)
	}
}

// endTurnOf runs a turn that is out and ends it.
func (m *model) endTurnOf() {
	keys := make([]string, 0, len(m.turns))
	for key := range m.turns {
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return
	}
	slices.Sort(keys)
	key := keys[m.coin.IntN(len(keys))]
	t, j := m.turns[key], m.jobs[key]
	var before *saved.Progress
	if t.Kind == turn.Measure {
		body, _ := t.Evidence.MarshalBinary()
		before = &saved.Progress{Version: saved.ProgressVersion, Evidence: body, Trials: t.Evidence.Executions()}
	}
	o := m.runner.Run(m.Context(), t, turn.Hooks{
		Pressing: func() bool { return false }, Advanced: func(a turn.Advance) { m.advance(j, a) },
	})
	delete(m.turns, key)
	if t.Kind == turn.Watch {
		m.endWatch(j, &o)
		return
	}
	if o.Evidence != nil {
		p := m.proofs[key]
		m.proofs[key] = proof{p.decided || o.Evidence.Decided(), p.found || o.Evidence.Found()}
	}
	m.takeOutcome(j, o)
	if o.Restart != nil {
		m.voided(j, o.Restart)
		m.beginEvidence(j)
	}
	had := j.evidence
	m.endTurn(false, j, before, o)
	if kept := m.jobs[key]; kept != nil && had != nil && kept.evidence != had && kept.state() != view.Decided {
		m.fail("%s: the evidence is lost", key)
	}
	m.settle("the turn of %s ends: trouble %v, broken %v, restart %t, %s", j.query.SQL, o.Trouble, o.Broken, o.Restart != nil, j.state())
}

// endWatch ends a turn of a change detector.
func (m *model) endWatch(j *job, o *turn.Outcome) {
	why := noRenewal
	switch {
	case o.Restart != nil:
		why = m.renewalBy(j, o.Restart.Environment)
	case o.Watch != nil && o.Watch.Alarm:
		why = changeFound
	}
	m.roster.Rest(&j.Audit, o.Took, m.now)
	if why != noRenewal {
		m.renewAudit(j, why, j.plan, j.edition)
	} else if o.Broken != nil || o.Trouble != nil {
		m.watchFailed(j, turn.ErrInternal)
	}
	m.settle("the watch of %s ends, renewal %d", j.query.SQL, why)
}

// replaceCopies replaces the copies, so that a violation that is found again alerts again.
func (m *model) replaceCopies() {
	n, _ := strconv.Atoi(m.environment.Copies)
	m.at(m.now, m.now, &environment.Environment{Copies: strconv.Itoa(n + 1), Read: m.now})
	clear(m.firing)
	m.review(nil)
	m.settle("the copies are replaced")
}

// deploy deploys another version of the engine.
func (m *model) deploy() {
	e := *m.environment
	e.Label += "x"
	m.at(m.now, m.now, &e)
	clear(m.firing)
	m.review(nil)
	m.settle("another engine")
}

// lose ends a turn as if its worker was lost: the evidence is that from before the turn.
func (m *model) lose() {
	for key, t := range m.turns {
		if t.Kind == turn.Watch || m.coin.IntN(2) == 0 {
			continue
		}
		delete(m.turns, key)
		j := m.jobs[key]
		j.evidence = t.Evidence
		m.roster.Return(&j.Audit, 0, m.now)
		m.settle("the worker of %s is lost", j.query.SQL)
		return
	}
}

// restart ends the process, and restores from what was written what there are places for.
func (m *model) restartProcess() {
	before := m.jobs
	m.begin()
	keys := make([]string, 0, len(before))
	for key := range before {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		row, j := m.rows[key], before[key]
		again := &job{Audit: schedule.Audit{Key: key, Shape: j.Shape, Owner: j.Owner, LastSeen: j.LastSeen}, plan: j.plan, query: j.query, recalled: true, processes: j.processes}
		again.recallLife(&row)
		if evicted, refusal := m.roster.Room(&again.Audit); refusal != "" || evicted != nil {
			continue
		}
		m.enter(again)
		if row.Progress != nil {
			row.Progress = ledger.Seal(row.Progress)
			if err := m.resume(again, &row); err != nil {
				m.fail("%s cannot be restored: %v", key, err)
			}
			if again.evidence != nil && again.evidence.Executions() != row.EvidenceTrials {
				m.fail("%s: %d trials restored, %d written", key, again.evidence.Executions(), row.EvidenceTrials)
			}
		}
	}
	m.settle("the process is restarted")
}

// TestDeskModel: in any order of captures, turns that end well, with trouble or in a panic, lost workers, replaced
// copies, new engines and restarts, an audit has at most one turn and its evidence is in one place; no verdict is
// written without evidence that decides it, evidence is never lost, and a violation alerts once in one environment.
func TestDeskModel(t *testing.T) {
	t.Parallel()
	verdicts := map[analysis.Verdict]int{}
	for seed := range longtest.Count(10, 60) {
		m := newModel(t, seed)
		m.verdicts = verdicts
		for range 250 {
			m.at(m.now.Add(time.Duration(1+m.coin.IntN(900))*time.Millisecond), m.now, m.environment)
			switch m.coin.IntN(60) {
			case 0:
				m.replaceCopies()
			case 1:
				m.deploy()
			case 2:
				m.lose()
			case 3:
				m.restartProcess()
			case 4, 5, 6, 7, 8, 9:
				m.arriveOne()
			case 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29:
				m.beginTurn()
			default:
				m.endTurnOf()
			}
		}
	}
	if verdicts[analysis.Violation] == 0 || verdicts[analysis.NoEvidence] == 0 || verdicts[analysis.Inconclusive] == 0 { // otherwise nothing was tried
		t.Errorf("verdicts %v", verdicts)
	}
}
