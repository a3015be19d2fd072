package tracker_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// answers returns the queries, each with the epsilon in force and whether the session's settings are certain.
func (r result) answers() (all []string) {
	for _, q := range r.Queries {
		if strings.HasPrefix(q.SQL, "SET") || q.SQL == "BEGIN" || q.SQL == "COMMIT" || q.SQL == "ROLLBACK" || q.SQL == "CLOSE c" {
			continue
		}
		text := strings.TrimPrefix(q.SQL, "DECLARE ") + " | " + q.Settings["dp.epsilon"]
		if q.Doubt.Has("dp.epsilon") {
			text += "?"
		}
		if q.Doubt.Has("search_path") {
			text += " path?"
		}
		if q.Outcome == capture.Failed {
			text += " !"
		}
		all = append(all, text)
	}
	return all
}

// TestCursors: the answers of a cursor are those that the server computes, each with the settings at that time.
func TestCursors(t *testing.T) {
	t.Parallel()
	begin := []string{"T:BEGIN", "T:SET dp.epsilon = 1"}
	const c, hold = "c CURSOR FOR SELECT f(x)", "c CURSOR WITH HOLD FOR SELECT f(x)"
	declare := slices.Clip(append(begin, "T:DECLARE "+c))
	for name, test := range map[string]struct {
		steps []string
		want  []string
	}{
		"read forward":                {append(declare, "T:FETCH c", "T:FETCH 2 FROM c", "T:FETCH FORWARD ALL IN c", "T:MOVE NEXT c", "T:FETCH RELATIVE 2 c", "COMMIT"), []string{c + " | 1"}},
		"not read":                    {append(declare, "COMMIT"), []string{"EXPLAIN DECLARE " + c + " | 1"}},
		"closed":                      {append(declare, "T:CLOSE c", "COMMIT"), []string{"EXPLAIN DECLARE " + c + " | 1"}},
		"settings when a row is read": {append(declare, "T:SET dp.epsilon = 20", "T:FETCH c", "COMMIT"), []string{c + " | 20"}},
		"settings changed between":    {append(declare, "T:FETCH c", "T:SET LOCAL dp.epsilon = 20", "T:FETCH c", "T:FETCH c", "COMMIT"), []string{c + " | 1", c + " | 20"}},
		"settings in doubt":           {append(declare, "T:SELECT set_config('dp.epsilon', x, false) FROM y", "T:FETCH c", "COMMIT"), []string{"SELECT set_config('dp.epsilon', x, false) FROM y | 1?", c + " | 1?"}},
		"names of its declaration":    {append(declare, "T:SET search_path = app", "T:FETCH c", "COMMIT"), []string{c + " | 1 path?"}},
		"its own functions":           {append(declare, "T:FETCH c", "T:FETCH c", "T:SET a.b = 1", "T:FETCH c", "COMMIT"), []string{c + " | 1", c + " | 1"}},
		"the same row":                {append(declare, "T:FETCH c", "T:FETCH RELATIVE 0 FROM c", "T:FETCH 0 c", "T:FETCH FORWARD 0 c", "T:FETCH c", "COMMIT"), []string{c + " | 1", c + " | 1", c + " | 1", c + " | 1"}},
		"the first row":               {append(declare, "T:FETCH FIRST c", "T:FETCH FIRST FROM c", "T:FETCH ABSOLUTE 1 IN c", "T:FETCH LAST c", "COMMIT"), []string{c + " | 1", c + " | 1", c + " | 1", c + " | 1"}},
		"from the start":              {append(declare, "T:FETCH c", "T:MOVE ABSOLUTE 0 c", "T:FETCH c", "T:FETCH c", "T:FETCH ABSOLUTE 0 c", "T:FETCH ALL c", "COMMIT"), []string{c + " | 1", c + " | 1", c + " | 1"}},
		"backward":                    {append(declare, "T:FETCH 9 c", "T:FETCH PRIOR c", "T:FETCH c", "T:FETCH BACKWARD c", "COMMIT"), []string{c + " | 1", c + " | 1", c + " | 1"}},
		"backward, several":           {append(declare, "T:FETCH 9 c", "T:FETCH BACKWARD ALL c", "T:FETCH 9 c", "T:FETCH -2 c", "T:FETCH BACKWARD -2 c", "COMMIT"), []string{c + " | 1", c + " | 1", c + " | 1", c + " | 1", c + " | 1"}},
		"kept at commit":              {append(begin, "T:DECLARE "+hold, "T:SET LOCAL dp.epsilon = 20", "COMMIT", "SET dp.epsilon = 3", "FETCH c", "FETCH FIRST c", "FETCH BACKWARD 2 c", "FETCH c", "CLOSE c"), []string{hold + " | 20"}},
		"read, then kept at commit":   {append(begin, "T:DECLARE "+hold, "T:FETCH c", "T:SET dp.epsilon = 20", "COMMIT", "FETCH c", "FETCH c"), []string{hold + " | 1", hold + " | 20"}},
		"read, then kept as it was":   {append(begin, "T:DECLARE c NO SCROLL CURSOR WITH HOLD FOR SELECT f(x)", "T:FETCH c", "COMMIT", "FETCH c"), []string{"c NO SCROLL CURSOR WITH HOLD FOR SELECT f(x) | 1"}},
		"kept without a block":        {[]string{"SET dp.epsilon = 1", "DECLARE " + hold, "SET dp.epsilon = 3", "FETCH c", "T:BEGIN", "T:FETCH c", "ROLLBACK", "FETCH c"}, []string{hold + " | 1"}},
		"rolled back":                 {append(begin, "T:DECLARE "+hold, "ROLLBACK", "FETCH c -> !", "FETCH c"), []string{"EXPLAIN DECLARE " + hold + " | 1"}},
		"error when it is read":       {append(declare, "E:FETCH c -> !", "ROLLBACK"), []string{c + " | 1 !"}},
		"error of its plan":           {append(begin, "E:DECLARE "+c+" -> !", "ROLLBACK"), []string{"EXPLAIN DECLARE " + c + " | 1 !"}},
		"error of the commit":         {append(begin, "T:DECLARE "+hold, "COMMIT -> !"), []string{hold + " | 1 !"}},
		"error of the commit, once":   {[]string{"SET dp.epsilon = 1", "DECLARE " + hold + " -> !"}, []string{hold + " | 1 !"}},
		"in one message":              {[]string{"BEGIN; SET dp.epsilon = 1; DECLARE " + c + "; SET dp.epsilon = 2; FETCH c; FETCH FIRST c; COMMIT -> BEGIN;SET;DECLARE CURSOR;SET;FETCH 1;FETCH 1;COMMIT"}, []string{c + " | 2", c + " | 2"}},
		"named as a direction":        {append(begin, "T:DECLARE next CURSOR FOR SELECT 1", "T:FETCH next", "T:FETCH FROM next", "T:FETCH NEXT next", "COMMIT"), []string{"next CURSOR FOR SELECT 1 | 1"}},
		"declared anew":               {append(declare, "T:FETCH c", "T:CLOSE c", "T:DECLARE c CURSOR FOR SELECT 2", "T:FETCH c", "COMMIT"), []string{c + " | 1", "c CURSOR FOR SELECT 2 | 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript()
			for _, step := range test.steps {
				s.play(step)
			}
			r := s.run(t)
			if diff := cmp.Diff(test.want, r.answers()); diff != "" {
				t.Error(diff)
			}
			want := uint64(0)
			if name == "rolled back" { // one FETCH fails for a reason that is not known
				want = 2
			}
			if n := r.Counts.Skipped[tracker.UnknownStatement]; n != want || r.Off != tracker.On {
				t.Errorf("%d of unknown cursors, off %d", n, r.Off)
			}
		})
	}
}

// TestPortals: rows that a later Execute reads are an answer of their own if settings have changed; a cursor and a
// portal are the same.
func TestPortals(t *testing.T) {
	t.Parallel()
	open := func() *script {
		return newScript().run1("BEGIN", "BEGIN", 'T').run1("SET dp.epsilon = 1", "SET", 'T').parse("", "SELECT f($1)", 23).bind("p", "", "7").sync().parsed().back('2', "").ready('T')
	}
	read := func(s *script) *script { return s.execute("p").sync().back('s', "").ready('T') }
	for name, c := range map[string]struct {
		script *script
		want   []string
	}{
		"the same settings": {read(read(open())), []string{"SELECT f($1) | 1"}},
		"set before":        {read(open().run1("SET dp.epsilon = 2", "SET", 'T')), []string{"SELECT f($1) | 2"}},
		"set between":       {read(read(open()).run1("SET dp.epsilon = 2", "SET", 'T')), []string{"SELECT f($1) | 1", "SELECT f($1) | 2"}},
		"set, then failed": {
			read(open()).run1("SET dp.epsilon = 2", "SET", 'T').execute("p").sync().failWith("22012").ready('E'),
			[]string{"SELECT f($1) | 1", "SELECT f($1) | 2 !"},
		},
		"by FETCH": {read(open()).run1("FETCH p", "FETCH 1", 'T').run1("FETCH 0 p", "FETCH 1", 'T'), []string{"SELECT f($1) | 1", "SELECT f($1) | 1"}},
		"by FETCH, of a statement that is not known": {
			newScript().run1("BEGIN", "BEGIN", 'T').bind("p", "x", "7").sync().back('2', "").ready('T').run1("FETCH p", "FETCH 1", 'T').run1("SET dp.epsilon = 2", "SET", 'T').run1("FETCH p", "FETCH 1", 'T'),
			nil,
		},
		"of DECLARE": {
			read(read(newScript().run1("BEGIN", "BEGIN", 'T').run1("DECLARE p CURSOR FOR SELECT f(x)", "DECLARE CURSOR", 'T').run1("SET dp.epsilon = 2", "SET", 'T'))),
			[]string{"p CURSOR FOR SELECT f(x) | 2"},
		},
		"DECLARE and FETCH in the extended protocol": {
			newScript().run1("BEGIN", "BEGIN", 'T').parse("", "DECLARE c CURSOR FOR SELECT f($1)", 23).bind("", "", "7").execute("").parse("", "FETCH 2 c").bind("", "").execute("").sync().
				parsed().bound("DECLARE CURSOR").parsed().bound("FETCH 2").ready('T'),
			[]string{"c CURSOR FOR SELECT f($1) | "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := c.script.run(t)
			if diff := cmp.Diff(c.want, r.answers()); diff != "" {
				t.Error(diff)
			}
			for _, q := range r.Queries {
				if strings.Contains(q.SQL, "$1") && string(q.Params[0].Value) != "7" {
					t.Errorf("parameters of %s: %v", q.SQL, q.Params)
				}
			}
		})
	}
}

// TestFunctionCall: a FunctionCall message counts, with its result or its error, unless it is one for large objects.
func TestFunctionCall(t *testing.T) {
	t.Parallel()
	call := func(oid string) *script {
		s := newScript()
		s.client = append(s.client, append(tracker.AppendCut(nil, 'F', len(oid)), oid...))
		return s
	}
	for name, c := range map[string]struct {
		script *script
		counts tracker.Reason
	}{
		"result":         {call("\x00\x00\x40\x01").back('V', "").ready('I'), tracker.FunctionCall},
		"error":          {call("\x00\x00\x40\x01").failWith("42704").ready('I'), tracker.FunctionCall},
		"large object":   {call("\x00\x00\x03\xb8").back('V', "").ready('I'), tracker.Unprotected},
		"not recorded":   {call("").back('V', "").ready('I'), tracker.FunctionCall},
		"replication":    {newScript().query("START_REPLICATION 0/0").back('W', "").front('c', "").complete("COPY 0").complete("START_REPLICATION").ready('I'), tracker.Unprotected},
		"streaming ends": {newScript().query("START_REPLICATION 0/0").back('W', "").failWith("58P01").ready('I'), tracker.Unprotected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := c.script.run1("SELECT 1", "SELECT 1", 'I').wantSQL(t, "SELECT 1 | SELECT 1")
			for reason, n := range r.Counts.Skipped {
				if want := tracker.Reason(reason) == c.counts; (n == 1) != want || n > 1 {
					t.Errorf("%d for reason %s", n, tracker.Reason(reason))
				}
			}
		})
	}
}
