package read_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// noisyViews are views over people in schema {s} that call DP functions.
const noisyViews = `
	CREATE FUNCTION {s}.dp_heads(epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT public.dp_count(count(*), epsilon) FROM {s}.people';
	CREATE VIEW {s}.fresh AS SELECT public.dp_count(count(*), 0.5) AS n FROM {s}.people;
	CREATE VIEW {s}.twice AS WITH c AS (SELECT n FROM {s}.fresh) SELECT a.n + b.n + c.n + c2.n AS n FROM {s}.fresh a, {s}.fresh b, c, c AS c2;
	CREATE VIEW {s}.heads AS SELECT {s}.dp_heads(0.25) AS n;
	CREATE VIEW {s}.computed AS SELECT public.dp_count(count(*), random()) AS n FROM {s}.people;
`

// TestOracleNoise: a query on a view that calls a DP function is audited on the copies of the view, with the claim of
// its calls, or refused with what to do. A materialized view holds answers: only its REFRESH is audited.
func TestOracleNoise(t *testing.T) {
	t.Parallel()
	const public = `CREATE TABLE public.stores (id int);
		CREATE FUNCTION public.dp_count(n bigint, epsilon float8) RETURNS float8 LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN n + random() / epsilon; END';`
	in := func(s string) string { return strings.ReplaceAll(noisyViews, "{s}", s) }
	source := contents(t, database(t, relationsOf("public", 7)+public+in("public")+`
		CREATE VIEW public.alone AS SELECT public.dp_count(count(*), 0.5) AS n FROM public.people;
		CREATE VIEW public.alone_by_call AS SELECT public.dp_heads(0.5) AS n;
		CREATE VIEW public.alone_by_view AS SELECT n FROM public.alone_by_call;
		CREATE TABLE public.unlisted (id int); CREATE VIEW public.of_unlisted AS SELECT public.dp_count(count(*), 0.5) AS n FROM public.unlisted;
		CREATE VIEW public.shops AS SELECT public.dp_count(count(*), 0.5) AS n FROM public.stores;
		CREATE MATERIALIZED VIEW public.stored AS SELECT public.dp_count(count(*), 0.5) AS n FROM public.people;
		CREATE MATERIALIZED VIEW public.stored_view AS SELECT n FROM public.fresh;
		CREATE VIEW public.of_stored AS SELECT s.n + v.n AS n FROM public.stored s, public.stored_view v;`))
	r, err := rewrite.New(rewrite.Options{
		Protected: []rewrite.Table{{Schema: "public", Name: "people"}}, Public: []rewrite.Table{{Schema: "public", Name: "stores"}},
		Source: source, Shadow: contents(t, database(t, public+relationsOf("d0", 7)+relationsOf("d1", 6)+in("d0")+in("d1"))), Neighbours: []string{"d0", "d1"},
		Claims: rewrite.ClaimRules{Signatures: []rewrite.Signature{{Function: "dp_count", Epsilon: 2}, {Function: "dp_heads", Epsilon: 1}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]struct {
		epsilon float64
		reason  rewrite.Reason
		detail  string
	}{
		"SELECT * FROM fresh":                                  {epsilon: 0.5},
		"CREATE TABLE t AS SELECT * FROM fresh":                {epsilon: 0.5},
		"SELECT a.n + b.n FROM fresh a, public.fresh b":        {epsilon: 1},
		"SELECT n + dp_count(1, 0.125) FROM fresh":             {epsilon: 0.625},
		"SELECT * FROM twice":                                  {epsilon: 1.5}, // a CTE runs once
		"SELECT * FROM heads":                                  {epsilon: 0.25},
		"REFRESH MATERIALIZED VIEW stored":                     {epsilon: 0.5},
		"REFRESH MATERIALIZED VIEW CONCURRENTLY public.stored": {epsilon: 0.5},
		"REFRESH MATERIALIZED VIEW stored_view":                {epsilon: 0.5},
		"REFRESH MATERIALIZED VIEW stored WITH NO DATA":        {reason: reasons.NotSelect},
		"REFRESH MATERIALIZED VIEW fresh":                      {reason: reasons.Wrapper},
		"SELECT * FROM computed":                               {reason: reasons.BadClaim, detail: "not a constant"},
		"SELECT * FROM alone":                                  {reason: reasons.NoCopy, detail: "relation public.alone calls a DP function, and schema d0 has no copy of it"},
		"SELECT * FROM alone_by_call":                          {reason: reasons.NoCopy, detail: "calls a DP function, and schema d0 has no copy of it"},
		"SELECT * FROM alone_by_view":                          {reason: reasons.NoCopy, detail: "calls a DP function, and schema d0 has no copy of it"},
		"SELECT * FROM shops":                                  {reason: reasons.NoProtectedTable},
		"SELECT * FROM of_unlisted":                            {reason: reasons.UnknownTable},
		"SELECT * FROM stored":                                 {reason: reasons.NoProtectedTable},
		"SELECT * FROM of_stored":                              {reason: reasons.NoProtectedTable},
	} {
		plan, err := r.Analyze(capture.Query{SQL: sql, Database: source.Database})
		var refused *rewrite.UnsupportedError
		switch {
		case want.reason == "" && err != nil:
			t.Errorf("%s: %v", sql, err)
		case want.reason == "" && (plan.Claim == nil || plan.Claim.Epsilon != want.epsilon || plan.DPCalls == 0):
			t.Errorf("%s: claim %+v, %d DP calls; want %g", sql, plan.Claim, plan.DPCalls, want.epsilon)
		case want.reason == "":
			if text, err := plan.For("d1"); err != nil || !strings.Contains(text, `"d1".`) {
				t.Errorf("%s: %q, %v", sql, text, err)
			}
		case !errors.As(err, &refused) || refused.Reason != want.reason || !strings.Contains(refused.Detail, want.detail):
			t.Errorf("%s: %v, want %s: %s", sql, err, want.reason, want.detail)
		}
	}
	known, _ := r.Names()
	names := known.Reaching
	found := map[string]bool{}
	for _, name := range names {
		found[name] = true
	}
	for _, name := range []string{"fresh", "twice", "heads", "alone", "alone_by_call", "alone_by_view", "stored"} {
		if !found[name] {
			t.Errorf("statements that name only %s are not captured: %v", name, names)
		}
	}
	views := map[string]string{}
	for _, v := range r.NoisyViews() {
		views[v.String()] = v.Fault
	}
	const missing = "calls a DP function, and schema d0 has no copy of it"
	if diff := cmp.Diff(map[string]string{
		"public.fresh": "", "public.twice": "", "public.heads": "", "public.computed": "",
		"public.alone": missing, "public.alone_by_call": missing, "public.alone_by_view": missing,
	}, views); diff != "" {
		t.Error(diff)
	}
}
