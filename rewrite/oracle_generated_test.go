package rewrite_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pg/catalog/read"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
)

// dependents creates objects over protected tables in schema {p} that only a catalog shows: a view, a partitioned
// table, functions.
const dependents = `
CREATE VIEW {p}.user_list AS SELECT id, income FROM {p}.users WHERE id > 1;
CREATE TABLE {p}.events (id int, d date) PARTITION BY RANGE (id);
CREATE TABLE {p}.events_1 PARTITION OF {p}.events FOR VALUES FROM (1) TO (4);
CREATE TABLE {p}.events_2 PARTITION OF {p}.events FOR VALUES FROM (4) TO (100);
INSERT INTO {p}.events SELECT i, '2020-01-01' FROM generate_series(1, {n}) i;
CREATE FUNCTION {p}.headcount() RETURNS int LANGUAGE sql STABLE AS 'SELECT count(*)::int FROM {p}.users';
CREATE FUNCTION {p}.older(n int) RETURNS int LANGUAGE sql STABLE BEGIN ATOMIC SELECT count(*)::int FROM {p}.users u WHERE u.id > n; END;
CREATE FUNCTION {p}.older(n numeric) RETURNS int LANGUAGE sql STABLE AS 'SELECT 10 * {p}.headcount()';
CREATE FUNCTION {p}.of_age(n int) RETURNS TABLE (id int, spent float8) LANGUAGE sql STABLE SET search_path = {p}
	AS 'WITH users AS (SELECT * FROM transactions) SELECT id, spent FROM users WHERE id <= n ORDER BY 1';
CREATE FUNCTION {p}.first_of(u {p}.users) RETURNS int LANGUAGE sql STABLE AS 'SELECT min(v.id) FROM {p}.users v WHERE v.id >= (u).id';
CREATE FUNCTION {p}.tally(n int, v int) RETURNS int LANGUAGE sql STABLE AS 'SELECT n + (SELECT count(*)::int FROM {p}.users u WHERE u.id = v)';
CREATE AGGREGATE {p}.tallied(int) (SFUNC = {p}.tally, STYPE = int, INITCOND = '0');
`

const biggest = "CREATE FUNCTION public.biggest(VARIADIC int[]) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT max(v) FROM unnest($1) v';"

// TestOracleGenerated runs generated queries in both worlds, with both catalogs, and compares. DPWATCH_ORACLE_QUERIES
// is the number of queries, DPWATCH_ORACLE_SEED the seed.
func TestOracleGenerated(t *testing.T) {
	t.Parallel()
	count, seed := longtest.Number(t, "DPWATCH_ORACLE_QUERIES", longtest.Count(500, 3000)), longtest.Number(t, "DPWATCH_ORACLE_SEED", 20260401)
	t.Logf("DPWATCH_ORACLE_QUERIES=%d DPWATCH_ORACLE_SEED=%d", count, seed)
	shopDSN, shadowDSN := pgtest.Database(t), pgtest.Database(t)
	w := &worlds{shop: connect(t, shopDSN), shadow: connect(t, shadowDSN)}
	superuser(t, w.shop, "alice")
	neighbours := map[string]int{"d0": usersD0, "d1": usersD1}
	run(t, w.shadow, common+biggest+"CREATE SCHEMA d0; CREATE SCHEMA d1;")
	for schema, n := range neighbours {
		run(t, w.shadow, protectedTables(schema, schema, n)+inWorld(schema, n))
	}
	w.refill(t, usersD0, "")
	r, database := generatedRewriter(t, shopDSN, shadowDSN)
	c := w.compare(t, r, generated(int(count), seed, database), func(schema string) { w.refill(t, neighbours[schema], "") })
	if 100*c.rewritten < 90*c.queries || 100*c.answered < 2*75*c.queries || 100*c.apart < 35*c.queries {
		t.Error("want 90 of 100 queries rewritten, 75 answered and 35 that tell the neighbours apart: the oracle sees too little")
	}
}

// counts are the results of a comparison. answered is counted on two neighbours.
type counts struct{ queries, rewritten, answered, apart int }

// compare rewrites queries and runs them in both worlds, on two neighbours; refill loads the rows of one into the
// engine.
func (w *worlds) compare(t *testing.T, r *rewrite.Rewriter, queries []capture.Query, refill func(schema string)) counts {
	t.Helper()
	first := make([]string, len(queries))
	failed, slow := map[string]int{}, 0
	plans, refused := make([]*rewrite.Plan, len(queries)), map[rewrite.Reason]int{}
	for i, q := range queries {
		plan, err := r.Analyze(q)
		var refusal *rewrite.UnsupportedError
		if errors.As(err, &refusal) {
			refused[refusal.Reason]++
		}
		plans[i] = plan
	}
	c := counts{queries: len(queries), rewritten: len(queries) - sum(refused)}
	for _, schema := range []string{"d0", "d1"} {
		refill(schema)
		for i, q := range queries {
			if plans[i] == nil {
				continue
			}
			want, got := w.fetched(t, q), w.inShadow(t, plans[i], schema, q)
			switch {
			case want == queryCanceled || got == queryCanceled:
				slow++
				continue
			case want != got:
				sql, _ := plans[i].For(schema)
				t.Errorf("path %v\noriginal: %s\nrewritten: %s\n%s", plans[i].SearchPath, q.SQL, sql, cmp.Diff(want, got))
			case strings.HasPrefix(want, "error"):
				failed[want]++
			default:
				c.answered++
			}
			if schema == "d0" {
				first[i] = want
			} else if first[i] != want {
				c.apart++
			}
		}
	}
	t.Logf("%d of %d rewritten, refused %v; answered alike %d on two neighbours, failed alike %v, too slow %d; %d tell the neighbours apart",
		c.rewritten, c.queries, refused, c.answered, failed, slow, c.apart)
	return c
}

// queryCanceled is the answer of a query that exceeded statement_timeout.
const queryCanceled = "error 57014"

func sum(counts map[rewrite.Reason]int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}

// inWorld is the script of the dependents for one schema.
func inWorld(schema string, n int) string {
	return strings.NewReplacer("{p}", schema, "{n}", strconv.Itoa(n)).Replace(dependents)
}

// refill rebuilds the engine's database, with the rows of one neighbour and further objects.
func (w *worlds) refill(t *testing.T, users int, more string) {
	t.Helper()
	run(t, w.shop, "RESET SESSION AUTHORIZATION; RESET ALL; DROP SCHEMA IF EXISTS app, ref, dp, util, kids, public CASCADE; CREATE SCHEMA public;")
	run(t, w.shop, common+biggest+protectedTables("public", "app", users)+inWorld("public", users)+more)
	w.inShopNow = ""
}

// generatedRewriter reads both catalogs and also returns the name of the engine's database.
func generatedRewriter(t *testing.T, shopDSN, shadowDSN string) (*rewrite.Rewriter, string) {
	t.Helper()
	o := options()
	var err error
	if o.Source, err = read.Catalog(t.Context(), shopDSN, time.Minute); err != nil {
		t.Fatal(err)
	}
	if o.Shadow, err = read.Catalog(t.Context(), shadowDSN, time.Minute); err != nil {
		t.Fatal(err)
	}
	o.Protected = append(slices.Clone(o.Protected), table("public", "events"))
	o.Others, o.Database, o.Neighbours = nil, o.Source.Database, []string{"d0", "d1"}
	o.AllowFunctions = append(o.AllowFunctions, "headcount", "older", "of_age", "first_of", "tallied", "biggest")
	return newRewriter(t, o), o.Database
}
