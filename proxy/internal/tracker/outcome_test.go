package tracker_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// TestOutcomes: a statement is captured with how it ended if the server got past parsing and analysis.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	after := func(s *script) *script { return s.ready('I').run1("SELECT 2", "SELECT 2", 'I') }
	portal := func() *script {
		return newScript().parse("", "SELECT f(x) FROM t").bind("", "").execute("").sync().parsed().back('2', "")
	}
	for name, c := range map[string]struct {
		script *script
		want   []string
	}{
		"error of a row":                {after(newScript().query("SELECT f(x) FROM t").back('T', "").failWith("2201E")), []string{"SELECT f(x) FROM t | failed 2201E"}},
		"error of a row, unknown state": {after(newScript().query("SELECT f(x) FROM t").back('T', "").fail()), []string{"SELECT f(x) FROM t | failed"}},
		"second statement": {
			after(newScript().query("SELECT 1; SELECT f(x) FROM t; SELECT 3").back('T', "").complete("SELECT 1").back('T', "").failWith("22012")),
			[]string{"SELECT 1 | SELECT 1", "SELECT f(x) FROM t | failed 22012"},
		},
		"without rows":          {after(newScript().query("INSERT INTO t SELECT f(x) FROM t").failWith("P0001")), []string{"INSERT INTO t SELECT f(x) FROM t | failed P0001"}},
		"syntax error":          {after(newScript().query("SELEC").failAt("42601")), nil},
		"literal of a type":     {after(newScript().query("SELECT int 'a'").failAtCut("22P02")), nil},
		"too deep":              {after(newScript().query("SELECT 1+1").failWith("54001")), []string{"SELECT 1+1 | failed 54001"}},
		"unknown table":         {after(newScript().query("SELECT x FROM nowhere").failAt("42P01")), nil},
		"unknown table, second": {after(newScript().query("SELECT 1; SELECT x FROM nowhere").complete("SELECT 1").failAt("42P01")), []string{"SELECT 1 | SELECT 1"}},
		"analysis at run time":  {after(newScript().query("CREATE TABLE s AS SELECT current_setting(f(x)::text) FROM t").failWith("42704")), []string{"CREATE TABLE s AS SELECT current_setting(f(x)::text) FROM t | failed 42704"}},
		"analysis at run time, second": {
			after(newScript().query("SELECT 1; INSERT INTO s SELECT f(x)").complete("SELECT 1").failWith("42704")), []string{"SELECT 1 | SELECT 1", "INSERT INTO s SELECT f(x) | failed 42704"},
		},
		"syntax of a text at run time":      {after(newScript().query("DO $$ BEGIN EXECUTE f(); END $$").failWith("42601")), []string{"DO $$ BEGIN EXECUTE f(); END $$ | failed 42601"}},
		"place within a function":           {after(newScript().query("SELECT f()").back('T', "").failAt("42601")), []string{"SELECT f() | failed 42601"}},
		"not in UTF-8":                      {after(newScript().query("SELECT '\xff'").failWith("22021")), nil},
		"not in UTF-8 at run time":          {after(newScript().query("INSERT INTO s SELECT 'ü' || f()").failWith("22021")), []string{"INSERT INTO s SELECT 'ü' || f() | failed 22021"}},
		"unknown state":                     {after(newScript().query("SELECT 1").fail()), []string{"SELECT 1 | failed"}},
		"message before the state":          {after(newScript().query("SELECT 1").back('E', "SERROR\x00M22012\x00")), []string{"SELECT 1 | failed"}},
		"raised as of a failed transaction": {after(portal().failWith("25P02")), []string{"SELECT f(x) FROM t | failed 25P02"}},
		"within a failed transaction": {
			newScript().run1("BEGIN", "BEGIN", 'T').query("SELECT f(x)").back('T', "").failWith("22012").ready('E').query("SELECT f(y)").failWith("25P02").ready('E').
				parse("", "SELECT f(z)").sync().failWith("25P02").ready('E').run1("ROLLBACK", "ROLLBACK", 'I').run1("SELECT 2", "SELECT 2", 'I'),
			[]string{"BEGIN | BEGIN", "SELECT f(x) | failed 22012", "ROLLBACK | ROLLBACK"},
		},
		"EXECUTE of nothing": {after(newScript().query("EXECUTE p").failWith("26000")), nil},
		"EXECUTE, raised as if of nothing": {
			after(newScript().run1("PREPARE p AS SELECT f()", "PREPARE", 'I').query("EXECUTE p").failWith("26000")),
			[]string{"PREPARE p AS SELECT f() | PREPARE", "SELECT f() | failed 26000"},
		},
		"FETCH of nothing":            {after(newScript().query("FETCH c").failWith("34000")), nil},
		"undefined within a function": {after(newScript().query("SELECT f()").back('T', "").failWith("42P01")), []string{"SELECT f() | failed 42P01"}},
		"cancelled":                   {after(newScript().query("SELECT f(x) FROM t").failWith("57014")), []string{"SELECT f(x) FROM t | cancelled 57014"}},
		"copy out":                    {after(newScript().query("COPY (SELECT 1) TO STDOUT").back('H', "").failWith("22012")), []string{"COPY (SELECT 1) TO STDOUT | failed 22012"}},
		"extended":                    {after(portal().failWith("2201E")), []string{"SELECT f(x) FROM t | failed 2201E"}},
		"extended, too deep":          {after(portal().failWith("54001")), []string{"SELECT f(x) FROM t | failed 54001"}},
		"Parse":                       {after(newScript().parse("", "SELEC").bind("", "").execute("").sync().failWith("42601")), nil},
		"Bind": {
			after(newScript().parse("", "SELECT 1/$1").bind("", "", "0").execute("").execute("").parse("", "SELECT 0").bind("", "").execute("").sync().parsed().failWith("22012")),
			[]string{"SELECT 1/$1 | failed 22012"},
		},
		"Bind, not executed": {
			after(newScript().parse("", "SELECT 1/$1").bind("p", "", "0").execute("").sync().parsed().failWith("22012")), []string{"EXPLAIN SELECT 1/$1 | failed 22012"},
		},
		"bound, not executed": {
			after(newScript().parse("", "SELECT f(1)").bind("", "").sync().parsed().back('2', "")), []string{"EXPLAIN SELECT f(1) | "},
		},
		"bound again": {
			after(newScript().parse("s", "SELECT f(1)").bind("", "s").bind("", "s").execute("").sync().parsed().back('2', "").bound("SELECT 1")),
			[]string{"EXPLAIN SELECT f(1) | ", "SELECT f(1) | SELECT 1"},
		},
		"bound, what is not planned": {after(newScript().parse("", "CREATE TABLE s AS SELECT f()").bind("", "").sync().parsed().back('2', "")), nil},
		"suspended, then failed":     {after(newScript().parse("", "SELECT 1").bind("", "").execute("").execute("").sync().parsed().back('2', "").back('s', "").failWith("22012")), []string{"SELECT 1 | suspended"}},
		"EXECUTE": {
			after(newScript().run1("PREPARE p (int) AS SELECT $1", "PREPARE", 'I').query("EXECUTE p(1)").failWith("22012")),
			[]string{"PREPARE p (int) AS SELECT $1 | PREPARE", "SELECT $1 | failed 22012"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.script.wantSQL(t, append(c.want, "SELECT 2 | SELECT 2")...)
		})
	}
}

// TestConnectionLost: what was in progress when the connection ended is captured if the server had begun to answer it.
func TestConnectionLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script *script
		want   []string
	}{
		"rows":               {newScript().query("SELECT 1; SELECT 2; SELECT 3").back('T', "").complete("SELECT 1").back('T', ""), []string{"SELECT 1 | SELECT 1", "SELECT 2 | connection lost"}},
		"between statements": {newScript().query("SELECT 1; SELECT 2").back('T', "").complete("SELECT 1"), []string{"SELECT 1 | SELECT 1"}},
		"no answer":          {newScript().query("SELECT 1"), nil},
		"extended":           {newScript().parse("", "SELECT 1").bind("", "").execute("").parsed().back('2', ""), []string{"SELECT 1 | connection lost"}},
		"not bound":          {newScript().parse("", "SELECT 1").bind("", "").execute("").parsed(), nil},
		"server ends":        {newScript().query("SELECT 1").back('T', "").failWith("57P01"), []string{"SELECT 1 | connection lost 57P01"}},
		"idle":               {newScript().run1("SELECT 1", "SELECT 1", 'I'), []string{"SELECT 1 | SELECT 1"}},
		"in a gap":           {newScript().query("SELECT 1").back('T', "").gap(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r result
			tr := tracker.New(c.script.config(&r))
			tr.Feed(join(c.script.client), join(c.script.server))
			tr.End()
			if diff := cmp.Diff(c.want, r.sqls()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func join(records [][]byte) []byte {
	var b []byte
	for _, r := range records {
		b = append(b, r...)
	}
	return b
}
