package turn_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/trial"
	"github.com/dpwatch/dpwatch/internal/audit/turn"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/replay"
)

// crashing is a player of trials that take the server down.
type crashing struct{ trial.Player }

type crashes struct{ trial.Trials }

func (crashing) Start(replay.Statement, uint64) (trial.Trials, error) { return crashes{}, nil }

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
			r := turn.Runner{Player: crashing{}, Environment: tc.read, Now: time.Now, Batch: 1, Rounds: 1}
			o := r.Run(t.Context(), turn.Turn{Copies: "1", Evidence: e, Worlds: []turn.World{{Schema: "d1", SQL: view.SQLPair{D0: "SELECT 1", D1: "SELECT 1"}}}}, turn.Hooks{})
			if kept := errors.As(o.Trouble, new(*replay.EndsError)); kept != tc.kept || tc.kept == (o.Restart != nil) || o.Broken != nil {
				t.Errorf("%+v", o)
			}
		})
	}
}
