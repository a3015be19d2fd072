package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// fleet is an engine with one audit, "k", of 100 pairs of trials, and its ledger.
type fleet struct {
	*ledger.Engine
	dsn   string
	queue queue
	audit ledger.Audit
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	o := ledger.Options{DSN: pgtest.Database(t)}
	if _, _, err := ledger.Migrate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	f := &fleet{Engine: acquire(t, o, "e"), dsn: o.DSN, queue: newQueue(t, o.DSN)}
	f.audit = ledger.Audit{Query: query(), State: "running", DataEpoch: "1", Processes: 1, Trials: 100, EvidenceTrials: 200, Progress: ledger.Seal([]byte("100"))}
	if _, _, err := f.Audits.Begin(t.Context(), f.audit); err != nil {
		t.Fatal(err)
	}
	if err := f.Audits.Save(t.Context(), f.audit); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fleet) open(t *testing.T) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledger.Options{DSN: f.dsn, Connections: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// give gives a turn of an audit, and returns its number.
func (f *fleet) give(t *testing.T, key string) int64 {
	t.Helper()
	id, err := f.Turns.Give(t.Context(), ledger.TurnArgs{Key: key, Turns: 1})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// turn returns the only current turn.
func (f *fleet) turn(t *testing.T) ledger.GivenTurn {
	t.Helper()
	all, err := f.Turns.Current(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("turns %+v, %v; want one", all, err)
	}
	return all[0]
}

func workOptions(id, engine string, run func(context.Context, *ledger.Turn) error) ledger.WorkOptions {
	return ledger.WorkOptions{
		Worker: ledger.Worker{ID: id, Engine: engine, Host: "h", Slots: 1}, Every: 100 * time.Millisecond, Logger: zap.NewNop(),
		Run: run, Heard: func(error) {},
	}
}

// work runs a worker until the function that it returns is called, or the test ends.
func (f *fleet) work(t *testing.T, l *ledger.Ledger, id, engine string, run func(context.Context, *ledger.Turn) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Workers.Work(ctx, workOptions(id, engine, run)) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// result is the state of an audit with ten pairs of trials more than the ledger has.
func result(ctx context.Context, turn *ledger.Turn) (*ledger.Audit, error) {
	state, found, err := turn.Audits.Find(ctx, turn.Key)
	if err == nil && !found {
		err = errors.New("no audit")
	}
	state.Trials += 10
	state.EvidenceTrials += 20
	state.Progress = ledger.Seal(fmt.Append(nil, state.Trials))
	return &state, err
}

// complete runs a turn of ten pairs of trials.
func complete(ctx context.Context, turn *ledger.Turn) error {
	state, err := result(ctx, turn)
	if err != nil {
		return err
	}
	return turn.Complete(ctx, state, ledger.Outcome{Fresh: true})
}

// ended waits until the current turn has ended, and checks its worker and the trials in the ledger.
func (f *fleet) ended(t *testing.T, id int64, worker string, trials int) {
	t.Helper()
	eventually.True(t, "the turn has ended", func() bool { return f.turn(t).Done }, func() any { return f.turn(t) })
	if turn := f.turn(t); turn.ID != id || turn.Worker != worker || turn.Lost || !turn.Outcome.Fresh {
		t.Errorf("turn %+v; want %d, of %s", turn, id, worker)
	}
	f.has(t, trials)
}

func (f *fleet) has(t *testing.T, trials int) {
	t.Helper()
	a, found, err := f.Audits.Find(t.Context(), "k")
	if err != nil || !found || a.Trials != trials || a.EvidenceTrials != 2*trials {
		t.Errorf("%d pairs, evidence of %d trials, %v; want %d pairs", a.Trials, a.EvidenceTrials, err, trials)
	}
}

// TestTurnsOfEngines: workers take the turns of their engine alone, each turn once.
func TestTurnsOfEngines(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	other := &fleet{Engine: acquire(t, ledger.Options{DSN: f.dsn}, "other"), dsn: f.dsn, queue: f.queue}
	var mu sync.Mutex
	taken := map[string][]string{}
	note := func(worker string) func(context.Context, *ledger.Turn) error {
		return func(ctx context.Context, turn *ledger.Turn) error {
			mu.Lock()
			taken[turn.TurnArgs.Engine+" "+turn.Key] = append(taken[turn.TurnArgs.Engine+" "+turn.Key], worker)
			mu.Unlock()
			return turn.Complete(ctx, nil, ledger.Outcome{})
		}
	}
	f.work(t, f.open(t), "e1", "e", note("e"))
	f.work(t, f.open(t), "e2", "e", note("e"))
	f.work(t, f.open(t), "other1", "other", note("other"))
	const each = 10
	for i := range each {
		f.give(t, fmt.Sprint(i))
		other.give(t, fmt.Sprint(i))
	}
	for _, engine := range []*fleet{f, other} {
		eventually.True(t, "all turns have ended", func() bool {
			all, err := engine.Turns.Current(t.Context())
			done := 0
			for _, turn := range all {
				if turn.Done {
					done++
				}
			}
			return err == nil && len(all) == each && done == each
		})
	}
	mu.Lock()
	defer mu.Unlock()
	if len(taken) != 2*each {
		t.Errorf("turns %v", taken)
	}
	for turn, workers := range taken {
		if len(workers) != 1 || workers[0] != turn[:len(workers[0])] {
			t.Errorf("turn %s was taken by workers of %v", turn, workers)
		}
	}
	var ids []int64
	all, _ := f.Turns.Current(t.Context())
	for _, turn := range all {
		ids = append(ids, turn.ID)
	}
	if err := f.Turns.Forget(t.Context(), ids...); err != nil {
		t.Fatal(err)
	}
	if all, err := f.Turns.Current(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("after Forget: %+v, %v", all, err)
	}
}

// TestWorkerKilled: the turn of a worker that was killed stays its own until it is withdrawn. It is given again then,
// and its trials count once, whatever becomes of the first job.
func TestWorkerKilled(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	first := f.give(t, "k")
	startChild(t, "turn", f.dsn)()
	if turn := f.turn(t); turn.ID != first || turn.Worker != "child" || turn.Done || turn.Lost {
		t.Fatalf("turn %+v; want one that the child has", turn)
	}
	workers, err := f.Turns.Workers(t.Context())
	if err != nil || len(workers) != 1 || workers[0].ID != "child" {
		t.Fatalf("workers %+v, %v", workers, err)
	}
	if _, err := f.queue.JobCancel(t.Context(), f.queue.jobs(t, "turn")[0].ID); err != nil { // River waits for the worker
		t.Fatal(err)
	}
	if turn := f.turn(t); turn.Done || turn.Lost {
		t.Fatalf("turn %+v after its job was cancelled", turn)
	}
	if yes, err := f.Turns.Withdraw(t.Context(), first); err != nil || !yes {
		t.Fatalf("withdrawn: %v, %v", yes, err)
	}
	if yes, err := f.Turns.Withdraw(t.Context(), first); err != nil || yes {
		t.Fatalf("withdrawn twice: %v, %v", yes, err)
	}
	second := f.give(t, "k")
	f.work(t, f.open(t), "alive", "e", complete)
	f.ended(t, second, "alive", 110)
	if s := f.queue.states(t, "turn"); s != "running completed" {
		t.Errorf("jobs are %s; want the first one running until a leader ends it", s)
	}
}

// TestLateWorker: what a worker writes after its turn was given again is not stored.
func TestLateWorker(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	taken, wake, late := make(chan struct{}), make(chan struct{}), make(chan error, 4)
	f.work(t, f.open(t), "late", "e", func(ctx context.Context, turn *ledger.Turn) error {
		ctx = context.WithoutCancel(ctx)
		state, err := result(ctx, turn)
		if err != nil {
			return err
		}
		close(taken)
		<-wake
		_, hurried := turn.Hurried(ctx)
		late <- hurried
		late <- turn.Audits.Save(ctx, *state)
		_, _, begun := turn.Audits.Begin(ctx, *state)
		late <- begun
		late <- turn.Complete(ctx, state, ledger.Outcome{Trouble: "late"})
		return nil
	})
	first := f.give(t, "k")
	<-taken
	second := f.give(t, "k") // without Withdraw
	if second <= first {
		t.Errorf("turn %d after turn %d", second, first)
	}
	f.work(t, f.open(t), "second", "e", complete)
	f.ended(t, second, "second", 110)
	close(wake)
	for _, what := range []string{"Hurried", "Save", "Begin", "Complete"} {
		if err := <-late; !errors.Is(err, ledger.ErrTurnLost) {
			t.Errorf("%s of a late worker: %v, want ErrTurnLost", what, err)
		}
	}
	f.ended(t, second, "second", 110)
}

// TestOutdatedJob: the job of a turn that was withdrawn, or given again, ends without work, and so does one that is run
// again by hand.
func TestOutdatedJob(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	if yes, err := f.Turns.Withdraw(t.Context(), f.give(t, "k")); err != nil || !yes {
		t.Fatalf("withdrawn: %v, %v", yes, err)
	}
	f.give(t, "k")
	id := f.give(t, "k")
	runs := make(chan int64, 10)
	f.work(t, f.open(t), "w", "e", func(ctx context.Context, turn *ledger.Turn) error {
		runs <- turn.Number
		return complete(ctx, turn)
	})
	f.ended(t, id, "w", 110)
	eventually.True(t, "the outdated jobs end", func() bool { return f.queue.states(t, "turn") == "cancelled cancelled completed" }, func() any { return f.queue.states(t, "turn") })
	if _, err := f.queue.JobRetry(t.Context(), f.queue.jobs(t, "turn")[2].ID); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the job that was run again ends", func() bool { return f.queue.states(t, "turn") == "cancelled cancelled cancelled" })
	f.ended(t, id, "w", 110)
	if n := <-runs; n != id || len(runs) > 0 {
		t.Errorf("turn %d and %d others ran; want %d alone", n, len(runs), id)
	}
}

// TestCancelledJob: an operator cancels jobs. A turn that no worker has taken is lost. One that a worker has is not:
// the fence decides, and the state of the job does not.
func TestCancelledJob(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	first := f.give(t, "k")
	cancel := func(n int) {
		t.Helper()
		if _, err := f.queue.JobCancel(t.Context(), f.queue.jobs(t, "turn")[n].ID); err != nil {
			t.Fatal(err)
		}
	}
	cancel(0)
	if turn := f.turn(t); turn.ID != first || !turn.Lost || turn.Worker != "" {
		t.Errorf("turn %+v; want it to be lost", turn)
	}
	id := f.give(t, "k")
	cancelled := make(chan struct{})
	f.work(t, f.open(t), "w", "e", func(ctx context.Context, turn *ledger.Turn) error {
		close(cancelled)
		<-ctx.Done()
		return complete(context.WithoutCancel(ctx), turn)
	})
	<-cancelled
	cancel(1)
	f.ended(t, id, "w", 110)
}

// TestDroppedTurn: a turn whose worker returns without ending it is lost, though the worker is alive. Until it is
// withdrawn nothing else has the turn.
func TestDroppedTurn(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.work(t, f.open(t), "w", "e", func(context.Context, *ledger.Turn) error { return errors.New("dropped") })
	id := f.give(t, "k")
	eventually.True(t, "the turn is lost", func() bool { return f.turn(t).Lost })
	if yes, err := f.Turns.Withdraw(t.Context(), id); err != nil || !yes {
		t.Errorf("withdrawn: %v, %v", yes, err)
	}
	f.has(t, 100)
}

// TestAuditorWrites: evidence that the auditor writes, and a new beginning, make a turn outdated; other states do not.
func TestAuditorWrites(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.give(t, "k")
	state := f.audit
	state.Progress = nil
	if err := f.Audits.Save(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	f.turn(t)
	outdated := func(what string, err error) {
		t.Helper()
		if all, fault := f.Turns.Current(t.Context()); err != nil || fault != nil || len(all) != 0 {
			t.Errorf("turns after %s: %+v, %v, %v", what, all, err, fault)
		}
		f.give(t, "k")
	}
	outdated("Save", f.Audits.Save(t.Context(), f.audit))
	_, _, err := f.Audits.Begin(t.Context(), f.audit)
	outdated("Begin", err)
	outdated("SetAside", f.Audits.SetAside(t.Context(), "k", "damaged"))
}

// TestLedgerAway: a worker whose ledger goes away in a turn ends the turn once when it is back, and takes the next one.
func TestLedgerAway(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	config, err := pgx.ParseConfig(f.dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := config.Database
	config.Database = "postgres"
	admin, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background()) //nolint:errcheck // it was used
	rename := func(from, to string) error {
		_, err := admin.Exec(t.Context(), fmt.Sprintf("ALTER DATABASE %s RENAME TO %s", pgx.Identifier{from}.Sanitize(), pgx.Identifier{to}.Sanitize()))
		return err
	}
	taken, failed := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	f.work(t, f.open(t), "w", "e", func(ctx context.Context, turn *ledger.Turn) error {
		state, err := result(ctx, turn)
		if err != nil {
			return err
		}
		once.Do(func() {
			taken <- struct{}{}
			<-taken
			failed <- turn.Complete(ctx, state, ledger.Outcome{Fresh: true})
		})
		for {
			err := turn.Complete(context.WithoutCancel(ctx), state, ledger.Outcome{Fresh: true})
			if err == nil || errors.Is(err, ledger.ErrTurnLost) {
				return err
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	id := f.give(t, "k")
	<-taken
	eventually.True(t, "the ledger is away", func() bool { // a database with a session, or one that begins, is not renamed
		if _, err := admin.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name); err != nil {
			t.Fatal(err)
		}
		return rename(name, name+"_away") == nil
	})
	taken <- struct{}{}
	if err := <-failed; err == nil || errors.Is(err, ledger.ErrTurnLost) {
		t.Fatalf("Complete without a ledger: %v", err)
	}
	if err := rename(name+"_away", name); err != nil {
		t.Fatal(err)
	}
	back := &fleet{Engine: acquire(t, ledger.Options{DSN: f.dsn}, "e"), dsn: f.dsn, queue: newQueue(t, f.dsn)}
	back.ended(t, id, "w", 110)
	back.ended(t, back.give(t, "k"), "w", 120)
}
