package audit_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pg/catalog/read"
	"github.com/dpwatch/dpwatch/internal/pg/engine"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
)

// catalogRig is a rig with catalogs, of which tests decide when they are read.
type catalogRig struct {
	*rig
	shop   string      // the engine's database
	frozen atomic.Bool // the catalogs are not read
	lost   atomic.Bool // the catalog of shop cannot be read
	count  atomic.Int32
}

func newCatalogRig(t *testing.T, change func(*audit.Options)) *catalogRig {
	t.Helper()
	r := &catalogRig{shop: pgtest.Database(t)}
	pgtest.Exec(t, r.shop, `CREATE TABLE people (id int, grp int);
		CREATE FUNCTION noisy(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT value + scale * random()'`)
	var reader *engine.Reader
	r.rig = newRig(t, func(o *audit.Options) {
		o.RenewEvery, o.EpochEvery = 10*time.Millisecond, 10*time.Millisecond
		o.Renew = func(ctx context.Context) (*rewrite.Rewriter, error) {
			for r.frozen.Load() && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			opt := rewrite.Options{
				Protected: []rewrite.Table{{Schema: "public", Name: "people"}}, AllowFunctions: []string{"noisy"}, Neighbours: []string{"d0", "d1"},
				Claims: rewrite.ClaimRules{TrustComment: true}, Database: "shop",
			}
			var err error
			if opt.Shadow, err = read.Catalog(ctx, r.dsn, time.Minute); err != nil {
				return nil, err
			}
			if !r.lost.Load() {
				opt.Source, err = read.Catalog(ctx, r.shop, time.Minute)
			} else {
				err = errors.New("the catalog of the engine cannot be read")
			}
			rewriter, fault := rewrite.New(opt)
			r.count.Add(1)
			return rewriter, errors.Join(err, fault)
		}
		o.Engine = func(ctx context.Context) (*engine.Snapshot, error) { return reader.Read(ctx) }
		if change != nil {
			change(o)
		}
	})
	reader = engine.NewReader(r.dsn, time.Minute, bodyLimits)
	t.Cleanup(reader.Close)
	return r
}

// freeze waits until the catalogs are read, and then no reading ends before thaw.
func (r *catalogRig) freeze(t *testing.T) {
	t.Helper()
	before := r.count.Load()
	eventually.True(t, "the catalogs are read", func() bool { return r.count.Load() > before+1 })
	r.frozen.Store(true)
	time.Sleep(20 * time.Millisecond) // a reading that has begun may end
}

// both runs statements in the engine's database and in the shadow database.
func (r *catalogRig) both(t *testing.T, sql string) {
	t.Helper()
	pgtest.Exec(t, r.shop, sql)
	pgtest.Exec(t, r.dsn, sql)
}

// one waits until the only audit has a property.
func (r *catalogRig) one(t *testing.T, what string, has func(view.Entry) bool) view.Entry {
	t.Helper()
	var e view.Entry
	eventually.True(t, what, func() bool {
		s := r.Status()
		if len(s.Audits) != 1 {
			return false
		}
		e = s.Audits[0]
		return has(e)
	}, func() any { return r.Status() })
	return e
}

const executed = "CREATE FUNCTION f(%) RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN 1; END'"

// TestCallOfNewFunction: a call that the catalogs cannot explain is not replayed as a column. It waits for
// catalogs that are newer than the query; of a row it may be one, and the audit waits.
func TestCallOfNewFunction(t *testing.T) {
	t.Parallel()
	r := newCatalogRig(t, nil)
	r.run(t)
	r.freeze(t)
	r.both(t, strings.Replace(executed, "%", "text", 1))
	r.both(t, strings.Replace(executed, "%", "anyelement", 1))
	r.Submit(query("SELECT f('a'), noisy(count(*), 4) FROM people /*dp_epsilon='0.5'*/"))
	r.Submit(query("SELECT f(grp), noisy(count(*), 4) FROM people GROUP BY 1 /*dp_epsilon='0.5'*/"))
	if s := r.Status(); len(s.Skipped) != 0 || len(s.Audits) != 0 || s.Coverage.Unexamined != 2 {
		t.Fatalf("skipped %v, %d audits, coverage %+v", s.Skipped, len(s.Audits), s.Coverage)
	}
	r.Submit(query("SELECT f(p), noisy(count(*), 4) FROM people p GROUP BY 1 /*dp_epsilon='0.5'*/"))
	r.one(t, "the audit waits", func(e view.Entry) bool {
		return e.State == view.Waiting && strings.Contains(e.Trouble, "the catalogs are read again first")
	})
	r.frozen.Store(false)
	e := r.one(t, "the audit ends", func(e view.Entry) bool { return e.State == view.Decided })
	if e.Report.Verdict != analysis.Inconclusive || e.Report.Trials.D0 != 0 || !strings.Contains(e.Trouble, "function f (volatile, plpgsql)") {
		t.Errorf("%s, %d trials, %q", e.Report.Verdict, e.Report.Trials.D0, e.Trouble)
	}
	eventually.True(t, "the others are refused", func() bool { return r.Status().Skipped["unknown_function"] == 2 }, func() any { return r.Status() })
}

// TestColumnAsCall: a column in the notation of a call is audited after the catalogs have been read.
func TestColumnAsCall(t *testing.T) {
	t.Parallel()
	r := newCatalogRig(t, nil)
	r.run(t)
	r.freeze(t)
	r.Submit(query("SELECT grp(p), noisy(count(*), 4) FROM people p WHERE id < 40 GROUP BY 1 /*dp_epsilon='0.5'*/"))
	r.one(t, "the audit waits", func(e view.Entry) bool { return e.State == view.Waiting })
	r.frozen.Store(false)
	if e := r.one(t, "the audit is decided", func(e view.Entry) bool { return e.State == view.Decided }); e.Report.Trials.D0 == 0 {
		t.Errorf("no trials: %q", e.Trouble)
	}
}

// TestEngineNewerThanTheCatalogs: after a change of the shadow database's functions no trial runs before the catalogs
// have been read.
func TestEngineNewerThanTheCatalogs(t *testing.T) {
	t.Parallel()
	r := newCatalogRig(t, func(o *audit.Options) { o.Analysis.MaxTrials, o.TurnTrials = 1_000_000, 1 })
	r.run(t)
	r.Submit(query("SELECT noisy(count(*), 40) FROM people /*dp_epsilon='0.5'*/"))
	r.one(t, "trials", func(e view.Entry) bool { return e.Report.Trials.D0 > 0 })
	r.freeze(t)
	pgtest.Exec(t, r.dsn, "CREATE FUNCTION unrelated() RETURNS int LANGUAGE sql AS 'SELECT 1'")
	e := r.one(t, "the audit waits", func(e view.Entry) bool { return strings.Contains(e.Trouble, "the catalogs are read again first") })
	r.frozen.Store(false)
	r.one(t, "the audit goes on", func(now view.Entry) bool { return now.Trouble == "" && now.Report.Trials.D0 > e.Report.Trials.D0 })
}

// TestRunningAuditIsJudgedAgain: an audit ends when the catalogs no longer allow its query to be replayed. While a
// catalog cannot be read, it waits instead.
func TestRunningAuditIsJudgedAgain(t *testing.T) {
	t.Parallel()
	r := newCatalogRig(t, func(o *audit.Options) { o.Analysis.MaxTrials, o.TurnTrials = 1_000_000, 1 })
	r.run(t)
	r.Submit(query("SELECT noisy(count(*), 40) FROM people WHERE grp(people) < 9 /*dp_epsilon='0.5'*/"))
	r.one(t, "trials", func(e view.Entry) bool { return e.Report.Trials.D0 > 0 })
	r.lost.Store(true) // without it, grp may be any function
	r.one(t, "the audit waits", func(e view.Entry) bool {
		return e.State == view.Waiting && strings.Contains(e.Trouble, "unknown_function")
	})
	r.lost.Store(false)
	after := r.one(t, "the audit goes on", func(e view.Entry) bool { return e.State == view.Running && e.Trouble == "" })
	r.one(t, "further trials", func(e view.Entry) bool { return e.Report.Trials.D0 > after.Report.Trials.D0 })
	pgtest.Exec(t, r.shop, "CREATE OR REPLACE FUNCTION noisy(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT value + count(*) FROM people'")
	e := r.one(t, "the audit ends", func(e view.Entry) bool { return e.State == view.Decided })
	if e.Report.Verdict != analysis.Inconclusive || !strings.Contains(e.Trouble, "no_copy: function noisy") {
		t.Errorf("%s %q", e.Report.Verdict, e.Trouble)
	}
}
