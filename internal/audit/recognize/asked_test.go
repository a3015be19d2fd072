package recognize_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dpwatch/dpwatch/internal/audit/inbox"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
)

// TestAskedOnce: the engine is asked once about a statement in a session's settings, and again after it has changed.
// While it is away, the statement is not forgotten.
func TestAskedOnce(t *testing.T) {
	t.Parallel()
	rewriter, err := rewrite.New(rewrite.Options{
		Protected: []rewrite.Table{{Schema: "public", Name: "people"}}, Neighbours: []string{"d0", "d1"}, Claims: rewrite.ClaimRules{Ask: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	asked, away := 0, true
	r := recognize.New(rewriter, nil, func(string) func() { return func() {} }, func(any) {}, func(context.Context, rewrite.Question) (rewrite.Value, error) {
		if away {
			return rewrite.Value{}, errors.New("away")
		}
		asked++
		return rewrite.Value{Number: float64(asked)}, nil
	})
	claim := func(scale string) float64 {
		found := r.Recognize(capture.Query{SQL: "SELECT count(*) FROM people", Settings: map[string]string{"dp.scale": scale}}, inbox.Look{})
		if found.Reason != "" || found.Query.Claim == nil {
			return -1
		}
		return found.Query.Claim.Epsilon
	}
	if got := claim("1"); got != -1 {
		t.Errorf("claim %g of an engine that is away", got)
	}
	away = false
	for i, want := range []float64{1, 1, 2, 1} {
		if got := claim([]string{"1", "1", "2", "1"}[i]); got != want {
			t.Errorf("claim %g, want %g", got, want)
		}
	}
	if r.Forget(); claim("1") != 3 {
		t.Error("an engine that has changed was not asked again")
	}
}

// TestAnswersRemembered: a statement is recognized with the claim of each of its answers.
func TestAnswersRemembered(t *testing.T) {
	t.Parallel()
	rewriter, err := rewrite.New(rewrite.Options{
		Protected: []rewrite.Table{{Schema: "public", Name: "people"}}, Neighbours: []string{"d0", "d1"},
		Claims: rewrite.ClaimRules{Answer: true, Default: &rewrite.Claim{Epsilon: 0.5}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := recognize.New(rewriter, nil, func(string) func() { return func() {} }, func(any) {}, nil)
	const sql = "SELECT count(*) FROM people"
	for _, epsilon := range []float64{1, 2, 0, 1} {
		stated := capture.Stated{Epsilon: epsilon}
		for _, q := range []capture.Query{{SQL: sql, Stated: stated}, {SQL: sql, Then: []capture.Step{{SQL: sql, Stated: stated}}}} {
			want := max(epsilon, 0.5)
			if len(q.Then) > 0 {
				want += 0.5
			}
			if found := r.Recognize(q, inbox.Look{}); found.Query.Claim == nil || found.Query.Claim.Epsilon != want {
				t.Errorf("%+v: %s %+v, want %g", stated, found.Reason, found.Query.Claim, want)
			}
		}
	}
}
