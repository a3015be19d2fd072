package rewrite_test

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
)

// worlds holds two databases on one server: "shop", the engine's own, with the protected tables in their own schemas,
// and "shadow", which has only the neighbours d0 and d1. A rewrite on d0 must give in shadow, where nothing protected
// is in the original place, the answer of the client's text in shop while that holds the rows of d0.
type worlds struct {
	shop, shadow     *pgconn.PgConn
	inShopNow, inNow string // the scripts of the sessions' settings, as last run
	timeout          string // statement_timeout, so that one query does not take all the time; "" = 10s
}

// common is what both databases have.
const common = `
CREATE SCHEMA app; CREATE SCHEMA ref; CREATE SCHEMA dp; CREATE SCHEMA util;
CREATE TYPE public.user_kind AS ENUM ('low', 'high', 'users');
CREATE TYPE public.address AS (city text);
CREATE TABLE public.stores (id int, city text);
INSERT INTO public.stores SELECT i, 'c' || i FROM generate_series(1, 4) i;
CREATE TABLE ref.users (id int, spent int);
INSERT INTO ref.users SELECT i, i FROM generate_series(2, 3) i;
CREATE FUNCTION public.step(n bigint, v int, eps float8) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT n + 1';
CREATE AGGREGATE public.anon_count(int, float8) (SFUNC = public.step, STYPE = bigint, INITCOND = '0');
CREATE FUNCTION dp.noisy(x float8, epsilon float8, delta float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT x';
CREATE FUNCTION public.clip(x float8, lo float8, hi float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT least(hi, greatest(lo, x))';
CREATE FUNCTION util.bucket(x float8) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT floor(x / 10)::int';
`

// protectedTables creates and fills the protected tables; n is the number of users, which differs between neighbours.
func protectedTables(publicSchema, appSchema string, n int) string {
	return strings.NewReplacer("{p}", publicSchema, "{a}", appSchema, "{n}", fmt.Sprint(n)).Replace(`
CREATE TABLE {p}.users (id int, name text, income float8, kind public.user_kind, tags int[], addr public.address,
	created timestamptz, d date, user_id int);
INSERT INTO {p}.users SELECT i, 'u' || i, 1000.5 * i, (ARRAY['low', 'high', 'users'])[1 + i % 3]::public.user_kind, ARRAY[i, i + 1],
	ROW('city' || i)::public.address, '2020-01-01', '2020-01-01', i FROM generate_series(1, {n}) i;
CREATE TABLE {p}.transactions (id int, user_id int, store_id int, spent float8);
INSERT INTO {p}.transactions SELECT i, 1 + i % {n}, 1 + i % 4, i * 1.25 FROM generate_series(1, 8 * {n}) i;
CREATE TABLE {a}."Order Lines" ("Price" numeric, id int);
INSERT INTO {a}."Order Lines" SELECT i * 0.5, i FROM generate_series(1, {n}) i;
`)
}

const usersD0, usersD1 = 7, 6

func newWorlds(t *testing.T) *worlds {
	t.Helper()
	server := pgtest.Start(t)
	if err := server.CreateDatabase(t.Context(), "shop"); err != nil { // queries name it
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.DropDatabase(context.Background(), "shop"); err != nil {
			t.Error(err)
		}
	})
	w := &worlds{shop: connect(t, server.DSN("shop")), shadow: connect(t, pgtest.Database(t))}
	superuser(t, w.shop, "alice")
	superuser(t, w.shop, "ref")
	run(t, w.shop, common)
	run(t, w.shadow, common+"CREATE SCHEMA d0; CREATE SCHEMA d1;"+
		protectedTables("d0", "d0", usersD0)+protectedTables("d1", "d1", usersD1))
	return w
}

// fill loads the rows of one neighbour into shop.
func (w *worlds) fill(t *testing.T, users int) {
	t.Helper()
	run(t, w.shop, `RESET SESSION AUTHORIZATION; RESET ALL`)
	w.inShopNow = ""
	run(t, w.shop, `DROP TABLE IF EXISTS public.users, public.transactions, app."Order Lines"`)
	run(t, w.shop, protectedTables("public", "app", users))
}

// inShop runs the client's text in the client's session.
func (w *worlds) inShop(t *testing.T, q capture.Query) string {
	t.Helper()
	script := "RESET SESSION AUTHORIZATION; RESET ALL; SET statement_timeout = '" + stdcmp.Or(w.timeout, "10s") + "'; SET SESSION AUTHORIZATION " + q.User + ";"
	for _, name := range slices.Sorted(maps.Keys(q.Settings)) {
		script += set(name, q.Settings[name])
	}
	if script != w.inShopNow {
		run(t, w.shop, script)
		w.inShopNow = script
	}
	return answer(t, w.shop, q.SQL, q)
}

// inShadow runs a rewrite like a replay.
func (w *worlds) inShadow(t *testing.T, plan *rewrite.Plan, schema string, q capture.Query) string {
	t.Helper()
	sql, err := plan.For(schema)
	if err != nil {
		t.Fatalf("%v\n%s", err, q.SQL)
	}
	path := make([]string, len(plan.SearchPath))
	for i, s := range plan.SearchPath {
		path[i] = `"` + s + `"`
	}
	script := "RESET SESSION AUTHORIZATION; RESET ALL; SET statement_timeout = '" + stdcmp.Or(w.timeout, "10s") + "';"
	if strings.Contains(strings.ToLower(q.SQL), "current_user") { // which is the only difference, where it is shown
		script += "SET SESSION AUTHORIZATION " + q.User + ";"
	}
	script += set("search_path", strings.Join(path, ", "))
	for _, name := range slices.Sorted(maps.Keys(plan.Settings)) {
		script += set(name, plan.Settings[name])
	}
	if script != w.inNow {
		run(t, w.shadow, script)
		w.inNow = script
	}
	return answer(t, w.shadow, sql, q)
}

// set gives a setting its value as SHOW prints it.
func set(name, value string) string {
	return fmt.Sprintf("SELECT set_config('%s', '%s', false);", name, strings.ReplaceAll(value, "'", "''"))
}

// answer returns columns and rows as text, rows sorted, or the SQLSTATE.
func answer(t *testing.T, conn *pgconn.PgConn, sql string, q capture.Query) string {
	t.Helper()
	var values [][]byte
	var oids []uint32
	for _, p := range q.Params {
		values, oids = append(values, p.Value), append(oids, p.OID)
	}
	result := conn.ExecParams(t.Context(), sql, values, oids, nil, nil).Read()
	if result.Err != nil {
		var fault *pgconn.PgError
		if !errors.As(result.Err, &fault) {
			t.Fatalf("%v\n%s", result.Err, sql)
		}
		return "error " + fault.Code
	}
	var columns, rows []string
	for _, f := range result.FieldDescriptions {
		columns = append(columns, f.Name)
	}
	for _, row := range result.Rows {
		rows = append(rows, fmt.Sprintf("%q", row))
	}
	slices.Sort(rows)
	return strings.Join(columns, ",") + "\n" + strings.Join(rows, "\n")
}

// TestOracle runs the golden cases on a real server in both worlds and compares.
func TestOracle(t *testing.T) {
	t.Parallel()
	w := newWorlds(t)
	r := newRewriter(t, options())
	var cases []capture.Query
	for _, file := range goldenFiles(t) {
		cases = append(cases, goldenQuery(t, file))
	}
	for _, world := range []struct {
		schema string
		users  int
	}{{"d0", usersD0}, {"d1", usersD1}} {
		w.fill(t, world.users)
		if world.schema == "d0" {
			w.seesShadowing(t, r)
		}
		answered, failed, refused := 0, map[string]int{}, map[rewrite.Reason]int{}
		for _, q := range cases {
			plan, err := r.Analyze(q)
			if err != nil {
				var refusal *rewrite.UnsupportedError
				if !errors.As(err, &refusal) {
					t.Fatal(err)
				}
				refused[refusal.Reason]++
				continue
			}
			if slices.ContainsFunc(plan.Functions, func(f string) bool { return f == "random" }) {
				continue
			}
			if plan.Destination != "" && plan.Destination != "through a cursor" { // the statement writes
				q.SQL = plan.Text()
			}
			if strings.HasPrefix(q.SQL, "COPY") {
				w.copies(t, plan, world.schema, q)
				continue
			}
			want, got := w.fetched(t, q), w.inShadow(t, plan, world.schema, q)
			if want != got {
				sql, _ := plan.For(world.schema)
				t.Errorf("original: %s\nrewritten: %s\n%s", q.SQL, sql, cmp.Diff(want, got))
			}
			if strings.HasPrefix(want, "error") {
				failed[want]++
			} else {
				answered++
			}
		}
		t.Logf("%s: %d of %d queries answered alike; failed alike: %v; refused: %v", world.schema, answered, len(cases), failed, refused)
		if answered < 70 {
			t.Errorf("only %d queries were answered: the oracle sees too little", answered)
		}
	}
}

// copies compares the data of COPY (query) TO STDOUT with those of the same COPY of the query's rewrite.
func (w *worlds) copies(t *testing.T, plan *rewrite.Plan, schema string, q capture.Query) {
	t.Helper()
	sql, err := plan.For(schema)
	if err != nil {
		t.Fatal(err)
	}
	_, options, _ := strings.Cut(q.SQL, " TO STDOUT")
	var want, got strings.Builder
	w.inShopNow, w.inNow = "", ""
	run(t, w.shop, "RESET SESSION AUTHORIZATION; RESET ALL")
	run(t, w.shadow, "RESET ALL")
	if _, err := w.shop.CopyTo(t.Context(), &want, q.SQL); err != nil {
		t.Fatal(err)
	}
	if _, err := w.shadow.CopyTo(t.Context(), &got, "COPY ("+sql+"\n) TO STDOUT "+options); err != nil {
		t.Fatal(err)
	}
	if want.String() != got.String() || want.Len() == 0 {
		t.Errorf("original: %s\n%s", q.SQL, cmp.Diff(want.String(), got.String()))
	}
}

// seesShadowing tests the oracle: a query must give another answer if its CTE is mistaken for the table.
func (w *worlds) seesShadowing(t *testing.T, r *rewrite.Rewriter) {
	t.Helper()
	right := capture.Query{SQL: "WITH users AS (SELECT 1 AS id), a AS (SELECT * FROM users) SELECT count(*) FROM a, transactions", User: "alice"}
	wrong := right
	wrong.SQL = strings.Replace(right.SQL, "FROM users", "FROM public.users", 1)
	plan, err := r.Analyze(wrong)
	if err != nil {
		t.Fatal(err)
	}
	if w.inShop(t, right) == w.inShadow(t, plan, "d0", wrong) {
		t.Error("the oracle does not tell a CTE from the table that it shadows")
	}
}
