package tracker_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

func aboutUsers(sql string) bool { return strings.Contains(sql, "users") }

func (s *script) feed(maybeProtected func(string) bool) result {
	var r result
	cfg := s.config(&r)
	cfg.MaybeProtected = maybeProtected
	tr := tracker.New(cfg)
	for _, b := range s.server[:3] { // from newScript
		tr.Feed(nil, b)
	}
	for _, b := range s.client {
		tr.Feed(b, nil)
	}
	for _, b := range s.server[3:] {
		tr.Feed(nil, b)
	}
	r.Off = tr.Off()
	return r
}

func TestMaybeProtected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		script  *script
		want    []string
		skipped uint64
	}{
		{"simple", newScript().run1("SELECT 1", "SELECT 1", 'I').run1("SELECT users", "SELECT 1", 'I'), []string{"SELECT users"}, 1},
		{
			"several in one", newScript().query("SELECT 1; SELECT users; SELECT 2").complete("SELECT 1").complete("SELECT 1").complete("SELECT 1").ready('I'),
			[]string{"SELECT users"},
			2,
		},
		{
			"none of several", newScript().query("SELECT 1; SELECT 2").complete("SELECT 1").complete("SELECT 1").ready('I').run1("SELECT users", "SELECT 1", 'I'),
			[]string{"SELECT users"},
			2,
		},
		{
			"prepared", newScript().parse("a", "SELECT $1").parse("b", "SELECT users").
				bind("", "a", "x").execute("").bind("", "b").execute("").bind("p", "a", "y").execute("p").execute("p").sync().
				parsed().parsed().bound("SELECT 1").bound("SELECT 1").bound("SELECT 1").complete("SELECT 0").ready('I'),
			[]string{"SELECT users"},
			2,
		},
		{
			"a unprotected name parsed anew", newScript().parse("a", "SELECT 1").sync().close('S', "a").parse("a", "SELECT users").bind("", "a").execute("").sync().
				parsed().ready('I').back('3', "").parsed().bound("SELECT 1").ready('I'),
			[]string{"SELECT users"},
			0,
		},
		{
			"an error in it", newScript().query("SELECT 1; SELECT 2").complete("SELECT 1").fail().ready('I').run1("SELECT users", "SELECT 1", 'I'),
			[]string{"SELECT users"},
			2,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := c.script.feed(aboutUsers)
			var got []string
			for _, q := range r.Queries {
				got = append(got, q.SQL)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || r.Off != tracker.On {
				t.Errorf("off %d, %s", r.Off, diff)
			}
			if n := r.Counts.Skipped[tracker.Unprotected]; n != c.skipped {
				t.Errorf("%d counted as unprotected, want %d", n, c.skipped)
			}
		})
	}
}

// TestUnprotectedFollowsSettings: a SET is followed although it names no table, also as part of a longer text.
func TestUnprotectedFollowsSettings(t *testing.T) {
	t.Parallel()
	s := newScript().run1("SET a.b = 'x'", "SET", 'I').
		query("SELECT 1; SET a.c = 'y'").complete("SELECT 1").complete("SET").ready('I').
		parse("", "SET a.d = 'z'").bind("", "").execute("").sync().parsed().bound("SET").ready('I').
		run1("SELECT set_config('a.e', 'z', false)", "SELECT 1", 'I').
		run1("SELECT users", "SELECT 1", 'I')
	r := s.feed(aboutUsers)
	if len(r.Queries) != 1 {
		t.Fatalf("captured %+v", r.Queries)
	}
	q := r.Queries[0]
	if q.Settings["a.b"] != "x" || q.Settings["a.c"] != "y" || q.Settings["a.d"] != "z" {
		t.Errorf("settings %v, doubt %+v", q.Settings, q.Doubt)
	}
}

// TestDefinitions: after a change of definitions, in its transaction and until the catalogs are read again, statements are
// marked, and a prepared statement that was unprotected is checked again.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	type seen struct {
		SQL        string
		Definition capture.Definition
	}
	for _, c := range []struct {
		name   string
		script *script
		want   []seen
		unread bool
	}{
		{"no change", newScript().run1("DROP VIEW v", "DROP VIEW", 'I').run1("SELECT users", "SELECT 1", 'I'), []seen{{"SELECT users", capture.Read}}, false},
		{
			"at once", newScript().run1("CREATE OR REPLACE VIEW v AS SELECT 1", "CREATE VIEW", 'I').run1("SELECT v", "SELECT 1", 'I'),
			[]seen{{"CREATE OR REPLACE VIEW v AS SELECT 1", capture.Uncommitted}, {"SELECT v", capture.Unread}},
			true,
		},
		{
			"in a transaction", newScript().run1("BEGIN", "BEGIN", 'T').run1("ALTER FUNCTION f() RENAME TO g", "ALTER FUNCTION", 'T').run1("SELECT g()", "SELECT 1", 'T').
				run1("ROLLBACK", "ROLLBACK", 'I').run1("SELECT g()", "SELECT 1", 'I'),
			[]seen{{"ALTER FUNCTION f() RENAME TO g", capture.Uncommitted}, {"SELECT g()", capture.Uncommitted}, {"ROLLBACK", capture.Uncommitted}, {"SELECT g()", capture.Unread}},
			true,
		},
		{
			"a new table", newScript().run1("BEGIN", "BEGIN", 'T').run1("CREATE TABLE t (a int)", "CREATE TABLE", 'T').run1("SELECT t", "SELECT 1", 'T').run1("COMMIT", "COMMIT", 'I'),
			[]seen{{"CREATE TABLE t (a int)", capture.Unread}, {"SELECT t", capture.Unread}, {"COMMIT", capture.Unread}},
			true,
		},
		{"a temporary table", newScript().run1("CREATE TEMP TABLE tt (a int)", "CREATE TABLE", 'I').run1("SELECT 2", "SELECT 1", 'I').run1("SELECT tt", "SELECT 1", 'I'), nil, false},
		{
			"prepared before", newScript().parse("s", "SELECT v", 23).bind("", "s", "1").execute("").sync().parsed().bound("SELECT 1").ready('I').
				run1("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE FUNCTION", 'I').
				bind("", "s", "2").execute("").sync().bound("SELECT 1").ready('I'),
			[]seen{{"CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", capture.Uncommitted}, {"SELECT v", capture.Unread}},
			true,
		},
		{
			"hidden by a temporary view", newScript().run1("CREATE TEMP VIEW v AS SELECT users", "CREATE VIEW", 'I').run1("SELECT v", "SELECT 1", 'I'),
			[]seen{{"CREATE TEMP VIEW v AS SELECT users", 0}, {"SELECT v", 0}},
			false,
		},
		{"DO", newScript().run1("DO $$ BEGIN CREATE VIEW x AS SELECT 1; END $$", "DO", 'I').run1("SELECT v", "SELECT 1", 'I'), []seen{{"DO $$ BEGIN CREATE VIEW x AS SELECT 1; END $$", 0}, {"SELECT v", capture.Unread}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var d capture.Definitions
			var r result
			cfg := c.script.config(&r)
			cfg.Definitions = &d
			cfg.MaybeProtected = func(sql string) bool {
				defines := strings.HasPrefix(sql, "CREATE") || strings.HasPrefix(sql, "ALTER") || strings.HasPrefix(sql, "DO")
				return d.Unread() || aboutUsers(sql) || defines && !strings.HasPrefix(sql, "CREATE TEMP")
			}
			tr := tracker.New(cfg)
			for _, b := range c.script.server[:3] { // from newScript
				tr.Feed(nil, b)
			}
			for _, b := range c.script.client {
				tr.Feed(b, nil)
			}
			for _, b := range c.script.server[3:] {
				tr.Feed(nil, b)
			}
			tr.End()
			var got []seen
			for _, q := range r.Queries {
				got = append(got, seen{q.SQL, q.Definition})
			}
			if diff := cmp.Diff(c.want, got); diff != "" || tr.Off() != tracker.On || d.Unread() != c.unread {
				t.Errorf("unread %t, off %d\n%s", d.Unread(), tr.Off(), diff)
			}
		})
	}
}

// TestFilterCommutes: capturing only interesting statements gives the same as capturing all and filtering them.
func TestFilterCommutes(t *testing.T) {
	t.Parallel()
	texts := []string{
		"SELECT 1", "SELECT users", "SET a.b = 'u'", "SET a.b = 'users'", "BEGIN", "COMMIT", "SELECT $1", "SELECT $1 FROM users",
		"SELECT set_config('x.y', 'z', true)", "DEALLOCATE s", "DISCARD ALL", "INSERT INTO other VALUES (1)", "/* users */ SELECT 1",
	}
	rng := rand.New(rand.NewPCG(3, 5))
	captured := 0
	for range 300 {
		s := newScript()
		block := byte('I')
		for range 1 + rng.IntN(20) {
			sql := texts[rng.IntN(len(texts))]
			switch sql {
			case "BEGIN":
				block = 'T'
			case "COMMIT":
				block = 'I'
			}
			tag := "SELECT " + strconv.Itoa(rng.IntN(9))
			switch rng.IntN(4) {
			case 0:
				s.run1(sql, tag, block)
			case 1:
				s.query(sql + "; SELECT users; SELECT 3").complete(tag).complete(tag).complete(tag).ready(block)
			case 2:
				s.parse("s", sql, 25).bind("", "s", "v").execute("").sync().parsed().bound(tag).ready(block)
			default:
				s.parse("", sql).bind("p", "", "v").bind("", "s", "w").execute("p").execute("").sync().
					parsed().back('2', "").bound(tag).complete(tag).ready(block)
			}
		}
		all, some := s.feed(nil), s.feed(aboutUsers)
		var want []capture.Query
		for _, q := range all.Queries {
			if aboutUsers(q.SQL) {
				want = append(want, q)
			}
		}
		captured += len(want)
		if diff := cmp.Diff(want, some.Queries, cmpopts.EquateEmpty()); diff != "" || all.Off != some.Off {
			t.Fatalf("off %d and %d\n%s", all.Off, some.Off, diff)
		}
		if n := some.Counts.Skipped[tracker.Unprotected] + some.Counts.Captured; n != all.Counts.Captured {
			t.Fatalf("%d statements, %d without the filter", n, all.Counts.Captured)
		}
	}
	if captured < 300 {
		t.Errorf("only %d queries captured: the test shows little", captured)
	}
}

// TestUnprotectedAllocatesNothing: unprotected statements allocate no memory.
func TestUnprotectedAllocatesNothing(t *testing.T) {
	const sql = "SELECT abalance FROM pgbench_accounts WHERE aid = $1"
	for name, s := range map[string]*script{
		"simple":   (&script{}).run1("SELECT abalance FROM pgbench_accounts WHERE aid = 4711", "SELECT 1", 'I'),
		"extended": (&script{}).parse("", sql).bind("", "", "4711").execute("").sync().parsed().bound("SELECT 1").ready('I'),
		"prepared": (&script{}).bind("", "s", "4711").execute("").sync().bound("SELECT 1").ready('I'),
	} {
		t.Run(name, func(t *testing.T) {
			var client, server []byte
			for _, r := range s.client {
				client = append(client, r...)
			}
			for _, r := range s.server {
				server = append(server, r...)
			}
			var r result
			cfg := s.config(&r)
			cfg.MaybeProtected = aboutUsers
			tr := tracker.New(cfg)
			start := newScript().parse("s", sql, 23).sync().parsed().ready('I')
			for _, r := range start.server {
				tr.Feed(nil, r)
			}
			for _, r := range start.client {
				tr.Feed(r, nil)
			}
			before := r.Counts.Skipped[tracker.Unprotected]
			if n := testing.AllocsPerRun(200, func() { tr.Feed(client, server) }); n > 0 {
				t.Errorf("%v allocations for a transaction", n)
			}
			if n := r.Counts.Skipped[tracker.Unprotected] - before; n < 200 || tr.Off() != tracker.On {
				t.Errorf("%d statements counted, off %d", n, tr.Off())
			}
		})
	}
}
