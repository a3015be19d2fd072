package audit_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// laplace simulates the answers of honest queries that leak exactly what they claim: Laplace noise of scale 1/epsilon,
// and one person more on D0. Each statement has a sequence of answers of its own, which continues from turn to turn.
type laplace struct {
	epsilon float64
	ready   chan struct{} // closed when trials may run

	mu    sync.Mutex // guards coins
	coins map[string]*rand.Rand
}

func (l *laplace) Check(context.Context, string, []string, []string) ([]string, error) {
	return nil, nil
}

func (l *laplace) Epoch(context.Context, []string) (string, error) { return "copies", nil }

func (l *laplace) TwinFault(context.Context, string) (string, bool, error) { return "", false, nil }

func (l *laplace) Start(s replay.Statement, _ uint64) (step.Trials, error) {
	<-l.ready
	l.mu.Lock()
	defer l.mu.Unlock()
	coin := l.coins[s.Worlds[0]]
	if coin == nil {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(s.Worlds[0]))
		coin = rand.New(rand.NewPCG(hash.Sum64(), 20261123))
		l.coins[s.Worlds[0]] = coin
	}
	return &laplaceTrials{l, coin}, nil
}

type laplaceTrials struct {
	*laplace
	coin *rand.Rand
}

func (l *laplaceTrials) Choose(replay.Choice)                        {}
func (l *laplaceTrials) Reads(context.Context) (replay.Reads, error) { return replay.Reads{}, nil }

func (l *laplaceTrials) Time(context.Context, int, func(_, _ time.Duration) bool) error { return nil }

func (l *laplaceTrials) Rest() bool { return false }
func (l *laplaceTrials) Close()     {}

func (l *laplaceTrials) Stream(ctx context.Context, n int) iter.Seq2[replay.Batch, error] {
	columns := []outcome.Column{{Name: "count"}}
	answer := func(count float64) outcome.Outcome {
		noise := l.coin.ExpFloat64() / l.epsilon
		if l.coin.Uint64()&1 == 0 {
			noise = -noise
		}
		value := math.Round((count+noise)*1024) / 1024
		return outcome.Outcome{Columns: columns, Rows: [][]outcome.Value{{{Kind: outcome.Number, Num: value}}}}
	}
	return func(yield func(replay.Batch, error) bool) {
		for ctx.Err() == nil {
			rounds := make([]replay.Round, n)
			for i := range rounds {
				rounds[i] = replay.Round{answer(40), answer(39)}
			}
			if !yield(replay.Batch{Rounds: rounds}, nil) {
				return
			}
		}
		yield(replay.Batch{}, ctx.Err())
	}
}

// fleet audits honest queries with simulated answers. It returns the number of findings, of audits whose first trials
// showed a violation so that it was to be confirmed, of audits that began by the ledger, and of pairs of trials.
func fleet(t *testing.T, queries, trials int, confidence float64, family bool) (findings, suspicions, begun, pairs int) {
	t.Helper()
	const epsilon = 0.5
	now := time.Now()
	simulation := &laplace{epsilon: epsilon, ready: make(chan struct{}), coins: map[string]*rand.Rand{}}
	l := newLedgerRig(t, func(o *audit.Options) {
		o.Player, o.Family = simulation, family
		o.Analysis = analysis.Options{Confidence: confidence, MaxTrials: trials}
		o.Workers, o.MaxAudits, o.PerShape, o.BatchTrials = 1, queries, queries, 500
		o.Now = func() time.Time { return now } // the answers, the order of the turns and so the verdicts are the same in every run
	})
	for i := range queries {
		l.Offer(query(fmt.Sprintf("SELECT noisy(count(*), 2) FROM people WHERE id < %d /*dp_epsilon='%g'*/", i, epsilon)))
	}
	stop := l.begin(t)
	eventually.True(t, "the queries have audits", func() bool { return len(l.Status().Audits) == queries }, func() any { return len(l.Status().Audits) })
	close(simulation.ready) // the order of the turns does not depend on when the queries got their audits
	conn := pgtest.Connect(t, l.ledger.DSN)
	for decided := 0; decided < queries; time.Sleep(20 * time.Millisecond) { // no time limit of its own: it only computes
		if err := conn.QueryRow(t.Context(), `SELECT (SELECT begun FROM dpwatch_ledger.fleet), count(*) FILTER (WHERE verdict <> ''), coalesce(sum(trials), 0) FROM dpwatch_ledger.audits`).
			Scan(&begun, &decided, &pairs); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	registry := l.opt.Metrics.(*prometheus.Registry)
	for _, end := range []string{"confirmed", "not_confirmed"} {
		suspicions += int(counted(t, registry, "dpwatch_confirmations_total", end))
	}
	return len(l.findings), suspicions, begun, pairs
}

// TestHonestFleet: in a fleet of honest queries that leak exactly what they claim, no audit is suspected at the level
// of the fleet, and so none pages. If each audit had the level of a single one, some would be suspected. Real
// scheduler, real ledger, simulated answers with fixed seeds: every run has the same result. DPWATCH_FLEET_QUERIES=1000
// and DPWATCH_FLEET_TRIALS=20000 are the numbers for the full evidence, ten minutes.
func TestHonestFleet(t *testing.T) {
	longtest.Scheduled(t)
	t.Parallel()
	const some, confidence = 300, .95
	queries, trials := int(longtest.Number(t, "DPWATCH_FLEET_QUERIES", 300)), int(longtest.Number(t, "DPWATCH_FLEET_TRIALS", 500))
	findings, suspicions, begun, pairs := fleet(t, queries, trials, confidence, true)
	if findings != 0 || suspicions != 0 || begun != queries || pairs < queries*trials*9/10 {
		t.Errorf("%d findings, %d suspicions, %d audits begun, %d pairs of trials; want none, none, %d and about %d", findings, suspicions, begun, pairs, queries, queries*trials)
	}
	if _, suspicions, _, _ := fleet(t, some, trials, confidence, false); suspicions == 0 {
		t.Error("no suspicion at the level of single audits: the fleet is too small to show a wrong level")
	} else {
		t.Logf("at the level of single audits: %d suspicions among %d queries", suspicions, some)
	}
}

// TestUnconfirmedFleet: at the level of single audits and a low confidence some honest queries are suspected. Fresh
// trials do not confirm most, whose audits go on to their verdict. Seeds are fixed.
func TestUnconfirmedFleet(t *testing.T) {
	t.Parallel()
	findings, suspicions, _, pairs := fleet(t, 60, 300, 0.5, false)
	if suspicions == 0 || findings >= suspicions || pairs < 60*300*9/10 {
		t.Errorf("%d suspicions, %d findings, %d pairs; want some that are not confirmed, and about %d", suspicions, findings, pairs, 60*300)
	}
}
