package tracker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// TestSettings runs statements, each written "SQL", "SQL -> tag", or "SQL -> !" for an error, and checks the settings
// of a final SELECT. A prefix "T:" or the like is the status of ReadyForQuery; the default is I.
func TestSettings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		statements []string
		want       string // as settingsText writes it
	}{
		{"startup", nil, "dp.start=1"},
		{"set", []string{"SET dp.epsilon = '0.5'"}, "dp.epsilon=0.5 dp.start=1"},
		{"set over startup, then reset", []string{"SET dp.start = 2", "SET a = 1", "RESET dp.start", "RESET a"}, "dp.start=1"},
		{"failed set", []string{"SET a = 1 -> !"}, "dp.start=1"},
		{"reset all", []string{"SET a = 1", "SET dp.start = 2", "SET ROLE r", "RESET ALL"}, "dp.start=1 role=r"},
		{"discard all", []string{"SET a = 1", "SET ROLE r", "DISCARD ALL"}, "dp.start=1"},
		{"session authorization resets role", []string{"SET ROLE r", "SET SESSION AUTHORIZATION s"}, "dp.start=1 session_authorization=s"},
		{"encoding is left out", []string{"SET client_encoding = 'UTF8'"}, "dp.start=1"},

		{"local outside a block", []string{"SET LOCAL a = 1"}, "dp.start=1"},
		{"local in one query", []string{"SET LOCAL a = 1; SELECT 0 -> SET;SELECT 1"}, "dp.start=1"},
		{"local in a block", []string{"T:BEGIN", "T:SET LOCAL a = 1"}, "a=1 dp.start=1"},
		{"local after commit", []string{"T:BEGIN", "T:SET LOCAL a = 1", "COMMIT"}, "dp.start=1"},
		{"local default hides", []string{"SET a = 1", "T:BEGIN", "T:SET LOCAL a TO DEFAULT"}, "dp.start=1"},
		{"local default after commit", []string{"SET a = 1", "T:BEGIN", "T:SET LOCAL a TO DEFAULT", "COMMIT"}, "a=1 dp.start=1"},
		{"session set behind local", []string{"T:BEGIN", "T:SET LOCAL a = 1", "T:SET a = 2"}, "a=2 dp.start=1"},
		{"local behind session set, committed", []string{"T:BEGIN", "T:SET a = 2", "T:SET LOCAL a = 1", "COMMIT"}, "a=2 dp.start=1"},
		{"reset all hides local", []string{"T:BEGIN", "T:SET LOCAL a = 1", "T:RESET ALL"}, "dp.start=1"},

		{"commit", []string{"T:BEGIN", "T:SET a = 1", "COMMIT"}, "a=1 dp.start=1"},
		{"rollback", []string{"SET a = 1", "T:BEGIN", "T:SET a = 2", "T:SET b = 1", "ROLLBACK"}, "a=1 dp.start=1"},
		{"failed block", []string{"T:BEGIN", "T:SET a = 2", "E:SELECT 1/0 -> !", "COMMIT -> ROLLBACK"}, "dp.start=1"},
		{"commit that fails", []string{"T:BEGIN", "T:SET a = 2", "COMMIT -> !"}, "dp.start=1"},
		{"rollback and chain", []string{"T:BEGIN", "T:SET a = 2", "T:ROLLBACK AND CHAIN", "T:SET b = 1"}, "b=1 dp.start=1"},
		{"commit and chain, then rollback", []string{"T:BEGIN", "T:SET a = 2", "T:COMMIT AND CHAIN", "T:SET b = 1", "ROLLBACK"}, "a=2 dp.start=1"},
		{"prepare transaction", []string{"T:BEGIN", "T:SET a = 2", "PREPARE TRANSACTION 'x'"}, "a=2 dp.start=1"},

		{"savepoint", []string{"T:BEGIN", "T:SET a = 1", "T:SAVEPOINT s", "T:SET a = 2", "T:ROLLBACK TO s"}, "a=1 dp.start=1"},
		{"savepoint, twice", []string{"T:BEGIN", "T:SAVEPOINT s", "T:SET a = 2", "T:ROLLBACK TO s", "T:SET a = 3", "T:ROLLBACK TO s"}, "dp.start=1"},
		{"savepoint of the same name", []string{"T:BEGIN", "T:SAVEPOINT s", "T:SET a = 1", "T:SAVEPOINT s", "T:SET a = 2", "T:RELEASE s", "T:ROLLBACK TO s"}, "dp.start=1"},
		{"outer savepoint", []string{"T:BEGIN", "T:SAVEPOINT s", "T:SET a = 1", "T:SAVEPOINT u", "T:SET a = 2", "T:ROLLBACK TO s"}, "dp.start=1"},
		{"released", []string{"T:BEGIN", "T:SAVEPOINT s", "T:SET a = 1", "T:RELEASE s"}, "a=1 dp.start=1"},
		{"unknown savepoint", []string{"T:BEGIN", "T:SET a = 1", "T:ROLLBACK TO x -> ROLLBACK"}, "a=1 dp.start=1 ? * temp"},
		{"error, then rollback to", []string{"T:BEGIN", "T:SET a = 1", "T:SAVEPOINT s", "E:SELECT 1/0 -> !", "T:ROLLBACK TO s", "COMMIT"}, "a=1 dp.start=1"},

		{"error in a query undoes it", []string{"SET a = 1; SELECT 1/0 -> SET;!"}, "dp.start=1"},
		{"error behind a commit in a query", []string{"BEGIN; SET a = 1; COMMIT; SET b = 1; SELECT 1/0 -> BEGIN;SET;COMMIT;SET;!"}, "a=1 dp.start=1"},
		{"block begun in the middle of a query", []string{"E:SET a = 1; BEGIN; SET b = 1; SELECT 1/0 -> SET;BEGIN;SET;!", "ROLLBACK"}, "dp.start=1"},
		{"rollback without a block in a query", []string{"SET a = 1; ROLLBACK; SET b = 1 -> SET;ROLLBACK;SET"}, "b=1 dp.start=1"},

		{"set_config", []string{"SELECT set_config('a', '1', false)"}, "a=1 dp.start=1"},
		{"set_config, local", []string{"T:BEGIN", "T:SELECT set_config('a', '1', true)", "COMMIT"}, "dp.start=1"},
		{"set_config of what is not a literal", []string{"SELECT set_config('a', x, false) FROM y"}, "dp.start=1 ? a"},
		{"set_config rolled back", []string{"T:BEGIN", "T:SELECT set_config('a', x, false) FROM y", "ROLLBACK"}, "dp.start=1"},
		{"set_config, then reset all", []string{"SELECT set_config('role', x, false) FROM y", "RESET ALL"}, "dp.start=1 ? role"},
		{"set_config, then discard all", []string{"SELECT set_config('role', x, false) FROM y", "DISCARD ALL"}, "dp.start=1"},
		{"prepared set_config", []string{"PREPARE p AS SELECT set_config('a', '1', false)", "EXECUTE p -> SELECT 1"}, "a=1 dp.start=1"},
		{"prepared set_config of what is not a literal", []string{"PREPARE p AS SELECT set_config('a', $1, false)", "EXECUTE p('1') -> SELECT 1"}, "a=1 dp.start=1"},
		{"prepared set_config, forgotten", []string{"PREPARE p AS SELECT set_config('a', $1, false)", "DISCARD ALL", "PREPARE q AS SELECT 1", "EXECUTE q -> SELECT 1"}, "dp.start=1"},
		{"prepared set_config within another", []string{"PREPARE p AS SELECT set_config('a', '1', false)", "EXPLAIN ANALYZE EXECUTE p"}, "dp.start=1 ? a"},
		{"executed what was prepared out of sight", []string{"EXECUTE p -> SELECT 1"}, "dp.start=1 ? *+?() temp"},

		{"temporary table", []string{"CREATE TEMP TABLE users (x int)"}, "dp.start=1 ? temp"},
		{"temporary table of another name", []string{"CREATE TEMP TABLE user_s (x int)"}, "dp.start=1"},
		{"temporary table in capitals and quotes", []string{`CREATE TEMP TABLE "USERS" (x int)`}, "dp.start=1 ? temp"},
		{"temporary table that failed", []string{"CREATE TEMP TABLE users (x int) -> !"}, "dp.start=1"},
		{"temporary table rolled back", []string{"T:BEGIN", "T:CREATE TEMP TABLE users (x int)", "ROLLBACK"}, "dp.start=1"},
		{"temporary table behind a savepoint", []string{"T:BEGIN", "T:SAVEPOINT s", "T:SELECT 1 AS id INTO TEMP users", "T:ROLLBACK TO s"}, "dp.start=1"},
		{"temporary table, then discard all", []string{"CREATE TEMP VIEW users AS SELECT 1", "DISCARD ALL"}, "dp.start=1"},
		{"temporary table, then discard temp", []string{"CREATE TEMP TABLE users (x int)", "DISCARD TEMP"}, "dp.start=1"},
		{"discard temp rolled back", []string{"CREATE TEMP TABLE users (x int)", "T:BEGIN", "T:DISCARD TEMP", "ROLLBACK"}, "dp.start=1 ? temp"},
		{"discard temp does not make the rest certain", []string{"SELECT set_config('a', x, false) FROM y", "DISCARD TEMP"}, "dp.start=1 ? a"},
		{"temporary table, then reset all", []string{"CREATE TEMP TABLE users (x int)", "RESET ALL"}, "dp.start=1 ? temp"},
		{"temporary table dropped", []string{"CREATE TEMP TABLE users (x int)", "DROP TABLE IF EXISTS other, users CASCADE"}, "dp.start=1"},
		{"temporary table dropped by its schema", []string{"CREATE TEMP TABLE users (x int)", "DROP TABLE pg_temp.users"}, "dp.start=1"},
		{"the table that it hides dropped", []string{"CREATE TEMP TABLE users (x int)", "DROP TABLE public.users"}, "dp.start=1 ? temp"},
		{"drop that failed", []string{"CREATE TEMP TABLE users (x int)", "DROP TABLE users -> !"}, "dp.start=1 ? temp"},
		{"drop rolled back", []string{"CREATE TEMP TABLE users (x int)", "T:BEGIN", "T:DROP TABLE users", "ROLLBACK"}, "dp.start=1 ? temp"},
		{"on commit drop, in its transaction", []string{"T:BEGIN", "T:CREATE TEMP TABLE users (x int) ON COMMIT DROP"}, "dp.start=1 ? temp"},
		{"on commit drop, committed", []string{"T:BEGIN", "T:CREATE TEMP TABLE users (x int) ON COMMIT DROP", "COMMIT"}, "dp.start=1"},
		{"on commit drop, without a block", []string{"CREATE TEMP TABLE users ON COMMIT DROP AS SELECT 1"}, "dp.start=1"},
		{"temporary table renamed", []string{"CREATE TEMP TABLE other (x int)", "ALTER TABLE other RENAME TO users"}, "dp.start=1 ? temp"},
		{"temporary table renamed away", []string{"CREATE TEMP TABLE users (x int)", "ALTER TABLE users RENAME TO other"}, "dp.start=1"},
		{"another table renamed", []string{"CREATE TEMP TABLE other (x int)", "ALTER TABLE app.clients RENAME TO users"}, "dp.start=1"},
		{"view that may be temporary", []string{"CREATE TEMP TABLE other (x int)", "CREATE VIEW users AS SELECT * FROM other"}, "dp.start=1 ? temp"},
		{"view that is none", []string{"CREATE VIEW users AS SELECT * FROM other"}, "dp.start=1"},
		{"temporary table of an unknown name", []string{"DO $$ BEGIN CREATE TEMP TABLE x (a int); END $$", "DROP TABLE users"}, "dp.start=1"},
		{"temporary schema searched", []string{"SET search_path = pg_temp, public"}, "dp.start=1 search_path=pg_temp, public ? temp"},
		{"temporary schema not searched any more", []string{"SET search_path = pg_temp", "CREATE TABLE users (x int)", "RESET search_path"}, "dp.start=1 ? temp"},
		{"temporary schema searched, discard temp", []string{"SET search_path = pg_temp", "DISCARD TEMP"}, "dp.start=1 search_path=pg_temp ? temp"},
		{"role", []string{"SET ROLE r"}, "dp.start=1 role=r"},
		{"role none", []string{"SET ROLE r", "SET ROLE NONE"}, "dp.start=1 role=none"},
		{"role reset", []string{"SET ROLE r", "RESET ROLE"}, "dp.start=1"},
		{"role by name", []string{"SET role TO 'R'"}, "dp.start=1 role=R"},
		{"a form that is not followed", []string{"SET a FROM CURRENT"}, "dp.start=1 ? a"},
		{"block opened out of sight", []string{"T:CALL p()"}, "dp.start=1 ? *+p() temp"},
		{"block closed out of sight", []string{"T:BEGIN", "CALL p()"}, "dp.start=1 ? *+p() temp"},
		{"very long value", []string{"SET a = '" + long(5000) + "'"}, "dp.start=1 ? a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScript()
			status := byte('I')
			for _, statement := range test.statements {
				status = s.play(statement)
			}
			s.run1("SELECT 'end' FROM Users", "SELECT 1", status)
			r := s.run(t)
			last := r.Queries[len(r.Queries)-1]
			if last.SQL != "SELECT 'end' FROM Users" {
				t.Fatalf("the last query is %q", last.SQL)
			}
			if got := settingsText(last); got != test.want {
				t.Errorf("settings %q, want %q", got, test.want)
			}
		})
	}
}

// play adds one simple query, written as in TestSettings, and returns its ReadyForQuery status.
func (s *script) play(statement string) byte {
	status := byte('I')
	if len(statement) > 2 && statement[1] == ':' {
		status, statement = statement[0], statement[2:]
	}
	sql, tags, ok := strings.Cut(statement, " -> ")
	if !ok {
		tags = strings.Fields(sql)[0]
	}
	s.query(sql)
	for tag := range strings.SplitSeq(tags, ";") {
		if tag == "!" {
			s.fail()
		} else {
			s.complete(tag)
		}
	}
	s.ready(status)
	return status
}

// settingsText returns the settings of a query, sorted; then what is in doubt after a question mark: settings, * for
// all of them, f() for what a function changes with the settings that are certain nevertheless, "temp" for names that
// may be temporary relations.
func settingsText(q capture.Query) string {
	text := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(q.Settings), "map["), "]")
	text = strings.ReplaceAll(text, ":", "=")
	doubt := slices.Clone(q.Doubt.Names)
	for _, c := range q.Doubt.Calls {
		if c.Functions = slices.DeleteFunc(slices.Clone(c.Functions), func(f string) bool { return f == capture.ImplicitCode }); len(c.Functions) == 0 {
			continue
		}
		what := strings.ReplaceAll(strings.Join(c.Functions, "()+")+"()", "*()", "*")
		if len(c.Except) > 0 {
			what += "-" + strings.Join(c.Except, "-")
		}
		if len(c.Only) > 0 {
			what += ":" + strings.Join(c.Only, ":")
		}
		doubt = append(doubt, what)
	}
	if q.Doubt.Temporary || len(q.Temporary) > 0 {
		doubt = append(doubt, "temp")
	}
	if len(doubt) > 0 {
		text += " ? " + strings.Join(doubt, " ")
	}
	return text
}

func TestApplicationName(t *testing.T) {
	t.Parallel()
	r := newScript().run1("SELECT 1", "SELECT 1", 'I').
		run1("SET application_name = 'Other App'", "SET", 'I').run1("SELECT 2", "SELECT 1", 'I').
		run1("RESET application_name", "RESET", 'I').run1("SELECT 3", "SELECT 1", 'I').run(t)
	var got []string
	for _, q := range r.Queries {
		got = append(got, q.ApplicationName)
		if _, ok := q.Settings["application_name"]; ok {
			t.Errorf("settings of %q hold application_name", q.SQL)
		}
	}
	if diff := cmp.Diff([]string{"app", "app", "Other App", "Other App", "app"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestSettingsInPipelines: without BEGIN, everything between two Syncs is one transaction.
func TestSettingsInPipelines(t *testing.T) {
	t.Parallel()
	one := func(s *script, sql string) *script {
		return s.parse("", sql).bind("", "").execute("").parsed()
	}
	tests := []struct {
		name   string
		script *script
		want   string
	}{
		{"local until sync", func() *script {
			s := one(newScript(), "SET LOCAL a = 1").bound("SET")
			return one(s, "SELECT 'end'").bound("SELECT 1").sync().ready('I')
		}(), "a=1 dp.start=1"},
		{"error undoes the transaction", func() *script {
			s := one(newScript(), "SET a = 1").bound("SET")
			s = one(s, "SELECT 1/0").back('2', "").fail().sync().ready('I')
			return one(s, "SELECT 'end'").bound("SELECT 1").sync().ready('I')
		}(), "dp.start=1"},
		{"error in an earlier block is undone by rollback", func() *script {
			s := one(newScript().run1("BEGIN", "BEGIN", 'T'), "SET a = 1").bound("SET")
			s = one(s, "SELECT 1/0").back('2', "").fail().sync().ready('E')
			s = one(s, "ROLLBACK").bound("ROLLBACK").sync().ready('I')
			return one(s, "SELECT 'end'").bound("SELECT 1").sync().ready('I')
		}(), "dp.start=1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := test.script.run(t)
			last := r.Queries[len(r.Queries)-1]
			if diff := cmp.Diff(test.want, settingsText(last)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
