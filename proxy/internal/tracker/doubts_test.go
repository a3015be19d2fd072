package tracker_test

import (
	"strings"
	"testing"
)

// TestDoubts: what can have changed unseen is in doubt, and nothing else, until the session sets it again. Statements
// as in TestSettings.
func TestDoubts(t *testing.T) {
	t.Parallel()
	call := "SELECT app.f(1)"
	tests := []struct {
		name       string
		statements []string
		want       string // as settingsText writes it
	}{
		{"built-in functions", []string{"SELECT count(*), lower(a) FROM t WHERE b IN (1)"}, "dp.start=1"},
		{"a function", []string{call}, "dp.start=1 ? f()"},
		{"functions", []string{call, "SELECT g(1)"}, "dp.start=1 ? f()+g()"},
		{"set after it", []string{call, "SET a.b = 1"}, "a.b=1 dp.start=1 ? f()-a.b"},
		{"set before it", []string{"SET a.b = 1", call}, "a.b=1 dp.start=1 ? f()"},
		{"set between", []string{call, "SET a.b = 1", "SELECT g(1)"}, "a.b=1 dp.start=1 ? f()-a.b g()"},
		{"called again", []string{call, "SET a.b = 1", call}, "a.b=1 dp.start=1 ? f()"},
		{"reset after it", []string{call, "RESET a.b"}, "dp.start=1 ? f()-a.b"},
		{"reset all after it", []string{call, "RESET ALL"}, "dp.start=1 ? f():role:session_authorization"},
		{"role set, all reset", []string{call, "SET ROLE x", "RESET ALL"}, "dp.start=1 role=x ? f():session_authorization"},
		{"called after reset all", []string{"RESET ALL", call}, "dp.start=1 ? f()"},
		{"discard all after it", []string{call, "DISCARD ALL"}, "dp.start=1"},
		{"rolled back", []string{"T:BEGIN", "T:" + call, "ROLLBACK"}, "dp.start=1"},
		{"rolled back to a savepoint", []string{"T:BEGIN", "T:SAVEPOINT s", "T:" + call, "T:ROLLBACK TO s", "COMMIT"}, "dp.start=1"},
		{"committed", []string{"T:BEGIN", "T:" + call, "COMMIT"}, "dp.start=1 ? f()"},
		{"failed", []string{call + " -> !"}, "dp.start=1"},
		{"set local after it", []string{call, "T:BEGIN", "T:SET LOCAL a.b = 1"}, "a.b=1 dp.start=1 ? f()-a.b"},
		{"set local after it, committed", []string{call, "T:BEGIN", "T:SET LOCAL a.b = 1", "COMMIT"}, "dp.start=1 ? f()"},
		{"set local before it", []string{"T:BEGIN", "T:SET LOCAL a.b = 1", "T:" + call}, "a.b=1 dp.start=1 ? f()"},
		{"too many functions", []string{many("SELECT f%()", 70)}, "dp.start=1 ? ?()+" + listed(64)},

		{"set_config of a name that is not known", []string{"SELECT set_config(a, '1', false) FROM t"}, "dp.start=1 ? *"},
		{"then set", []string{"SELECT set_config(a, '1', false) FROM t", "SET a.b = 1"}, "a.b=1 dp.start=1 ? *-a.b"},
		{"then reset all", []string{"SELECT set_config(a, '1', false) FROM t", "RESET ALL"}, "dp.start=1 ? *:role:session_authorization"},
		{"several calls of set_config", []string{"SELECT set_config('a.b', '1', false), set_config('a.c', '2', false) AS x"}, "a.b=1 a.c=2 dp.start=1"},
		{"one that is not plain", []string{"SELECT set_config('a.b', '1' || x, false), set_config('a.c', '2', false) FROM t"}, "dp.start=1 ? a.b a.c"},
		{"set_config of NULL", []string{"SET a.b = 1", "SELECT set_config('a.b', NULL, false)"}, "dp.start=1"},
		{"local, committed", []string{"SELECT set_config('app.tenant', '7', true)"}, "dp.start=1"},
		{"unknown, then known", []string{"SELECT set_config('a.b', x, false) FROM t", "SET a.b = 1"}, "a.b=1 dp.start=1"},
		{"unknown, then discarded", []string{"SELECT set_config('a.b', x, false) FROM t", "DISCARD ALL"}, "dp.start=1"},
		{"in another statement", []string{"INSERT INTO t SELECT set_config('a.b', '1', false)"}, "dp.start=1 ? a.b"},
		{"in a cursor", []string{"T:BEGIN", "T:DECLARE c CURSOR FOR SELECT set_config('a.b', x, false) FROM t", "T:SET a.b = 1", "T:FETCH 1 FROM c"}, "a.b=1 dp.start=1 ? a.b"},
		{"in a cursor that a commit runs", []string{"T:BEGIN", "T:DECLARE c CURSOR WITH HOLD FOR SELECT f(1)", "T:SET a.b = 1", "COMMIT"}, "a.b=1 dp.start=1 ? f()"},
		{"in a cursor that the end of the query runs", []string{"DECLARE c CURSOR WITH HOLD FOR SELECT f(1); SET a.b = 1 -> DECLARE CURSOR;SET"}, "a.b=1 dp.start=1 ? f()"},
		{"a cursor that has run", []string{"DECLARE c CURSOR WITH HOLD FOR SELECT f(1)", "SET a.b = 1", "FETCH 1 FROM c"}, "a.b=1 dp.start=1 ? f()-a.b"},

		{"a DO block that sets", []string{"DO $$ BEGIN SET a.b = 1; END $$"}, "dp.start=1 ? a.b"},
		{"a DO block that commits, then fails", []string{"SET a.b = 1", "DO $$ BEGIN SET a.b = 2; COMMIT; RAISE EXCEPTION 'x'; END $$ -> !"}, "a.b=1 dp.start=1 ? a.b"},
		{"a DO block that fails", []string{"SET a.b = 1", "DO $$ BEGIN SET a.b = 2; RAISE EXCEPTION 'x'; END $$ -> !"}, "a.b=1 dp.start=1"},
		{"a DO block that executes a text", []string{"DO $$ BEGIN EXECUTE 'SE'||'T a.b = 1'; END $$"}, "dp.start=1 ? *"},
		{"and fails", []string{"DO $$ BEGIN EXECUTE 'SE'||'T a.b = 1'; EXECUTE 'COM'||'MIT'; END $$ -> !"}, "dp.start=1 ? *"},
		{"a procedure", []string{"CALL app.p(1)"}, "dp.start=1 ? p()"},
		{"a procedure that fails", []string{"CALL app.p(1) -> !"}, "dp.start=1 ? p()"},
		{"a procedure that fails in a block", []string{"T:BEGIN", "E:CALL app.p(1) -> !", "ROLLBACK"}, "dp.start=1"},
		{"a DO block with a temporary table", []string{"DO $$ BEGIN CREATE TEMP TABLE other (x int); END $$"}, "dp.start=1"},
		{"a DO block with a temporary table of the name", []string{"DO $$ BEGIN CREATE TEMP TABLE users (x int); END $$"}, "dp.start=1 ? temp"},
		{"a DO block with any temporary table", []string{"DO $$ BEGIN EXECUTE 'CREATE TEMP TABLE ' || x; END $$"}, "dp.start=1 ? * temp"},
		{"a text that was not read fails", []string{"SET a.b = 1", "SELECT '\xe4' -> !"}, "a.b=1 dp.start=1"},

		{"a function of its own", []string{"CREATE FUNCTION pg_temp.f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN SET a.b = 1; END $$", "SET a.b = 2", "SELECT x.f FROM x"}, "a.b=2 dp.start=1 ? *"},
		{"set after it was called", []string{"CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE x; END $$", "SELECT 1", "SET a.b = 2"}, "a.b=2 dp.start=1 ? *-a.b"},
		{"a function of its own that sets nothing", []string{"CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "SELECT 1"}, "dp.start=1"},

		{"time zone from an interval", []string{"SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE"}, "dp.start=1 ? timezone"},
		{"a role changes with the session authorization", []string{"SET ROLE r", "T:BEGIN", "T:SET LOCAL SESSION AUTHORIZATION s", "COMMIT"}, "dp.start=1 role=r"},
		{"a local default of what was set at the start", []string{"SET dp.start = 2", "T:BEGIN", "T:SET LOCAL dp.start TO DEFAULT"}, "dp.start=1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScript()
			status := byte('I')
			for _, statement := range test.statements {
				status = s.play(statement)
			}
			s.run1("SELECT 'end' FROM users", "SELECT 1", status)
			r := s.run(t)
			if got := settingsText(r.Queries[len(r.Queries)-1]); got != test.want {
				t.Errorf("settings %q, want %q", got, test.want)
			}
		})
	}
}

// many joins n copies of a statement, each with its number.
func many(statement string, n int) string {
	var all []string
	for i := range n {
		all = append(all, strings.ReplaceAll(statement, "%", string(rune('0'+i/10))+string(rune('0'+i%10))))
	}
	return strings.Join(all, ";") + " -> " + strings.Repeat("SELECT 1;", n-1) + "SELECT 1"
}

func listed(n int) string {
	var all []string
	for i := range n {
		all = append(all, "f"+string(rune('0'+i/10))+string(rune('0'+i%10))+"()")
	}
	return strings.Join(all, "+")
}

// TestDoubtsInPipelines: statements that commit at once, and those that may, before an error in the same pipeline.
func TestDoubtsInPipelines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, want string }{
		"discard all": {"DISCARD ALL", "dp.start=1"},
		"vacuum":      {"VACUUM t", "a.b=1 dp.start=1"},
		"procedure":   {"CALL p(1)", "a.b=1 dp.start=1 ? p()"},
		"reset all":   {"RESET ALL", "a.b=1 dp.start=1"},
	} {
		s := newScript().run1("SET a.b = 1", "SET", 'I').
			parse("", c.sql).bind("", "").execute("").parse("", "SELECT 1/0").bind("", "").execute("").sync().
			parsed().bound("X").back('1', "").back('2', "").fail().ready('I').
			run1("SELECT 'end'", "SELECT 1", 'I')
		r := s.run(t)
		if got := settingsText(r.Queries[len(r.Queries)-1]); got != c.want {
			t.Errorf("%s: settings %q, want %q", name, got, c.want)
		}
	}
	// A block that begins in the pipeline does not undo what came before.
	begun := newScript().parse("", "DO $$ BEGIN SET a.b = 1; COMMIT; END $$").bind("", "").execute("").parse("", "BEGIN").bind("", "").execute("").sync().
		parsed().bound("DO").parsed().bound("BEGIN").ready('T').run1("ROLLBACK", "ROLLBACK", 'I').run1("SELECT 'end'", "SELECT 1", 'I').run(t)
	if got, want := settingsText(begun.Queries[len(begun.Queries)-1]), "dp.start=1 ? a.b"; got != want {
		t.Errorf("settings %q, want %q", got, want)
	}
	// What ran before a procedure may be committed with it.
	s := newScript().parse("", "SET a.b = 1").bind("", "").execute("").parse("", "CALL p()").bind("", "").execute("").sync().
		parsed().bound("SET").back('1', "").back('2', "").fail().ready('I').run1("SELECT 'end'", "SELECT 1", 'I')
	r := s.run(t)
	if got, want := settingsText(r.Queries[len(r.Queries)-1]), "dp.start=1 ? a.b p()"; got != want {
		t.Errorf("settings %q, want %q", got, want)
	}
}

// TestSetConfigParameters: the values of set_config are read from Bind and from EXECUTE.
func TestSetConfigParameters(t *testing.T) {
	t.Parallel()
	const all = "SELECT set_config($1, $2, $3)"
	for name, c := range map[string]struct {
		sql     string
		oids    []uint32
		formats []uint16
		params  []string
		want    string
	}{
		"text":                    {all, nil, nil, []string{"A.b", "x", "false"}, "a.b=x dp.start=1"},
		"prefix of a boolean":     {all, nil, nil, []string{"a.b", "x", "f"}, "a.b=x dp.start=1"},
		"binary":                  {all, []uint32{25, 25, 16}, []uint16{1}, []string{"a.b", "x", "\x00"}, "a.b=x dp.start=1"},
		"binary, inferred types":  {all, nil, []uint16{1, 1, 1}, []string{"a.b", "x", "\x00"}, "a.b=x dp.start=1"},
		"local":                   {all, nil, []uint16{1}, []string{"a.b", "x", "\x01"}, "dp.start=1"},
		"NULL resets":             {all, nil, nil, []string{"dp.start", null, "f"}, "dp.start=1"},
		"NULL is not local":       {all, nil, nil, []string{"a.b", "x", null}, "a.b=x dp.start=1"},
		"row level security":      {"SELECT set_config('app.tenant', $1, true)", nil, nil, []string{"7"}, "dp.start=1"},
		"several":                 {"SELECT set_config('role', $1, false), set_config('a.b', $2, false)", nil, nil, []string{"r", "x"}, "a.b=x dp.start=1 role=r"},
		"a value of another type": {"SELECT set_config('a.b', $1, false)", []uint32{1700}, []uint16{1}, []string{"\x00\x01"}, "dp.start=1 ? a.b"},
		"a name of another type":  {all, []uint32{19, 2205, 16}, nil, []string{"a.b", "x", "f"}, "dp.start=1 ? a.b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript().parse("", c.sql, c.oids...).front('B', bindBody("", "", c.formats, c.params, nil)).execute("").sync().
				parsed().bound("SELECT 1").ready('I').run1("SELECT 'end'", "SELECT 1", 'I')
			r := s.run(t)
			if got := settingsText(r.Queries[len(r.Queries)-1]); got != c.want {
				t.Errorf("settings %q, want %q", got, c.want)
			}
		})
	}
}

// TestReports: the server reports some settings, the latest before ReadyForQuery.
func TestReports(t *testing.T) {
	t.Parallel()
	start := func() *script {
		s := &script{}
		return s.status("client_encoding", "UTF8").status("standard_conforming_strings", "on").
			status("TimeZone", "UTC").status("DateStyle", "ISO, MDY").status("search_path", "public").ready('I')
	}
	report := func(s *script, sql, name, value string, status byte) *script {
		return s.query(sql).complete("X").status(name, value).ready(status)
	}
	const hidden = "SELECT set_config(a, 'x', false) FROM t"
	for name, c := range map[string]struct {
		script *script
		want   string
	}{
		"unknown code, nothing reported": {start().run1(hidden, "X", 'I'), "dp.start=1 ? *-datestyle-search_path-timezone"},
		"unknown code, one reported":     {report(start(), hidden, "TimeZone", "CET", 'I'), "dp.start=1 timezone=CET ? *-datestyle-search_path-timezone"},
		"the first value again": {
			report(report(start(), "SET timezone = 'CET'", "TimeZone", "CET", 'I'), hidden, "TimeZone", "UTC", 'I'),
			"dp.start=1 ? *-datestyle-search_path-timezone",
		},
		"an interval":   {report(start(), "SET TIME ZONE INTERVAL '+01:00' HOUR TO MINUTE", "TimeZone", "<+01>-01", 'I'), "dp.start=1 timezone=<+01>-01"},
		"a function":    {report(start(), "SELECT f(1)", "search_path", "x", 'I'), "dp.start=1 search_path=x ? f()-search_path"},
		"in a block":    {report(start().run1("BEGIN", "BEGIN", 'T'), hidden, "TimeZone", "CET", 'T'), "dp.start=1 timezone=CET ? *-datestyle-search_path-timezone"},
		"committed":     {report(start().run1("BEGIN", "BEGIN", 'T'), "SELECT f(1)", "TimeZone", "CET", 'T').run1("COMMIT", "COMMIT", 'I'), "dp.start=1 timezone=CET ? f()-timezone"},
		"rolled back":   {report(report(start().run1("BEGIN", "BEGIN", 'T'), "SELECT f(1)", "TimeZone", "CET", 'T'), "ROLLBACK", "TimeZone", "UTC", 'I'), "dp.start=1"},
		"set by itself": {report(start(), "SET timezone = 'cet'", "TimeZone", "CET", 'I'), "dp.start=1 timezone=CET"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := byte('I')
			if name == "in a block" {
				status = 'T'
			}
			r := c.script.run1("SELECT 'end'", "SELECT 1", status).run(t)
			if got := settingsText(r.Queries[len(r.Queries)-1]); got != c.want {
				t.Errorf("settings %q, want %q", got, c.want)
			}
		})
	}
}

// TestUnprotectedCalls: functions that statements call are followed even if these are not captured.
func TestUnprotectedCalls(t *testing.T) {
	t.Parallel()
	s := newScript().run1("SELECT f(1)", "SELECT 1", 'I').run1("SET a.b = 1", "SET", 'I').
		parse("g", "SELECT g(1)").bind("", "g").execute("").sync().parsed().bound("SELECT 1").ready('I').
		run1("SET a.c = 1", "SET", 'I').run1("SELECT f(1)", "SELECT 1", 'I').
		bind("", "g").execute("").sync().bound("SELECT 1").ready('I').
		run1("SELECT users", "SELECT 1", 'I')
	r := s.feed(aboutUsers)
	if len(r.Queries) != 1 {
		t.Fatalf("captured %+v", r.Queries)
	}
	if got, want := settingsText(r.Queries[0]), "a.b=1 a.c=1 dp.start=1 ? f()+g()"; got != want {
		t.Errorf("settings %q, want %q", got, want)
	}
}
