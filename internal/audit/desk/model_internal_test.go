package desk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
)

// simulation is a Player whose answers are numbers with Laplace noise. On d1 and d2 those of a statement with the word
// "broken" are larger by ten scales, and on the twin of D0 those of one with the word "stored", too.
type simulation struct{ coin *rand.Rand }

func (simulation) Check(context.Context, string, []string, []string) ([]string, error) {
	return nil, nil
}
func (simulation) Epoch(context.Context, []string) (string, error)         { return "", nil }
func (simulation) TwinFault(context.Context, string) (string, bool, error) { return "", false, nil }

func (s simulation) Start(q replay.Statement, _ uint64) (step.Trials, error) {
	if s.coin.IntN(12) == 0 {
		return nil, errors.New("the shadow database is away")
	}
	if s.coin.IntN(40) == 0 {
		panic("planted")
	}
	shifts := []float64{0, 0, 0, 0} // by place
	if strings.Contains(q.Worlds[0], "broken") {
		shifts[1], shifts[2] = 10, 10
	}
	if strings.Contains(q.Worlds[0], "stored") {
		shifts[3] = 10
	}
	if q.Places == nil {
		return simulated{s, shifts[:len(q.Worlds)]}, nil
	}
	var placed []float64
	for _, place := range q.Places {
		placed = append(placed, shifts[place])
	}
	return simulated{s, placed}, nil
}

type simulated struct {
	simulation
	shifts []float64 // by world
}

func (s simulated) Stream(ctx context.Context, n int) iter.Seq2[replay.Batch, error] {
	return func(yield func(replay.Batch, error) bool) {
		for range 4 {
			var b replay.Batch
			for range n {
				round := make(replay.Round, len(s.shifts))
				for w, shift := range s.shifts {
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

// out is a turn that is out.
type out struct {
	step.Audit
	Kind step.Kind
}

// proof is what the evidence of an audit has shown.
type proof struct{ decided, found bool }

// model drives a Desk as an Auditor does, without databases, and knows what must be true. It changes the desk with
// events alone, and looks inside to compare.
type model struct {
	*testing.T
	*Desk
	environment *environment.Environment
	now         time.Time
	coin        *rand.Rand
	slots       *step.Slots
	turns       map[string]out          // that are out, by key
	rows        map[string]ledger.Audit // what was written, by key
	firing      map[string]int          // violations that alert, by id
	given       map[string]bool         // those of them that workers have
	proofs      map[string]proof        // of the evidence that turns brought back, by key
	steps       []string

	verdicts map[analysis.Verdict]int  // that were written
	draws    map[draw]analysis.Verdict // of control audits: the first verdict on each version of the copies
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{
		T: t, coin: rand.New(rand.NewPCG(seed, 1)), turns: map[string]out{}, rows: map[string]ledger.Audit{}, firing: map[string]int{},
		given: map[string]bool{}, proofs: map[string]proof{}, draws: map[draw]analysis.Verdict{},
	}
	m.environment = &environment.Environment{Copies: "1", Twin: true, Read: time.Now()}
	m.now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	m.begin()
	return m
}

// begin makes the desk of a new process.
func (m *model) begin() {
	opt := &Options{
		D0: "d0", D1: []string{"d1", "d2"}, Twin: "twin", ControlShare: 1, Analysis: analysis.Options{Confidence: 0.95, MaxTrials: 100}, MaxAudits: 5, PerShape: 3, MeasureTrials: 50,
		RetryAfter: time.Second, WatchShare: 0.4, WatchEvery: time.Second, Kept: true, Findings: true, Suspected: true,
		Say: error.Error, Seed: m.coin.Uint64, Contain: func(_ string, f func() error) error { return f() },
	}
	m.Desk = New(opt, "secret")
	m.at()
	m.slots = &step.Slots{
		Player: simulation{m.coin}, Environment: func(context.Context) (*environment.Environment, error) { return m.environment, nil },
		Now: func() time.Time { return m.now }, Hoisting: func(string) *replay.Hoisting { return replay.NewHoisting(nil) },
		Batch: 10, Rounds: 30, Counted: func(replay.Batch, []bool) {}, Recovered: func(string, any) {},
	}
	clear(m.turns)
	clear(m.given)
}

// at begins a use of the desk.
func (m *model) at() { m.At(m.now, m.now, m.environment) }

func (m *model) fail(format string, args ...any) {
	m.Helper()
	m.Fatalf("%s\nafter\n  %s", fmt.Sprintf(format, args...), strings.Join(m.steps, "\n  "))
}

// settle performs the effects of a step, and compares them with what must be true.
func (m *model) settle(step string, args ...any) {
	m.Helper()
	m.steps = append(m.steps, fmt.Sprintf(step, args...))
	for _, e := range m.Drain() {
		switch e := e.(type) {
		case Write:
			m.written(e.Audit)
		case Found:
			if _, control := ledger.ControlOf(e.ID); control {
				m.fail("a control audit has a finding: %+v", e)
			}
			if e.Kind == finding.Unconfirmed || e.Kind == finding.CopiesDiffer {
				continue
			}
			if e.Status == finding.Resolved {
				m.firing[e.ID] = 0
			} else if m.firing[e.ID]++; m.firing[e.ID] > len(m.opt.D1) { // one for each neighbour
				m.fail("the violation of %s alerts once more", e.ID)
			}
		}
	}
	m.at()
	m.consistent()
}

// written compares what is written with the evidence that there was, and keeps it.
func (m *model) written(row ledger.Audit) {
	m.Helper()
	key := row.Query.Key
	_, control := ledger.ControlOf(key)
	if d := (draw{key, row.DataEpoch}); control && row.Verdict != "" && m.draws[d] == "" {
		m.draws[d] = analysis.Verdict(row.Verdict)
	}
	if control && row.DataEpoch != m.rows[key].DataEpoch {
		delete(m.rows, key)
	}
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
	shown := map[*job]bool{}
	for _, j := range m.order {
		shown[j] = true
	}
	for _, j := range m.jobs {
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
		if shown[j] == j.control {
			m.fail("%s: control %t, shown %t", j.Key, j.control, shown[j])
		}
		if shown[j] {
			m.shows(j)
		}
	}
	m.counted()
	if busy != len(m.turns) {
		m.fail("%d turns are out, %d audits have one", len(m.turns), busy)
	}
	if m.roster.Len() != len(m.jobs) || len(m.order) > m.opt.MaxAudits {
		m.fail("%d in order, %d by key, %d in the roster", len(m.order), len(m.jobs), m.roster.Len())
	}
}

// counted compares the rate of false alarms with the verdicts that were written.
func (m *model) counted() {
	m.Helper()
	counts := map[analysis.Verdict]int{}
	for _, verdict := range m.draws {
		counts[verdict]++
	}
	f := m.Controls.FalseAlarms()
	if f.Alarms != counts[analysis.Violation] || f.Audits != f.Alarms+counts[analysis.NoEvidence] || f.Inconclusive != counts[analysis.Inconclusive] {
		m.fail("false alarms %+v, and the verdicts of control audits are %v", f, counts)
	}
}

// shows compares what is shown of an audit with what it is.
func (m *model) shows(j *job) {
	m.Helper()
	before := j.shown
	if before == nil {
		m.Overview.Refresh([]string{j.Key})
		return
	}
	now := m.Overview.newShown(j)
	was, err1 := json.Marshal(before.entry)
	is, err2 := json.Marshal(now.entry)
	if err1 != nil || err2 != nil || string(was) != string(is) {
		m.fail("%s is shown as\n%s\nand is\n%s\n%v %v", j.Key, was, is, err1, err2)
	}
	now.entry = before.entry
	if !reflect.DeepEqual(now, before) {
		m.fail("%s waits as\n%+v\nand is shown as\n%+v", j.Key, now, before)
	}
}

// arrive captures a query.
func (m *model) arriveOne() {
	n := m.coin.IntN(9)
	sql := fmt.Sprintf("honest %d", n)
	switch n % 3 {
	case 0:
		sql = fmt.Sprintf("broken %d", n)
	case 1: // a false alarm on identical data
		sql = fmt.Sprintf("stored %d", n)
	}
	if n == 6 { // a violation where there is no twin, else blocked
		sql = fmt.Sprintf("broken stored %d", n)
	}
	plan := &rewrite.Plan{Key: fmt.Sprintf("%x%063x", n+1, 0), Shape: sql, Summary: sql, Claim: &rewrite.Claim{Epsilon: 1, Source: "comment"}}
	q := capture.Query{SQL: sql, User: "ann", Completed: m.now}
	m.Admission.Arrive(q, recognize.Recognized{Key: plan.Key, Shape: sql, Plan: plan}, plan.Key, "")
	m.settle("arrives: %s", sql)
}

// beginTurn gives the next turn, if one is due.
func (m *model) beginTurn() {
	g, ok, _ := m.Turns.Next()
	if !ok {
		return
	}
	if _, out := m.turns[g.Key]; out {
		m.fail("%s has a second turn", g.Key)
	}
	st := m.Beginnings.Statement(g.Key)
	if !st.HasTexts {
		var worlds []step.World
		d1s, twin := m.opt.D1, []string{st.Query.SQL}
		if g.Control {
			d1s, twin = []string{m.opt.Twin}, nil
		}
		for _, d1 := range d1s {
			worlds = append(worlds, step.World{Schema: d1, Twin: twin, SQL: view.SQLPair{D0: st.Query.SQL, D1: st.Query.SQL}})
		}
		m.Beginnings.Rewritten(g.Key, worlds)
	}
	if g.Kind == step.First || g.Kind == step.Further {
		if m.recall(g.Key, st.Recalled) {
			m.settle("%s is decided already", st.Query.SQL)
			return
		}
		if m.Beginnings.Uncontrolled(g.Key, m.environment.Twin) {
			m.settle("%s has no twin any more", st.Query.SQL)
			return
		}
		switch m.Beginnings.Compare(g.Key, m.environment, true) {
		case Replaced:
			m.beginEvidence(g.Key, m.environment)
		case FromZero:
			m.beginEvidence(g.Key, nil)
		case GoesOn:
		}
	}
	switch {
	case g.Kind == step.Watching:
		a, _ := m.Beginnings.Watch(g.Key)
		m.turns[g.Key] = out{a, g.Kind}
	case m.coin.IntN(6) == 0 && !g.Control:
		m.give(g)
		return
	default:
		m.turns[g.Key] = out{m.Beginnings.Turn(g.Key), g.Kind}
	}
	m.settle("a turn of kind %d of %s begins", g.Kind, st.Query.SQL)
}

// recall gives an audit what was written of it before it had lost its place, and reports whether it is decided.
func (m *model) recall(key string, recalled bool) (decided bool) {
	row, found := m.rows[key]
	if recalled || !found {
		return false
	}
	if row.Progress != nil {
		row.Progress = ledger.Seal(row.Progress)
	}
	decided, err := m.Beginnings.Recall(key, &row, true, m.environment.Copies)
	if err != nil {
		m.fail("%s cannot be recalled: %v", key, err)
	}
	return decided
}

// beginEvidence begins the evidence of an audit, as the ledger allows.
func (m *model) beginEvidence(key string, now *environment.Environment) {
	begun := &Begun{Processes: m.jobs[key].processes + 1, Fleet: ledger.Fleet{Begun: 1}}
	if m.jobs[key].control {
		begun = nil
	}
	if err := m.Beginnings.Begin(key, begun, now); err != nil {
		m.fail("%v", err)
	}
}

// endTurnOf runs a turn that is out and ends it.
func (m *model) endTurnOf() {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(m.turns)), func(key string) bool { return m.given[key] })
	if len(keys) == 0 {
		return
	}
	key := keys[m.coin.IntN(len(keys))]
	t, j := m.turns[key], m.jobs[key]
	delete(m.turns, key)
	a, found, err, whole := m.step(key, t)
	took := time.Duration(m.coin.IntN(1000)) * time.Millisecond // otherwise the watch share has no time
	if !whole {
		m.Turns.BreakOff(key)
		m.settle("the turn of %s panics", j.query.SQL)
		return
	}
	if t.Kind == step.Watching {
		m.endWatch(key, &a, found, err, took)
		return
	}
	o := OutcomeOf(&a, found, err)
	o.Took = took
	if o.Evidence != nil {
		p := m.proofs[key]
		m.proofs[key] = proof{p.decided || o.Evidence.Decided(), p.found || o.Evidence.Found()}
	}
	m.Turns.TakeOutcome(key, o)
	if o.Restart != nil {
		m.beginEvidence(key, nil)
	}
	had := j.evidence
	m.Turns.End(key, false, o)
	if kept := m.jobs[key]; kept != nil && had != nil && kept.evidence != had && kept.state() != view.Decided {
		m.fail("%s: the evidence is lost", key)
	}
	m.settle("the turn of %s ends: trouble %v, broken %v, restart %t, %s", j.query.SQL, o.Trouble, o.Broken, o.Restart != nil, j.state())
}

// step runs the trials of a turn. whole is false if they panic.
func (m *model) step(key string, t out) (a step.Audit, found []step.Finding, err error, whole bool) { //nolint:revive // as step.Step
	defer func() { _ = recover() }()
	a, found, err = m.slots.Step(m.Context(), t.Audit, t.Kind, step.Hooks{
		Pressing: m.Turns.Pressing, Advanced: func(p step.Progress) { m.Turns.Advance(key, p) },
	})
	return a, found, err, true
}

// endWatch ends a turn of a change detector.
func (m *model) endWatch(key string, a *step.Audit, found []step.Finding, err error, took time.Duration) {
	sql, why := m.jobs[key].query.SQL, NoRenewal
	var replaced *step.ReplacedError
	switch {
	case errors.As(err, &replaced):
		why = m.Watches.Renewal(key, replaced.Environment)
	case err == nil:
		state, _ := a.Watch.MarshalBinary()
		m.Watches.Watched(key, a.Watch, ledger.Seal(state))
		if len(found) > 0 {
			why = ChangeFound
		}
	}
	if why != NoRenewal {
		m.Watches.Renew(key, took, why, m.jobs[key].plan, m.jobs[key].edition)
	} else {
		m.Watches.End(key, took, err)
	}
	m.settle("the watch of %s ends, renewal %d", sql, why)
}

// replaceCopies replaces the copies, so that a violation that is found again alerts again.
func (m *model) replaceCopies() {
	n, _ := strconv.Atoi(m.environment.Copies)
	m.environment = &environment.Environment{Copies: strconv.Itoa(n + 1), Twin: n%3 != 0, Read: m.now}
	m.at()
	clear(m.firing)
	m.Engines.Review()
	m.settle("the copies are replaced")
}

// deploy deploys another version of the engine.
func (m *model) deploy() {
	e := *m.environment
	e.Label += "x"
	m.environment = &e
	m.at()
	clear(m.firing)
	m.Engines.Review()
	m.settle("another engine")
}

// give gives a turn to a worker of the ledger, which gets the evidence first.
func (m *model) give(g Given) {
	lacks := m.Workers.Put(g.Key)
	m.turns[g.Key] = out{Kind: g.Kind}
	m.settle("a worker gets the turn of %s", g.Key)
	if lacks {
		m.Workers.Stored(g.Key)
	}
	m.Workers.Sent(g.Key, "worker")
	m.given[g.Key] = true
	m.settle("a worker has the turn of %s", g.Key)
}

// land ends a turn that a worker had without a trial: it is lost, or the worker has ended early. The evidence is that
// from before the turn.
func (m *model) land() {
	keys := slices.Sorted(maps.Keys(m.given))
	if len(keys) == 0 {
		return
	}
	key := keys[m.coin.IntN(len(keys))]
	delete(m.given, key)
	delete(m.turns, key)
	row := m.rows[key]
	row.Progress = ledger.Seal(row.Progress)
	l, err := m.Workers.Land(key, &row, true)
	if err != nil || !l.Evidence || l.Trials != 0 {
		m.fail("%s: %+v is left of a lost turn, %v", key, l, err)
	}
	if m.coin.IntN(2) == 0 {
		m.Turns.GiveBack(key)
		m.settle("the worker of %s is lost", key)
		return
	}
	o := m.Workers.Delivered(key, ledger.Outcome{Early: true}, nil, nil)
	m.Turns.TakeOutcome(key, o)
	m.Turns.End(key, false, o)
	m.settle("the worker of %s ended early", key)
}

// breakOff ends a turn as a panic outside of its trials does: the ledger keeps the evidence.
func (m *model) breakOff() {
	keys := slices.Sorted(maps.Keys(m.turns))
	if len(keys) == 0 {
		return
	}
	key := keys[m.coin.IntN(len(keys))]
	delete(m.turns, key)
	delete(m.given, key)
	m.Turns.BreakOff(key)
	m.settle("the turn of %s is broken off", key)
}

// restart ends the process, and restores from what was written what there are places for.
func (m *model) restartProcess() {
	before := m.jobs
	m.begin()
	var controls []ledger.ControlAudit
	for d, verdict := range m.draws {
		controls = append(controls, ledger.ControlAudit{Key: d.key, DataEpoch: d.copies, Verdict: string(verdict)})
	}
	m.Controls.Recall(controls)
	for _, key := range slices.Sorted(maps.Keys(before)) {
		row, j := m.rows[key], before[key]
		if j.control {
			continue
		}
		row.Query.LastSeen, row.Processes = j.LastSeen, max(row.Processes, j.processes) // an audit that lost its place and came back has no count yet
		if row.Progress != nil {
			row.Progress = ledger.Seal(row.Progress)
		}
		placed, err := m.Restoration.Enter(&Stored{Key: key, Query: j.query, Plan: j.plan, Row: &row})
		if err != nil {
			m.fail("%s cannot be restored: %v", key, err)
		}
		if again := m.jobs[key]; placed && again.evidence != nil && again.evidence.Executions() != row.EvidenceTrials {
			m.fail("%s: %d trials restored, %d written", key, again.evidence.Executions(), row.EvidenceTrials)
		}
	}
	m.Restoration.Ended()
	m.settle("the process is restarted")
}

// TestDeskModel: in any order of captures, turns that end well, with trouble or in a panic, lost workers, replaced
// copies, new engines and restarts, an audit has at most one turn and its evidence is in one place; no verdict is
// written without evidence that decides it, evidence is never lost, and a violation alerts once in one environment.
// Control audits have no findings, and each counts once for each version of the copies.
func TestDeskModel(t *testing.T) {
	t.Parallel()
	verdicts, draws := map[analysis.Verdict]int{}, map[analysis.Verdict]int{}
	for seed := range longtest.Count(4, 24) {
		m := newModel(t, seed)
		m.verdicts = verdicts
		for range 250 {
			m.now = m.now.Add(time.Duration(1+m.coin.IntN(900)) * time.Millisecond)
			m.at()
			switch m.coin.IntN(60) {
			case 0:
				m.replaceCopies()
			case 1:
				m.deploy()
			case 2, 10, 11:
				m.land()
			case 12:
				m.breakOff()
			case 3:
				m.restartProcess()
			case 4, 5, 6, 7, 8, 9:
				m.arriveOne()
			case 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29:
				m.beginTurn()
			default:
				m.endTurnOf()
			}
		}
		for _, verdict := range m.draws {
			draws[verdict]++
		}
	}
	if verdicts[analysis.Violation] == 0 || verdicts[analysis.NoEvidence] == 0 || verdicts[analysis.Inconclusive] == 0 { // otherwise nothing was tried
		t.Errorf("verdicts %v", verdicts)
	}
	if draws[analysis.Violation] == 0 || draws[analysis.NoEvidence] == 0 {
		t.Errorf("verdicts of control audits %v", draws)
	}
}
