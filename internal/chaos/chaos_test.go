//go:build linux

package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp"
)

const (
	workers = 2
	batch   = 5
	// A turn ends after the batch in which it reaches 200 rounds and a second. A round takes at least 5 ms (the noise
	// function sleeps as long), so a batch of 5 or 10 rounds takes at least 25 ms and is not enlarged any more. At the
	// end of a turn one more batch may be running, and be dropped.
	largestBatch = 10
	longestTurn  = 200 + 2*largestBatch
)

// TestMain changes what no key sets, for the programs that the tests start.
func TestMain(m *testing.M) {
	_ = os.Setenv(config.TuningVariable, fmt.Sprintf(`{"batch_trials": %d, "retry_after": "200ms", "rescue_after": "10s"}`, batch))
	os.Exit(m.Run())
}

const engineSQL = `
	CREATE FUNCTION noisy(query int, value float8, scale float8) RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$ BEGIN
		IF current_setting('application_name') = 'dpwatch-replay' THEN
			RAISE LOG 'chaos call % %', query, value;
			PERFORM pg_sleep(0.005);
		END IF;
		RETURN round((value + scale * ln((1 - random()) / (1 - random()))) * 1024) / 1024;
	END $$;
	CREATE TABLE people AS SELECT g AS id FROM generate_series(1, 50) g;
	CREATE SCHEMA d0; CREATE TABLE d0.people AS SELECT * FROM people;
	CREATE SCHEMA d1; CREATE TABLE d1.people AS SELECT * FROM people WHERE id <> 50;
	CREATE ROLE replayer LOGIN PASSWORD 'replayer';
	GRANT USAGE ON SCHEMA d0, d1 TO replayer; GRANT SELECT ON d0.people, d1.people TO replayer`

// rig is everything that runs, and what it had at the last checkpoint.
type rig struct {
	*sidecar
	remotes
	engine *pgx.Conn
	calls  *calls
	ledger *crashing
	load   *clients
	random *rand.Rand

	down     bool // the ledger's server is stopped
	away     bool // it was stopped in this life of the auditor, and the ledger may lack more than the turns in progress
	lives    int  // auditor processes that have ended
	called   map[call]int
	trials   [queries]int
	firsts   [queries]int // how often an auditor ended before the query had a trial in the ledger
	recorded [queries]int // executions in the ledger
	began    [queries]int // executions that clients began, without those that failed
	missed   int          // see sidecar.missed
	turns    int          // that workers have delivered to auditors that have ended
	at       time.Time
}

func TestChaos(t *testing.T) {
	longtest.Scheduled(t)
	duration := 2 * time.Minute
	if text, ok := os.LookupEnv("DPWATCH_CHAOS_TIME"); ok {
		var err error
		if duration, err = time.ParseDuration(text); err != nil {
			t.Fatalf("DPWATCH_CHAOS_TIME: %v", err)
		}
	}
	seed := longtest.Number(t, "DPWATCH_CHAOS_SEED", 20261122)
	t.Logf("DPWATCH_CHAOS_SEED=%d, %v", seed, duration)

	r := &rig{calls: &calls{n: map[call]int{}}, random: rand.New(rand.NewPCG(seed, 1)), called: map[call]int{}, at: time.Now()}
	server := startServer(t, pgtemp.Options{Log: r.calls, Settings: map[string]string{"log_error_verbosity": "terse", "shared_buffers": "16MB"}})
	r.engine = connect(t, server.DSN("postgres"))
	execute(t, r.engine, engineSQL)
	r.ledger = startCrashing(t)
	config := configuration(t, fmt.Sprintf("%s:%d", server.Host(), server.Port()), server.UserDSN("postgres", "replayer", "replayer"), r.ledger.DSN("postgres"))
	r.load = newClients(server.DSN("postgres"))
	t.Cleanup(r.load.end) // when dpwatch has ended
	r.sidecar = startSidecar(t, config)
	r.load.start(t, r.Listen)
	r.recovered(t)
	r.remotes.config = config
	r.startWorkers(t)

	events := []struct {
		name string
		do   func()
	}{
		{"kill the auditor", func() { r.killAuditor(t) }},
		{"kill a worker", func() { r.endWorker(t, true) }},
		{"stop a worker", func() { r.endWorker(t, false) }},
		{"crash the ledger's server", func() { r.crashLedger(t); r.restartLedger(t) }},
		{"the ledger's server is away for a while", func() { r.crashLedger(t); r.pause(3 * time.Second); r.restartLedger(t) }},
		{"kill the auditor while the ledger is away", func() {
			r.crashLedger(t)
			r.pause(2 * time.Second)
			r.killAuditor(t)
			r.pause(2 * time.Second)
			r.restartLedger(t)
		}},
	}
	happened := map[string]int{}
	for end := time.Now().Add(duration * 4 / 5); time.Now().Before(end) && !t.Failed(); {
		e := events[r.random.IntN(len(events))]
		r.pause(4 * time.Second)
		t.Logf("%s: %s", time.Now().Format(time.TimeOnly), e.name)
		happened[e.name]++
		e.do()
		r.recovered(t)
	}
	for end := time.Now().Add(duration / 5); time.Now().Before(end) && !t.Failed(); {
		r.pause(4 * time.Second)
		t.Logf("%s: kill the relay", time.Now().Format(time.TimeOnly))
		happened["kill the relay"]++
		r.killRelay(t, config)
		r.recovered(t)
	}
	r.stop(t)
	t.Logf("%v; %d auditor processes", happened, r.lives)
	t.Logf("executions by clients %v, in the ledger %v; calls %v, trials in the ledger %v", counts(&r.load.began), r.recorded, r.called, r.trials)
	for name, n := range map[string]int{"executions": r.recorded[0], "trials": r.trials[0], "auditor processes": r.lives, "turns in workers": r.turns} {
		if n < 2 {
			t.Errorf("%d %s: too few for a test", n, name)
		}
	}
}

// pause waits for a random time up to a maximum.
func (r *rig) pause(most time.Duration) { time.Sleep(time.Duration(r.random.Int64N(int64(most)))) }

// killAuditor kills the auditor, and takes a checkpoint before the relay starts another one.
func (r *rig) killAuditor(t *testing.T) {
	t.Helper()
	r.missed = r.sidecar.missed(t)
	r.turns += r.delivered(t)
	relay, pid := r.Cmd.Process, 0
	eventually.True(t, "an auditor", func() bool {
		_ = relay.Signal(syscall.SIGSTOP) // sessions stall, and do not end
		if pid = r.auditor(); pid == 0 {
			_ = relay.Signal(syscall.SIGCONT)
		}
		return pid != 0
	})
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	eventually.True(t, "the killed process has ended", func() bool { return !alive(pid) || t.Failed() })
	r.endWorkers(t)
	r.checkpoint(t)
	if err := relay.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	r.provenAuditor(t, pid)
	r.startWorkers(t)
}

func (r *rig) crashLedger(t *testing.T) {
	t.Helper()
	r.ledger.crash(t)
	r.down, r.away = true, true
}

func (r *rig) restartLedger(t *testing.T) {
	t.Helper()
	r.ledger.restart(t)
	r.down = false
}

// killRelay kills the relay, with which the auditor ends, and starts dpwatch again.
func (r *rig) killRelay(t *testing.T, config string) {
	t.Helper()
	r.load.outage.Store(true)
	r.turns += r.delivered(t)
	r.noOtherEnd(t)
	auditor := 0
	eventually.True(t, "an auditor", func() bool { auditor = r.auditor(); return auditor != 0 })
	if err := r.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-r.Ended
	r.provenKill(t, "the relay")
	eventually.True(t, "the auditor ends with its relay", func() bool { return !alive(auditor) })
	r.endWorkers(t)
	r.checkpoint(t)
	r.sidecar, r.missed = startSidecar(t, config), 0
	r.startWorkers(t)
	r.load.address.Store(&r.Listen)
	before := counts(&r.load.complete)
	eventually.True(t, "clients are served again", func() bool {
		now := counts(&r.load.complete)
		for i := range now {
			if now[i] < before[i]+sessions {
				return false
			}
		}
		return true
	})
	r.load.outage.Store(false)
}

// stop ends dpwatch as an operator does, and takes the last checkpoint.
func (r *rig) stop(t *testing.T) {
	t.Helper()
	r.load.outage.Store(true)
	r.turns += r.delivered(t)
	if err := r.Cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-r.Ended
	r.noOtherEnd(t)
	r.endWorkers(t)
	r.checkpoint(t)
}
