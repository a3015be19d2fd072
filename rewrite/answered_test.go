package rewrite_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// TestAnsweredClaim: what the engine states in its answer takes the place of arguments, rules and the default, as the
// answer to a question does, which is not asked then. An answer that states nothing leaves the claim to these.
func TestAnsweredClaim(t *testing.T) {
	t.Parallel()
	stated := func(epsilon, delta float64) *rewrite.Claim {
		return &rewrite.Claim{Epsilon: epsilon, Delta: delta, Source: "engine", Rule: "claims.answer"}
	}
	byDefault := &rewrite.Claim{Epsilon: 2, Source: "default"}
	const argument = "SELECT anon_count(id, 0.5) FROM users"
	for name, c := range map[string]struct {
		sql    string
		stated capture.Stated
		off    bool
		want   *rewrite.Claim
		detail string
	}{
		"epsilon and delta":        {sql: argument, stated: capture.Stated{Epsilon: 3, Delta: 1e-6}, want: stated(3, 1e-6)},
		"below the default":        {sql: "SELECT count(*) FROM users", stated: capture.Stated{Epsilon: 0.25}, want: stated(0.25, 0)},
		"nothing":                  {sql: "SELECT count(*) FROM users", want: byDefault},
		"nothing about a function": {sql: argument, want: &rewrite.Claim{Epsilon: 0.5, Source: "argument", Rule: "anon_count"}},
		"not read":                 {sql: "SELECT count(*) FROM users", stated: capture.Stated{Epsilon: 3}, off: true, want: byDefault},
		"a comment lowers it":      {sql: "SELECT count(*) FROM users /*dp_epsilon='0.1'*/", stated: capture.Stated{Epsilon: 3}, want: &rewrite.Claim{Epsilon: 0.1, Source: "comment"}},
		"a comment does not raise": {sql: "SELECT count(*) FROM users /*dp_epsilon='9'*/", stated: capture.Stated{Epsilon: 3}, want: stated(3, 0)},
		"no claim":                 {sql: argument, stated: capture.Stated{Epsilon: 1001}, detail: "is no claim"},
		"a delta alone":            {sql: argument, stated: capture.Stated{Delta: 0.5}, detail: "has a delta and no epsilon"},
		"a rho that is none":       {sql: argument, stated: capture.Stated{Rho: 1e9}, detail: "has a rho that is no claim"},
		"two units":                {sql: argument, stated: capture.Stated{Rho: 1, Epsilon: 1}, detail: "more than one"},
		"two curves":               {sql: argument, stated: capture.Stated{Rho: 1, Mu: 1}, detail: "more than one"},
		"unclear":                  {sql: argument, stated: capture.Stated{Unclear: true}, detail: "it is not known"},
	} {
		for _, ask := range []bool{false, true} {
			o := options()
			o.Claims.Answer, o.Claims.Ask, o.Neighbours = !c.off, ask, []string{"d0", "d1"}
			o.Claims.Default = &rewrite.Claim{Epsilon: 2}
			plan, err := newRewriter(t, o).Analyze(capture.Query{SQL: c.sql, Database: "shop", Stated: c.stated})
			var refusal *rewrite.UnsupportedError
			asks := errors.As(err, &refusal) && refusal.Question() != nil
			switch {
			case asks != (ask && (c.off || c.stated.None())):
				t.Errorf("%s: asked %t", name, asks)
			case asks:
			case c.detail != "":
				if err == nil || reasonOf(t, err) != reasons.BadClaim || !strings.Contains(err.Error(), c.detail) {
					t.Errorf("%s: %v, want %q", name, err, c.detail)
				}
			case err != nil:
				t.Errorf("%s: %v", name, err)
			default:
				if diff := cmp.Diff(c.want, plan.Claim); diff != "" {
					t.Errorf("%s: (-want +got)\n%s", name, diff)
				}
			}
		}
	}
}

// TestAnsweredSequence: the statements of a sequence have the claims of their own answers, and a curve is one. The same
// statement with another claim of the engine is another audit.
func TestAnsweredSequence(t *testing.T) {
	t.Parallel()
	o := options()
	o.Claims.Answer = true
	r := newRewriter(t, o)
	const sql = "SELECT count(*) FROM users"
	analyze := func(first, then capture.Stated) *rewrite.Plan {
		t.Helper()
		plan, err := r.Analyze(capture.Query{SQL: sql, Database: "shop", Stated: first, Then: []capture.Step{{SQL: sql, Stated: then}}})
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	sum := analyze(capture.Stated{Epsilon: 1}, capture.Stated{Epsilon: 0.5})
	if c := sum.Claim; c.Epsilon != 1.5 || c.Source != rewrite.SourceSum {
		t.Errorf("claim %+v", c)
	}
	if other := analyze(capture.Stated{Epsilon: 1}, capture.Stated{Epsilon: 1}); other.Key == sum.Key {
		t.Error("the same key with another claim")
	}
	if c := analyze(capture.Stated{Rho: 0.1}, capture.Stated{Rho: 0.2}).Claim; !strings.HasPrefix(string(c.Curve), "rho=0.3") {
		t.Errorf("claim %+v", c)
	}
}
