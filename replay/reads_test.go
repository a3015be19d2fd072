package replay_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pgtemp"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// readsSchema is a shadow database with originals, functions, views, partitions and a table of the engine. %s is a copy.
const readsSchema = `CREATE TABLE public.people (id int PRIMARY KEY, grp text, income float8);
	INSERT INTO public.people SELECT i, 'a', i FROM generate_series(1, 1000) i;
	CREATE TABLE public.visits (id int, day int) PARTITION BY RANGE (day);
	CREATE TABLE public.visits_old PARTITION OF public.visits FOR VALUES FROM (0) TO (10);
	CREATE TABLE public.settings AS SELECT 1.0::float8 AS scale, 'people'::text AS name;
	CREATE MATERIALIZED VIEW public.summary AS SELECT count(*) AS n FROM public.people;
	CREATE SCHEMA ref; CREATE TABLE ref.cities AS SELECT 1 AS id; CREATE TABLE ref.secret AS SELECT 1 AS id;
	CREATE FUNCTION public.hidden() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN EXECUTE 'SELECT count(*) FROM pub' || 'lic.peo' || 'ple' INTO n; RETURN n; END $$;
	CREATE FUNCTION public.named() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN EXECUTE (SELECT 'SELECT count(*) FROM public.' || name FROM public.settings) INTO n; RETURN n; END $$;
	CREATE FUNCTION public.atomic() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT count(*) FROM public.visits_old; END;
	CREATE FUNCTION public.failing() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN PERFORM public.hidden(); RAISE division_by_zero; END $$;
	CREATE FUNCTION public.scale() RETURNS float8 LANGUAGE sql AS 'SELECT scale FROM public.settings';
	CREATE TABLE public.daily AS SELECT count(*) AS n FROM public.people; CREATE SEQUENCE public.people_no; CREATE TABLE ref.parted (id int) PARTITION BY RANGE (id);
	CREATE TABLE ref.part PARTITION OF ref.parted FOR VALUES FROM (0) TO (10); SELECT lo_from_bytea(4711, '1000'); CREATE MATERIALIZED VIEW ref.stored AS SELECT 1 AS n;
	CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw; CREATE FOREIGN TABLE ref.far (x text) SERVER files OPTIONS (filename '/dev/null');
	CREATE TABLE ref.owned AS SELECT 1 AS n; ALTER EXTENSION file_fdw ADD TABLE ref.owned;
	CREATE FUNCTION public.inlined() RETURNS SETOF bigint LANGUAGE sql STABLE AS 'SELECT n FROM public.daily';
	CREATE FUNCTION public.numbered() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN EXECUTE 'SELECT last_value FROM public.peo' || 'ple_no' INTO n; RETURN n; END $$;
	CREATE FUNCTION public.caught() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE m bigint; BEGIN SELECT n INTO m FROM public.daily; RAISE division_by_zero; EXCEPTION WHEN others THEN RETURN m; END $$;`

const readsCopies = `ALTER TABLE %s.people ADD CONSTRAINT income CHECK (income IS NULL OR income > 0);
	INSERT INTO %s.people SELECT i, 'a', i FROM generate_series(100, 3000) i;
	CREATE TABLE %s.visits (id int, day int) PARTITION BY RANGE (day);
	CREATE TABLE %s.visits_old PARTITION OF %s.visits FOR VALUES FROM (0) TO (10);
	CREATE TABLE ref.%s_visits PARTITION OF %s.visits FOR VALUES FROM (10) TO (20);
	CREATE TABLE %s.empty (id int); CREATE SEQUENCE %s.own_no;
	CREATE VIEW %s.rich AS SELECT * FROM %s.people WHERE income > 10;
	CREATE FUNCTION %s.total() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM %s.people';
	CREATE FUNCTION %s.looped() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE n bigint := 0; r record; BEGIN FOR r IN SELECT * FROM %s.people LOOP n := n + 1; END LOOP; RETURN n; END $$;
	CREATE FUNCTION %s.dynamic() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN EXECUTE 'SELECT count(*) FROM %s.' || 'people' INTO n; RETURN n; END $$;`

// clientSettings change the form of results and the meaning of strings.
var clientSettings = map[string]string{"timezone": "Asia/Tokyo", "datestyle": "German", "standard_conforming_strings": "off", "backslash_quote": "on"}

// TestReads: what trials read is exact for each way to read a table, and independent of what other sessions read.
func TestReads(t *testing.T) {
	t.Parallel()
	servers := map[string]string{"": shadow(t)}
	if dir := os.Getenv("DPWATCH_PG18_BINDIR"); dir != "" {
		newest, err := pgtemp.Start(t.Context(), pgtemp.Options{BinDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = newest.Stop() })
		dsn := newest.DSN("postgres")
		fillShadow(t, dsn)
		servers[" on PostgreSQL 18"] = dsn
	}
	for where, dsn := range servers {
		pgtest.Exec(t, dsn, readsSchema, strings.ReplaceAll(readsCopies, "%s", "d0"), strings.ReplaceAll(readsCopies, "%s", "d1"), "VACUUM ANALYZE")
		opt := options(dsn)
		opt.Copies, opt.Originals, opt.Public = []string{"d0", "d1"}, []string{"public"}, []string{"ref.cities"}
		p := player(t, opt)
		people := [][]string{{"d0.people"}, {"d1.people"}}
		for _, tc := range []struct {
			name, sql string
			s         replay.Statement
			tables    [][]string
			beside    string // what trials read besides
			unsure    string
			fault     string // of the ReadsError
			rounds    int    // that run before
		}{
			{name: "sequential scan", sql: "SELECT count(*) FROM %s.people", tables: people},
			{name: "index-only scan", sql: "SELECT count(id) FROM %s.people WHERE id < 50", s: replay.Statement{Settings: map[string]string{"enable_seqscan": "off"}}, tables: people},
			{name: "bitmap scan", sql: "SELECT count(grp) FROM %s.people WHERE id < 50", s: replay.Statement{Settings: map[string]string{"enable_seqscan": "off", "enable_indexscan": "off"}}, tables: people},
			{name: "row identifiers", sql: "SELECT count(*) FROM %s.people WHERE ctid = '(0,1)'", tables: people},
			{name: "sample", sql: "SELECT count(*) FROM %s.people TABLESAMPLE SYSTEM (100)", tables: people},
			{name: "parameters", sql: "SELECT count(*) FROM %s.people WHERE id < $1", s: replay.Statement{Named: true, Params: []capture.Param{{OID: 23, Value: []byte("50")}}}, tables: people},
			{name: "simple protocol", sql: "SELECT count(*) FROM %s.people", s: replay.Statement{Simple: true}, tables: people},
			{
				name: "parallel", sql: "SELECT sum(income) FROM %s.people", tables: people,
				s: replay.Statement{Settings: map[string]string{"parallel_setup_cost": "0", "parallel_tuple_cost": "0", "min_parallel_table_scan_size": "0", "parallel_leader_participation": "off"}},
			},
			{
				name: "hoisted", sql: "SELECT count(*) + random() AS n FROM %s.people WHERE income > 10", tables: people, rounds: 200,
				s: replay.Statement{Hoist: replay.ForceHoisting()},
			},
			{name: "settings of the client", sql: "SELECT count(*) FROM %s.people", tables: people, s: replay.Statement{Settings: clientSettings}},
			{name: "empty table", sql: "SELECT count(*) FROM %s.empty", tables: [][]string{{"d0.empty"}, {"d1.empty"}}},
			{name: "partitions", sql: "SELECT count(*) FROM %s.visits", tables: [][]string{{"d0.visits_old", "ref.d0_visits"}, {"d1.visits_old", "ref.d1_visits"}}},
			{name: "view", sql: "SELECT count(*) FROM %s.rich", tables: people},
			{name: "SQL function", sql: "SELECT %s.total()", tables: people},
			{name: "PL/pgSQL function", sql: "SELECT %s.looped()", tables: people},
			{name: "dynamic SQL", sql: "SELECT %s.dynamic()", tables: people},
			{name: "public table", sql: "SELECT count(*) FROM %s.people, ref.cities", tables: [][]string{{"d0.people", "ref.cities"}, {"d1.people", "ref.cities"}}},
			{name: "table of the engine", sql: "SELECT scale() * count(*) FROM %s.people", tables: [][]string{{"d0.people", "public.settings"}, {"d1.people", "public.settings"}}, beside: "public.settings"},
			{name: "table of another schema", sql: "SELECT count(*) FROM %s.people, ref.secret", tables: [][]string{{"d0.people", "ref.secret"}, {"d1.people", "ref.secret"}}, beside: "ref.secret"},
			{name: "table of an extension", sql: "SELECT count(*) FROM %s.people, ref.owned", tables: [][]string{{"d0.people", "ref.owned"}, {"d1.people", "ref.owned"}}},
			{name: "inlined function", sql: "SELECT count(*) FROM %s.people, inlined()", tables: [][]string{{"d0.people", "public.daily"}, {"d1.people", "public.daily"}}, beside: "public.daily"},
			{name: "table, in a part that is rolled back", sql: "SELECT count(*) + caught() FROM %s.people", tables: [][]string{{"d0.people", "public.daily"}, {"d1.people", "public.daily"}}, beside: "public.daily"},
			{name: "table that is not scanned", sql: "SELECT count(*) FROM %s.people WHERE EXISTS (SELECT FROM ref.secret WHERE id = $1 AND false) IS NOT NULL", s: replay.Statement{Params: []capture.Param{{OID: 23, Value: []byte("1")}}}, tables: people, beside: "ref.secret"},
			{name: "partition", sql: "SELECT count(*) FROM %s.people, ref.parted", tables: [][]string{{"d0.people", "ref.part"}, {"d1.people", "ref.part"}}, beside: "ref.part"},
			{name: "materialized view", sql: "SELECT count(*) FROM %s.people, ref.stored", tables: [][]string{{"d0.people", "ref.stored"}, {"d1.people", "ref.stored"}}, beside: "ref.stored"},
			{name: "foreign table", sql: "SELECT count(*) FROM %s.people WHERE (SELECT count(*) FROM ref.far) >= 0", tables: people, beside: "the foreign table ref.far"},
			{name: "number sequence", sql: "SELECT count(*) FROM %s.people, public.people_no", tables: people, beside: "the sequence public.people_no"},
			{name: "sequence by a text", sql: "SELECT count(*) + numbered() FROM %s.people", tables: people, beside: "the sequence public.people_no"},
			{name: "sequence of the copies", sql: "SELECT count(*) FROM %s.people, %s.own_no", tables: people},
			{name: "large object", sql: "SELECT count(*) FROM %s.people WHERE lo_get(4711) IS NOT NULL", tables: people, beside: "the system catalog pg_catalog.pg_largeobject"},
			{name: "row counts of the planner", sql: "SELECT count(*) FROM %s.people WHERE (SELECT sum(reltuples) FROM pg_class) > 0", tables: people, beside: "the system catalog pg_catalog.pg_class"},
			{name: "statistics", sql: "SELECT count(*) FROM %s.people WHERE (SELECT count(*) FROM pg_stats) > 0", tables: people, beside: "the system catalog pg_catalog.pg_statistic"},
			{name: "definitions", sql: "SELECT count(*) FROM %s.people WHERE (SELECT count(*) FROM pg_attribute) > 0", tables: people},
			{name: "advisory lock", sql: "SELECT count(*) FROM %s.people WHERE pg_advisory_xact_lock(1) IS NOT NULL", tables: people, beside: "an advisory lock"},
			{name: "judged beforehand", sql: "SELECT count(*) FROM %s.people", s: replay.Statement{Beside: []string{"function f reads files"}}, tables: people, beside: "function f reads files"},
			{name: "failing", sql: "SELECT 1 / 0 FROM %s.people", tables: [][]string{nil, nil}, unsure: "the trials on D0 fail before they read a copy; the trials on D1 fail before they read a copy"},
			{name: "failing late", sql: "SELECT id / 0 FROM %s.people", tables: people},
			{name: "sequence", sql: "SELECT 1", tables: people, s: replay.Statement{
				Separate: &replay.Separation{},
				Then:     []replay.Step{{Worlds: []string{"SELECT count(*) FROM d0.people", "SELECT count(*) FROM d1.people"}}},
			}},
			{name: "original, name concatenated", sql: "SELECT hidden() + count(*) FROM %s.people", fault: "on D0 (schema d0) read public.people, the original of a copy"},
			{name: "original, name in a table", sql: "SELECT named() + count(*) FROM %s.people", fault: "read public.people, the original of a copy"},
			{name: "partition of an original", sql: "SELECT atomic() + count(*) FROM %s.people", fault: "read public.visits_old, the original of a copy"},
			{name: "materialized view of an original", sql: "SELECT n FROM public.summary, (SELECT count(*) FROM %s.people) p", fault: "read public.summary, the original of a copy"},
			{name: "original, and an error", sql: "SELECT failing() + count(*) FROM %s.people", fault: "read public.people, the original of a copy"},
			{name: "another world", sql: "SELECT (SELECT count(*) FROM d0.people) + count(*) FROM %s.people", fault: "on D1 (schema d1) read d0.people, a copy of another world"},
			{name: "no copy", sql: "SELECT count(*), '%s' FROM ref.cities", fault: "on D0 (schema d0) read ref.cities alone"},
			{name: "no table", sql: "SELECT 1, '%s'", fault: "read no table"},
		} {
			t.Run(tc.name+where, func(t *testing.T) {
				tc.s.Worlds = []string{strings.ReplaceAll(tc.sql, "%s", "d0"), strings.ReplaceAll(tc.sql, "%s", "d1")}
				run, err := p.Start(tc.s, 1)
				if err != nil {
					t.Fatal(err)
				}
				defer run.Close()
				if _, err := run.Rounds(t.Context(), tc.rounds); err != nil {
					t.Fatal(err)
				}
				if tc.s.Hoist != nil && !tc.s.Hoist.Report().Hoisted {
					t.Errorf("not hoisted: %+v", tc.s.Hoist.Report())
				}
				reads, err := run.Reads(t.Context())
				var fault *replay.ReadsError
				if tc.fault != "" {
					if !errors.As(err, &fault) || !strings.Contains(err.Error(), tc.fault) {
						t.Errorf("%+v, %v; want %q", reads, err, tc.fault)
					}
					return
				}
				if err != nil || reads.Unverified != tc.unsure {
					t.Errorf("unverified %q, %v; want %q", reads.Unverified, err, tc.unsure)
				}
				if beside := strings.Join(reads.Beside, "; "); !strings.Contains(beside, tc.beside) || (beside != "") != (tc.beside != "") {
					t.Errorf("beside %q; want %q", beside, tc.beside)
				}
				if diff := cmp.Diff(tc.tables, reads.Tables); diff != "" {
					t.Errorf("tables (-want +got)\n%s", diff)
				}
			})
		}
	}
}

// TestReadsNotCounted: where the reads cannot be counted, the reason is given.
func TestReadsNotCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ setUp, sql, want string }{
		"no counters":    {"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET track_counts = off', current_database()); END $$", "SELECT count(*) FROM %s.people", "the server counts no reads (track_counts is off)"},
		"long answer":    {"", "SELECT repeat('x', 3000000) FROM %s.people", "an answer is longer than shadow.max_result, and what its trial read could not be counted"},
		"foreign tables": {"CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw; CREATE FOREIGN TABLE d1.far (x text) SERVER files OPTIONS (filename '/dev/null'); CREATE VIEW d0.far AS SELECT id::text AS x FROM d0.people", "SELECT * FROM %s.far", "d1.far is a foreign table, and what the other server reads is not counted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := shadow(t)
			pgtest.Exec(t, dsn, c.setUp)
			opt := options(dsn)
			opt.Copies = []string{"d0", "d1"}
			run, err := player(t, opt).Start(replay.Statement{Worlds: []string{strings.ReplaceAll(c.sql, "%s", "d0"), strings.ReplaceAll(c.sql, "%s", "d1")}}, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			if reads, err := run.Reads(t.Context()); err != nil || reads.Unverified != c.want {
				t.Errorf("%q, %v; want %q", reads.Unverified, err, c.want)
			}
		})
	}
}
