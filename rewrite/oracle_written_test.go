package rewrite_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// writtenCommon is what both databases have besides; what a trap calls is there, and not declared.
const writtenCommon = `
CREATE DOMAIN public.tally_no AS int CHECK (VALUE > -1000000);
CREATE DOMAIN public.rel_name AS regclass;
CREATE OPERATOR public.@@? (RIGHTARG = text, FUNCTION = pg_catalog.to_regclass);
CREATE FUNCTION public.name_of(text) RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN $1::regclass::text; END';
`

// writtenTables are, over the tables of schema {p}, a view of a quoted name and a child in schema {k}.
const writtenTables = `
CREATE VIEW {p}."Named Users" AS SELECT u.id, u.name, u AS whole FROM {p}.users u WHERE u.id <> 2;
CREATE TABLE {k}."Minor Users" () INHERITS ({p}.users);
INSERT INTO {k}."Minor Users" (id, name, user_id) VALUES (100, 'minor', 1);
`

// TestOracleWritten is TestOracleGenerated with another generator, in which one expression in about 200 must be
// refused. DPWATCH_ORACLE_WRITTEN is the number of queries, DPWATCH_ORACLE_SEED the seed.
func TestOracleWritten(t *testing.T) {
	t.Parallel()
	count, seed := longtest.Number(t, "DPWATCH_ORACLE_WRITTEN", longtest.Count(50, 200)), longtest.Number(t, "DPWATCH_ORACLE_SEED", 20260402)
	t.Logf("DPWATCH_ORACLE_WRITTEN=%d DPWATCH_ORACLE_SEED=%d", count, seed)
	shopDSN, shadowDSN := pgtest.Database(t), pgtest.Database(t)
	w := &worlds{shop: connect(t, shopDSN), shadow: connect(t, shadowDSN), timeout: "1s"}
	superuser(t, w.shop, "alice")
	in := func(schema, kids string) string {
		return strings.NewReplacer("{p}", schema, "{k}", kids).Replace(writtenTables)
	}
	neighbours := map[string]int{"d0": usersD0, "d1": usersD1}
	run(t, w.shadow, common+biggest+writtenCommon+"CREATE SCHEMA d0; CREATE SCHEMA d1;")
	for schema, n := range neighbours {
		run(t, w.shadow, protectedTables(schema, schema, n)+inWorld(schema, n)+in(schema, schema))
	}
	refill := func(schema string) {
		w.refill(t, neighbours[schema], writtenCommon+"CREATE SCHEMA kids;"+in("public", "kids"))
	}
	refill("d0")
	r, database := generatedRewriter(t, shopDSN, shadowDSN)
	c := w.compare(t, r, written(int(count), seed, database, 200), refill)
	if 100*c.rewritten < 70*c.queries || 100*c.answered < 2*45*c.queries || 100*c.apart < 20*c.queries {
		t.Error("want 70 of 100 queries rewritten, 45 answered and 20 that tell the neighbours apart: the oracle sees too little")
	}
}
