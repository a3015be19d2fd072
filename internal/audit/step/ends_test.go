package step_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/replay"
)

// crashing is a player of trials that take the server down.
type crashing struct{ step.Player }

type crashes struct{ step.Trials }

func (crashing) Start(replay.Statement, uint64) (step.Trials, error) { return crashes{}, nil }

func (crashes) Reads(context.Context) (replay.Reads, error) { return replay.Reads{}, nil }
func (crashes) Choose(replay.Choice)                        {}
func (crashes) Close()                                      {}
func (crashes) Stream(context.Context, int) iter.Seq2[replay.Batch, error] {
	return func(yield func(replay.Batch, error) bool) {
		yield(replay.Batch{}, &replay.EndsError{Ends: outcome.Ends{Down: true}})
	}
}

// TestEndOfServer: a statement that took the server down is not tried again because the server does not answer yet when
// its turn ends. If the copies or the engine were replaced meanwhile, its audit begins again.
func TestEndOfServer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		read func(context.Context) (*environment.Environment, error)
		kept bool
	}{
		{"the server is down", func(context.Context) (*environment.Environment, error) { return nil, errors.New("refused") }, true},
		{"nothing changed", func(context.Context) (*environment.Environment, error) {
			return &environment.Environment{Copies: "1"}, nil
		}, true},
		{"the copies were replaced", func(context.Context) (*environment.Environment, error) {
			return &environment.Environment{Copies: "2"}, nil
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e, err := evidence.New(analysis.Claim{Epsilon: 1}, analysis.Options{Confidence: 0.99, MaxTrials: 1000}, 1)
			if err != nil {
				t.Fatal(err)
			}
			a := step.Audit{Copies: "1", Evidence: e, Statement: replay.Statement{Worlds: []string{"SELECT 1", "SELECT 1"}}}
			_, _, err = step.Step(t.Context(), crashing{}, a, step.Limits{Environment: tc.read, Batch: 1, More: func(replay.Batch) bool { return true }})
			if kept := errors.As(err, new(*replay.EndsError)); kept != tc.kept || tc.kept == errors.As(err, new(*step.ReplacedError)) {
				t.Errorf("%v", err)
			}
		})
	}
}
