package step_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/replay"
)

// laplace is a Player whose answers are numbers with Laplace noise, which are larger on some places: D0, a neighbour
// and the twin. The coin is not random.
type laplace struct {
	step.Player
	shifts [3]float64
	coin   *rand.Rand
}

func newLaplace(seed uint64, shifts ...float64) laplace {
	return laplace{shifts: [3]float64(shifts), coin: rand.New(rand.NewPCG(seed, 2))}
}

func (l laplace) Start(s replay.Statement, _ uint64) (step.Trials, error) {
	if s.Places == nil {
		s.Places = []int{0, 1}
	}
	return &laplaceTrials{laplace: l, places: s.Places}, nil
}

type laplaceTrials struct {
	step.Trials
	laplace
	places []int
}

func (*laplaceTrials) Reads(context.Context) (replay.Reads, error) { return replay.Reads{}, nil }
func (*laplaceTrials) Choose(replay.Choice)                        {}
func (*laplaceTrials) Close()                                      {}
func (l *laplaceTrials) Stream(ctx context.Context, n int) iter.Seq2[replay.Batch, error] {
	return func(yield func(replay.Batch, error) bool) {
		for {
			var b replay.Batch
			for range n {
				var round replay.Round
				for _, place := range l.places {
					answer, _ := new(outcome.Parser).ParseLine(strconv.AppendFloat(nil, l.shifts[place]+l.coin.ExpFloat64()-l.coin.ExpFloat64(), 'g', -1, 64))
					round = append(round, answer)
				}
				b.Rounds = append(b.Rounds, round)
			}
			if !yield(b, ctx.Err()) || ctx.Err() != nil {
				return
			}
		}
	}
}

func newAudit(t *testing.T, twin bool) step.Audit {
	t.Helper()
	e, err := evidence.New(analysis.Claim{Epsilon: 0.5}, analysis.Options{Confidence: 0.99, MaxTrials: 1000, Salt: "salt"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	a := step.Audit{Statement: replay.Statement{Worlds: []string{"SELECT 1", "SELECT 1"}}, Evidence: e}
	if twin {
		a.Twin = []string{"SELECT 1"}
	}
	return a
}

// TestStages: search, control and confirmation follow each other until an audit is decided, on the copies that they
// need.
func TestStages(t *testing.T) {
	t.Parallel()
	leaks := []float64{0, 10, 0}
	for _, tc := range []struct {
		name    string
		on      []float64
		twin    bool
		renewed []float64 // on the copies that are made anew; nil = none are
		want    []step.FindingKind
		verdict analysis.Verdict
	}{
		{"honest", []float64{0, 0, 0}, true, nil, nil, analysis.NoEvidence},
		{"without a twin", leaks, false, nil, []step.FindingKind{step.Suspected, step.Violation}, analysis.Violation},
		{"with a twin", leaks, true, nil, []step.FindingKind{step.Suspected, step.Violation}, analysis.Violation},
		{"copies differ", []float64{0, 10, 10}, true, nil, []step.FindingKind{step.Suspected}, analysis.Inconclusive},
		{"copies made anew", leaks, true, leaks, []step.FindingKind{step.Suspected, step.Violation}, analysis.Violation},
		{"not on copies made anew", leaks, true, []float64{0, 0, 0}, []step.FindingKind{step.Suspected, step.Unconfirmed, step.Suspected, step.Unconfirmed, step.Suspected}, analysis.Inconclusive},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			alone := step.Alone{}
			if seed := uint64(1); tc.renewed != nil {
				alone.Renew = func(context.Context) (*step.Worlds, error) {
					a := newAudit(t, true)
					seed++ // otherwise answers repeat
					return &step.Worlds{Player: newLaplace(seed, tc.renewed...), Statement: a.Statement, Twin: a.Twin}, nil
				}
			}
			a, found, err := alone.Decide(t.Context(), newLaplace(1, tc.on...), newAudit(t, tc.twin))
			if err != nil {
				t.Fatal(err)
			}
			var kinds []step.FindingKind
			for _, f := range found {
				if f.Kind != step.Read {
					kinds = append(kinds, f.Kind)
				}
			}
			if r := a.Evidence.Report(0); !slices.Equal(kinds, tc.want) || r.Verdict != tc.verdict {
				t.Errorf("findings %v, %s (%s); want %v, %s", kinds, r.Verdict, r.Reason, tc.want, tc.verdict)
			}
		})
	}
}

// TestMeasurement: a violation is measured after its verdict. If that fails, or the copies are other ones at its end,
// the evidence is as before.
func TestMeasurement(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func() (*environment.Environment, error){
		"measured": func() (*environment.Environment, error) { return &environment.Environment{}, nil },
		"replaced": func() (*environment.Environment, error) { return &environment.Environment{Copies: "other"}, nil },
		"unread":   func() (*environment.Environment, error) { return nil, errors.New("refused") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			player := newLaplace(1, 0, 10, 0)
			a, _, err := (&step.Alone{}).Decide(t.Context(), player, newAudit(t, false))
			if err != nil {
				t.Fatal(err)
			}
			before, err := a.Evidence.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			a.Measure = 100
			a, found, err := step.Step(t.Context(), player, a, step.Limits{
				Batch: 10, More: func(replay.Batch) bool { return true }, Environment: func(context.Context) (*environment.Environment, error) { return read() },
			})
			after, _ := a.Evidence.MarshalBinary()
			switch whole := name == "measured"; {
			case whole != (err == nil), len(found) > 0, whole == bytes.Equal(before, after), whole != a.Evidence.Measuring(), a.Evidence.Report(0).Verdict != analysis.Violation:
				t.Errorf("%v, found %v, measured %t, %+v", err, found, a.Evidence.Measuring(), a.Evidence.Report(0))
			case errors.As(err, new(*step.ReplacedError)) != (name == "replaced"):
				t.Error(err)
			}
		})
	}
}

// TestWatch: a query that was right and is no longer is found, unless the copies are other ones.
func TestWatch(t *testing.T) {
	t.Parallel()
	for copies, want := range map[string]bool{"": true, "other": false} {
		a := step.Audit{
			Statement: replay.Statement{Worlds: []string{"SELECT 1", "SELECT 1"}},
			Watch:     evidence.NewWatch(analysis.Claim{Epsilon: 0.5}, analysis.Options{Confidence: 0.99, MaxTrials: 1000, Salt: "salt"}, 1),
		}
		_, found, err := step.Step(t.Context(), newLaplace(1, 0, 10, 0), a, step.Limits{
			Batch: 10, More: func(replay.Batch) bool { return true },
			Environment: func(context.Context) (*environment.Environment, error) {
				return &environment.Environment{Copies: copies}, nil
			},
		})
		if changed := err == nil && len(found) == 1 && found[0].Kind == step.Changed; changed != want || !want && !errors.As(err, new(*step.ReplacedError)) {
			t.Errorf("copies %q: found %v, %v", copies, found, err)
		}
	}
}
