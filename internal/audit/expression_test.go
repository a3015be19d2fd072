package audit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
)

// expressionRig is a rig without trials, with noisy as a DP function whose second argument is the epsilon.
func expressionRig(t *testing.T, evaluate func(recognize.Evaluate) recognize.Evaluate) *rig {
	t.Helper()
	return newRig(t, func(o *audit.Options) {
		var err error
		if o.Rewriter, err = rewrite.New(rewrite.Options{
			Protected: []rewrite.Table{{Schema: "public", Name: "people"}},
			Claims:    rewrite.ClaimRules{Signatures: []rewrite.Signature{{Function: "noisy", Epsilon: 2}}},
		}); err != nil {
			t.Fatal(err)
		}
		player, err := replay.New(replay.Options{DSN: pgtest.Database(t), StatementTimeout: time.Minute, ConnectTimeout: time.Minute, MaxRows: 10, MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		o.MaxAudits = 100
		o.Evaluate = evaluate(func(ctx context.Context, q rewrite.Question) (v rewrite.Value, err error) {
			v.Number, v.Fault, err = player.Evaluate(ctx, q.SQL)
			return v, err
		})
	})
}

// TestClaimExpressions: a claim that is an expression of constants and parameters has the value that PostgreSQL gives
// it.
func TestClaimExpressions(t *testing.T) {
	t.Parallel()
	r := expressionRig(t, func(e recognize.Evaluate) recognize.Evaluate { return e })
	float8 := capture.Param{OID: 701, Value: []byte("0.5")}
	integer := capture.Param{OID: 23, Value: []byte{0, 0, 0, 5}, Format: 1}
	untyped := capture.Param{Value: []byte("0.5")}
	for i, c := range []struct {
		sql     string
		params  []capture.Param
		epsilon float64 // NaN = refused
	}{
		{sql: "SELECT noisy(count(*), 0.5/2) FROM people", epsilon: 0.25},
		{sql: "SELECT noisy(count(*), ln(3.0)) FROM people", epsilon: math.Log(3)},
		{sql: "SELECT noisy(count(*), (SELECT 0.5)) FROM people", epsilon: 0.5},
		{sql: "WITH p AS (SELECT 0.5 AS eps, 2 AS k) SELECT noisy(count(*), p.eps / p.k) FROM people, p GROUP BY p.eps, p.k", epsilon: 0.25},
		{sql: "WITH p(eps) AS (VALUES (0.75)) SELECT noisy(count(*), (SELECT eps FROM p)) FROM people", epsilon: 0.75},
		{sql: "SELECT noisy(count(*), max(eps)) FROM people, (SELECT 0.5 AS eps) p", epsilon: math.NaN()},
		{sql: "SELECT noisy(id, eps) FROM people CROSS JOIN (VALUES (0.5)) AS p (eps)", epsilon: 0.5},
		{sql: "SELECT noisy(count(*), $1::float8 / 2) FROM people", params: []capture.Param{float8}, epsilon: 0.25},
		{sql: "SELECT noisy(count(*), $1 / 2) FROM people", params: []capture.Param{integer}, epsilon: 2},
		{sql: "SELECT noisy(count(*), $1::numeric / 2) FROM people", params: []capture.Param{untyped}, epsilon: 0.25},
		{sql: "SELECT noisy(count(*), least(1, coalesce(0.25, 2), 2^3, -(-0.5))) FROM people", epsilon: 0.25},
		{sql: "SELECT noisy(count(*), 1/2) FROM people", epsilon: 0},
		{sql: "SELECT noisy(count(*), 2.6::int) FROM people", epsilon: 3},
		{sql: "SELECT noisy(count(*), 1/0) FROM people", epsilon: math.NaN()},
		{sql: "SELECT noisy(count(*), ln(0.5)) FROM people", epsilon: math.NaN()},
		{sql: "SELECT noisy(count(*), 1e308::float8 * 10) FROM people", epsilon: math.NaN()},
		{sql: "SELECT noisy(count(*), random()) FROM people", epsilon: math.NaN()},
		{sql: "SELECT noisy(count(*), grp / 2) FROM people GROUP BY grp", epsilon: math.NaN()},
		{sql: "SELECT noisy(count(*), (SELECT count(*) FROM people) / 80.0) FROM people", epsilon: math.NaN()},
		{sql: "SELECT noisy(count(*), p.eps) FROM people LEFT JOIN (SELECT 0.5 AS eps) p ON id = 1 GROUP BY p.eps", epsilon: math.NaN()},
		{sql: "WITH p AS (SELECT 0.5 AS eps UNION ALL SELECT 5) SELECT noisy(count(*), (SELECT p.eps FROM p)) FROM people", epsilon: math.NaN()},
		{sql: "WITH p AS (SELECT 0.5 AS eps) SELECT noisy(n, eps) FROM (SELECT id AS n, 3.0 AS eps FROM people) q, (SELECT 1 AS one FROM p) r", epsilon: math.NaN()},
		{sql: "SELECT noisy(count(*), length('0.5') / 2.0) FROM people", epsilon: math.NaN()},
	} {
		q := query(c.sql + fmt.Sprintf(" /* %d */", i))
		q.Params = c.params
		before := r.Status()
		r.Submit(q)
		s := r.Status()
		switch {
		case math.IsNaN(c.epsilon):
			if s.Skipped["bad_claim"] != before.Skipped["bad_claim"]+1 {
				t.Errorf("%s: skipped %v, %d audits; want a bad claim", c.sql, s.Skipped, len(s.Audits))
			}
		case len(s.Audits) != len(before.Audits)+1:
			t.Errorf("%s: no audit, skipped %v", c.sql, s.Skipped)
		default:
			if e := s.Audits[len(s.Audits)-1]; math.Abs(float64(e.Report.Claimed.Epsilon)-c.epsilon) > 1e-12 || e.Report.Claimed.Source != "argument" {
				t.Errorf("%s: claim %+v, want %g", c.sql, e.Report.Claimed, c.epsilon)
			}
		}
	}
}

// TestExpressionsAreRemembered: each expression is evaluated once, by constants, functions and operators of pg_catalog
// alone. While the shadow database is away, a statement is skipped and not forgotten.
func TestExpressionsAreRemembered(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	var mu sync.Mutex
	var seen []string
	r := expressionRig(t, func(e recognize.Evaluate) recognize.Evaluate {
		return func(ctx context.Context, q rewrite.Question) (rewrite.Value, error) {
			if away.Load() {
				return rewrite.Value{}, errors.New("away")
			}
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, q.SQL)
			return e(ctx, q)
		}
	})
	away.Store(true)
	const sql = "SELECT noisy(count(*), $1::float8 / 2 + sqrt(4)) FROM people"
	q := query(sql)
	q.Params = []capture.Param{{OID: 701, Value: []byte("0.5")}}
	r.Submit(q)
	if s := r.Status(); s.Skipped["claim_not_evaluated"] != 1 || len(s.Audits) != 0 {
		t.Errorf("skipped %v, %d audits", s.Skipped, len(s.Audits))
	}
	away.Store(false)
	r.Submit(q)
	q.SQL += " WHERE id > 1"
	r.Submit(q)
	const want = "((CAST(CAST('0.5' AS pg_catalog.float8) AS pg_catalog.float8) OPERATOR(pg_catalog./) 2) OPERATOR(pg_catalog.+) pg_catalog.sqrt(4))"
	if s := r.Status(); len(s.Audits) != 2 || len(seen) != 1 || seen[0] != want {
		t.Errorf("%d audits, evaluated %s", len(s.Audits), strings.Join(seen, "; "))
	}
}
