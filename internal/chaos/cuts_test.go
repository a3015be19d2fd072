//go:build linux

package chaos_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp"
)

// workerState is what the status shows of a worker.
type workerState struct {
	ID      string
	Turns   int
	Silent  time.Duration `json:"silent_ns"`
	Refused string
}

type turnsState struct{ Out, Delivered, Dropped int }

// fleet returns what the status shows of the workers.
func (s *sidecar) fleet(t *testing.T) (workers []workerState, turns turnsState) {
	t.Helper()
	var v struct {
		Audit struct {
			Workers []workerState
			Turns   turnsState
		}
	}
	if err := json.Unmarshal([]byte(s.get(t, "/api/status")), &v); err != nil {
		t.Fatal(err)
	}
	return v.Audit.Workers, v.Audit.Turns
}

// TestCuts: a worker on another host loses the ledger, then the shadow database, then has a slow link. Its turns are
// taken back and another worker goes on; it takes turns again when the link is fixed; no trial is counted twice, and
// none of a delivered turn is lost.
func TestCuts(t *testing.T) {
	longtest.Scheduled(t)
	if !inNamespace(t) {
		return
	}
	far := newHost(t)
	toLedger, toShadow := far.connect(t, 1), far.connect(t, 2)
	r := &rig{calls: &calls{n: map[call]int{}}, called: map[call]int{}, at: time.Now()}
	options := pgtemp.Options{
		Settings: map[string]string{"log_error_verbosity": "terse", "shared_buffers": "16MB", "listen_addresses": "*"},
		HBA:      []string{"host all all 10.77.0.0/16 scram-sha-256"},
	}
	ledger := startServer(t, options)
	options.Log = r.calls
	server := startServer(t, options)
	r.engine = connect(t, server.DSN("postgres"))
	execute(t, r.engine, engineSQL)
	records := connect(t, ledger.DSN("postgres"))

	shadow := server.UserDSN("postgres", "replayer", "replayer")
	upstream := fmt.Sprintf("%s:%d", server.Host(), server.Port())
	near := configuration(t, upstream, shadow, ledger.DSN("postgres"))
	from := func(dsn string, l *link) string { return strings.Replace(dsn, "127.0.0.1", l.address, 1) }
	distant := configuration(t, upstream, from(shadow, toShadow), from(ledger.DSN("postgres"), toLedger))

	r.sidecar = startSidecar(t, near, "--workers", "0")
	r.load = newClients(server.DSN("postgres"))
	t.Cleanup(r.load.end)
	r.load.start(t, r.Listen)
	delivered := func(n int) func() bool {
		return func() bool { _, turns := r.fleet(t); return turns.Delivered >= n }
	}
	state := func() any { workers, turns := r.fleet(t); return fmt.Sprintf("%+v %+v", workers, turns) }
	more := func(what string) {
		t.Helper()
		_, turns := r.fleet(t)
		eventually.True(t, what, delivered(turns.Delivered+3), state)
	}
	says := func(s *sidecar, what string) {
		t.Helper()
		eventually.True(t, "the log: "+what, func() bool { return strings.Contains(s.Log.String(), what) }, func() any { return s.Log.String() })
	}

	r.restoredOnce(t)
	worker := start(t, append([]string{"nsenter"}, far.on(binary(t), "worker", "--config", distant, "--slots", "1")...)...)
	says(worker, "waiting for turns")
	more("turns of the distant worker")

	t.Log("cut between the worker and the ledger")
	for tries := 0; ; tries++ { // in a turn, not between two
		eventually.True(t, "a turn is out", func() bool { _, turns := r.fleet(t); return turns.Out > 0 }, state)
		toLedger.cut(t)
		taken := false
		eventually.True(t, "the worker is given up", func() bool {
			workers, turns := r.fleet(t)
			taken = turns.Dropped > 0
			return len(workers) == 0 && turns.Out == 0
		}, state)
		if taken {
			break
		}
		if tries == 20 {
			t.Fatal("no cut was in a turn")
		}
		toLedger.fix(t)
	}
	says(r.sidecar, "a worker ended or was cut off during a turn")
	says(worker, "the ledger cannot be used")
	second := start(t, binary(t), "worker", "--config", near, "--slots", "1")
	more("turns of the other worker")
	toLedger.fix(t)
	r.both(t, "the distant worker has a turn again", state)
	says(worker, "the trials of a turn are dropped") // it could not deliver them before they were taken back

	t.Log("cut between the worker and the shadow database")
	toShadow.cut(t)
	says(r.sidecar, "shadow database") // why the worker refuses turns
	more("turns of the other worker")
	toShadow.fix(t)
	r.both(t, "the distant worker has a turn again", state)

	if toLedger.slow(t) && toShadow.slow(t) {
		t.Log("slow links")
		second.Stop()
		more("turns over slow links")
	}
	_ = worker.Cmd.Process.Signal(os.Interrupt)
	<-worker.Ended
	r.compare(t, records, state)
}

// restoredOnce waits until the auditor has the ledger, which workers need.
func (r *rig) restoredOnce(t *testing.T) {
	t.Helper()
	began := time.Now()
	eventually.True(t, "the ledger is open", func() bool { return r.settled(t, began) })
}

// both waits until two workers are alive and have had turns since.
func (r *rig) both(t *testing.T, what string, state func() any) {
	t.Helper()
	eventually.True(t, what, func() bool {
		workers, _ := r.fleet(t)
		n := 0
		for _, w := range workers {
			if w.Turns > 0 && w.Refused == "" && w.Silent < 5*time.Second {
				n++
			}
		}
		return n == 2
	}, state)
}

// compare ends dpwatch and compares the trials in the ledger with those that the engine counted.
func (r *rig) compare(t *testing.T, ledger *pgx.Conn, state func() any) {
	t.Helper()
	eventually.True(t, "no turn is out", func() bool { workers, turns := r.fleet(t); return turns.Out == 0 && len(workers) == 0 }, state)
	_, turns := r.fleet(t)
	r.load.outage.Store(true)
	r.Stop()
	gone(t, r.engine, "dpwatch-replay")
	called, trials := r.calls.read(t, r.engine), r.trialsOf(t, ledger)
	complete, began := 0, 0
	for q := range queries {
		for _, rows := range []int{50, 49} {
			if ran := called[call{q, rows}]; trials[q] > ran {
				t.Errorf("query %d: the ledger has %d trials, and %d were executed on the copy of %d rows", q, trials[q], ran, rows)
			}
		}
		complete, began = complete+trials[q], began+called[call{q, 50}]
	}
	// What the ledger may lack: the turns that were taken back, or ended early, and a batch at the end of each.
	all := turns.Delivered + turns.Dropped
	if lost, most := began-complete, turns.Dropped*longestRemoteTurn+all*largestBatch; lost > most {
		t.Errorf("%d rounds were executed and %d are in the ledger; %+v can lack %d at most", began, complete, turns, most)
	}
	if complete == 0 || turns.Dropped == 0 {
		t.Errorf("%d trials in the ledger, %+v: too few for a test", complete, turns)
	}
	t.Logf("%d rounds were executed, %d are in the ledger; %+v", began, complete, turns)
}
