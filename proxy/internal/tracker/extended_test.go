package tracker_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

func (s *script) bound(tag string) *script { return s.back('2', "").complete(tag) }

func (s *script) parsed() *script { return s.back('1', "") }

func TestExtended(t *testing.T) {
	t.Parallel()
	s := newScript().parse("", "SELECT $1, $2;", 25, 0).
		front('B', bindBody("", "", []uint16{1}, []string{"a\x00", null, ""}, []uint16{1, 0})).
		front('D', "P\x00").execute("").sync().
		parsed().back('2', "").back('T', "")
	s.server = append(s.server, tracker.AppendTime(nil, at(9)))
	got := s.complete("SELECT 1").ready('I').run(t)
	want := []capture.Query{{
		SessionID: 7, User: "ann", Database: "bank", ApplicationName: "app",
		SQL: "SELECT $1, $2", Protocol: capture.Extended, Tag: "SELECT 1", Completed: at(9),
		Params: []capture.Param{
			{OID: 25, Format: 1, Value: []byte("a\x00")},
			{Format: 1, Null: true},
			{Format: 1, Value: []byte{}},
		},
		ResultFormats: []int16{1, 0},
		Settings:      map[string]string{"dp.start": "1"},
	}}
	if diff := cmp.Diff(want, got.Queries); diff != "" {
		t.Error(diff)
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		formats []uint16
		want    []int16
	}{
		{"none is text", nil, []int16{0, 0}},
		{"one stands for all", []uint16{1}, []int16{1, 1}},
		{"each its own", []uint16{0, 1}, []int16{0, 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScript().parse("", "SELECT $1, $2").
				front('B', bindBody("", "", test.formats, []string{"a", "b"}, nil)).execute("").sync()
			r := s.parsed().bound("SELECT 1").ready('I').wantSQL(t, "SELECT $1, $2 | SELECT 1")
			var got []int16
			for _, p := range r.Queries[0].Params {
				got = append(got, p.Format)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("one code and no parameters", func(t *testing.T) {
		t.Parallel()
		newScript().parse("", "SELECT 1").front('B', bindBody("", "", []uint16{1}, nil, nil)).execute("").sync().
			parsed().bound("SELECT 1").ready('I').wantSQL(t, "SELECT 1 | SELECT 1")
	})
}

func TestExtendedPairing(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		script *script
		want   []string
	}{
		{
			"prepared once, executed twice", newScript().
				parse("s", "SELECT $1").sync().bind("", "s", "1").execute("").sync().bind("", "s", "2").execute("").sync().
				parsed().ready('I').bound("SELECT 1").ready('I').bound("SELECT 2").ready('I'),
			[]string{"SELECT $1 | SELECT 1", "SELECT $1 | SELECT 2"},
		},
		{
			// a bug of other proxies: a portal keeps the statement that it was bound to
			"portal is a snapshot", newScript().
				parse("", "SELECT 1").bind("p", "").parse("", "SELECT 2").execute("p").bind("q", "").execute("q").sync().
				parsed().back('2', "").parsed().complete("SELECT 1").bound("SELECT 2").ready('I'),
			[]string{"SELECT 1 | SELECT 1", "SELECT 2 | SELECT 2"},
		},
		{
			// a bug of other proxies: in Bind the portal's name precedes the statement's
			"names in order", newScript().
				parse("a", "SELECT 'a'").parse("b", "SELECT 'b'").bind("a", "b").execute("a").sync().
				parsed().parsed().bound("SELECT 1").ready('I'),
			[]string{"SELECT 'b' | SELECT 1"},
		},
		{
			"suspended portal is captured once", newScript().
				parse("", "SELECT 1").bind("p", "").execute("p").execute("p").execute("p").sync().
				parsed().back('2', "").back('s', "").back('s', "").complete("SELECT 1").ready('I'),
			[]string{"SELECT 1 | suspended"},
		},
		{
			"bound again is captured again", newScript().
				parse("s", "SELECT 1").bind("", "s").execute("").bind("", "s").execute("").sync().
				parsed().bound("SELECT 1").bound("SELECT 2").ready('I'),
			[]string{"SELECT 1 | SELECT 1", "SELECT 1 | SELECT 2"},
		},
		{
			"error in parse skips to sync", newScript().
				parse("", "SELEC").bind("", "").execute("").query("SELECT 0").sync().query("SELECT 2").
				fail().ready('I').complete("SELECT 2").ready('I'),
			[]string{"SELECT 2 | SELECT 2"},
		},
		{
			"error in the middle of a pipeline", newScript().
				parse("", "SELECT 1").bind("", "").execute("").
				parse("", "SELECT 1/0").bind("", "").execute("").
				parse("", "SELECT 3").bind("", "").execute("").sync().
				parse("", "SELECT 4").bind("", "").execute("").sync().
				parsed().bound("SELECT 1").parsed().back('2', "").failWith("22012").ready('I').parsed().bound("SELECT 4").ready('I'),
			[]string{"SELECT 1 | SELECT 1", "SELECT 1/0 | failed 22012", "SELECT 4 | SELECT 4"},
		},
		{
			"error in describe", newScript().front('D', "Sx\x00").sync().fail().ready('I').run1("SELECT 1", "SELECT 1", 'I'),
			[]string{"SELECT 1 | SELECT 1"},
		},
		{
			"error in describe before a simple query", newScript().front('D', "Sx\x00").query("SELECT 0").sync().query("SELECT 1").
				fail().ready('I').complete("SELECT 1").ready('I'),
			[]string{"SELECT 1 | SELECT 1"},
		},
		{
			"error in sync", newScript().
				parse("", "INSERT").bind("", "").execute("").sync().query("SELECT 1").
				parsed().bound("INSERT 0 1").fail().ready('I').complete("SELECT 1").ready('I'),
			[]string{"INSERT | INSERT 0 1", "SELECT 1 | SELECT 1"},
		},
		{
			"failed parse of the unnamed statement destroys it", newScript().
				parse("", "SELECT 1").parse("", "SELEC").sync().bind("", "").execute("").sync().
				parsed().fail().ready('I').back('2', "").complete("SELECT 1").ready('I'),
			nil,
		},
		{
			"simple query destroys the unnamed statement", newScript().
				parse("", "SELECT 1").sync().query("").bind("", "").execute("").sync().
				parsed().ready('I').back('I', "").ready('I').bound("SELECT 1").ready('I'),
			nil,
		},
		{
			"portals end with the transaction", newScript().
				parse("s", "SELECT 1").bind("p", "s").sync().execute("p").sync().
				parsed().back('2', "").ready('I').complete("SELECT 1").ready('I'),
			[]string{"EXPLAIN SELECT 1 | "},
		},
		{
			"portals live in a block", newScript().run1("BEGIN", "BEGIN", 'T').
				parse("s", "SELECT 1").bind("p", "s").sync().execute("p").sync().
				parsed().back('2', "").ready('T').complete("SELECT 1").ready('T'),
			[]string{"BEGIN | BEGIN", "SELECT 1 | SELECT 1"},
		},
		{
			"closed statement and portal", newScript().
				parse("s", "SELECT 1").bind("p", "s").close('S', "s").execute("p").close('P', "p").execute("p").bind("", "s").sync().
				parsed().back('2', "").back('3', "").complete("SELECT 1").back('3', "").complete("SELECT 2").back('2', "").ready('I'),
			[]string{"SELECT 1 | SELECT 1"},
		},
		{
			"empty statement", newScript().parse("", " -- ").bind("", "").execute("").sync().
				parsed().back('2', "").back('I', "").ready('I'), nil,
		},
		{
			"describe of a statement", newScript().parse("s", "SET x = 1").front('D', "Ss\x00").sync().
				parsed().back('n', "").ready('I').run1("SELECT 1", "SELECT 1", 'I'), []string{"SELECT 1 | SELECT 1"},
		},
		{
			"copy in", newScript().parse("", "COPY t FROM STDIN").bind("", "").execute("").sync().front('c', "").sync().
				parsed().back('2', "").back('G', "").complete("COPY 3").ready('I').run1("SELECT 1", "SELECT 1", 'I'),
			[]string{"COPY t FROM STDIN | COPY 3", "SELECT 1 | SELECT 1"},
		},
		{
			"copy in fails", newScript().parse("", "COPY t FROM STDIN").bind("", "").execute("").front('c', "").sync().
				parsed().back('2', "").back('G', "").fail().ready('I').run1("SELECT 1", "SELECT 1", 'I'),
			[]string{"COPY t FROM STDIN | failed", "SELECT 1 | SELECT 1"},
		},
		{
			"names are told apart by 63 bytes", newScript().parse(long(70), "SELECT 1").bind(long(80), long(64)).execute(long(63)).sync().
				parsed().bound("SELECT 1").ready('I'), []string{"SELECT 1 | SELECT 1"},
		},
		{
			"large parameters: the statement is still known", newScript().parse("s", "SELECT 1").sync().
				frontCut('B', "p\x00s\x00\x00\x00").execute("p").sync().bind("p", "s").execute("p").sync().
				parsed().ready('I').bound("SELECT 1").ready('I').bound("SELECT 2").ready('I'),
			[]string{"SELECT 1 | SELECT 2"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.script.wantSQL(t, test.want...)
		})
	}
}

func TestUnknownStatement(t *testing.T) {
	t.Parallel()
	again := func(s *script) *script {
		return s.bind("", "s").execute("").sync().bound("SELECT 1").ready('I')
	}
	prepared := func() *script {
		return newScript().parse("s", "SELECT 1").sync().parsed().ready('I')
	}
	tests := []struct {
		name   string
		script *script
		reason tracker.Reason
	}{
		{"prepared before capture began", again(newScript()), tracker.UnknownStatement},
		{"portal of a cursor", newScript().execute("c").sync().complete("FETCH 1").ready('I'), tracker.UnknownStatement},
		{"prepared anew in SQL, out of sight", again(prepared().query("DEALLOCATE s").complete("DEALLOCATE").ready('I').frontCut('Q', "").complete("PREPARE").ready('I')), tracker.UnknownStatement},
		{"executed in SQL, prepared before capture began", newScript().run1("EXECUTE s", "SELECT 1", 'I'), tracker.UnknownStatement},
		{"all deallocated", again(prepared().run1("DEALLOCATE ALL", "DEALLOCATE ALL", 'I')), tracker.UnknownStatement},
		{"discarded", again(prepared().run1("DISCARD ALL", "DISCARD ALL", 'I')), tracker.UnknownStatement},
		{"deallocated out of sight", again(prepared().frontCut('Q', "").complete("DEALLOCATE").ready('I')), tracker.UnknownStatement},
		{"some Parse not copied", again(prepared().frontCut('P', "").sync().parsed().ready('I')), tracker.UnknownStatement},
		{"its Parse not copied", again(newScript().frontCut('P', "s\x00SEL").sync().parsed().ready('I')), tracker.NotCopied},
		{"some Bind not copied", prepared().bind("p", "s").frontCut('B', "p").execute("p").sync().back('2', "").bound("SELECT 1").ready('I'), tracker.UnknownStatement},
		{"Execute not copied", prepared().bind("", "s").frontCut('E', "").sync().bound("SELECT 1").ready('I'), tracker.NotCopied},
		{"some Close not copied", again(prepared().frontCut('C', "").sync().back('3', "").ready('I')), tracker.UnknownStatement},
		{"Bind is not well formed", prepared().front('B', "\x00s\x00\x00\x01").execute("").sync().bound("SELECT 1").ready('I'), tracker.UnknownStatement},
		{"two statements in Parse", again(newScript().parse("s", "SELECT 1; SELECT 2").sync().parsed().ready('I')), tracker.Unreadable},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := test.script.run1("SELECT 'after'", "SELECT 1", 'I').run(t)
			if n := len(r.Queries); n == 0 || r.Queries[n-1].SQL != "SELECT 'after'" || !r.Queries[n-1].Doubt.Has("dp.epsilon") {
				t.Errorf("queries: %+v; want the last one with uncertain settings", r.Queries)
			}
			for _, q := range r.Queries {
				if q.Protocol == capture.Extended && !strings.HasPrefix(q.SQL, "EXPLAIN ") {
					t.Errorf("captured %q", q.SQL)
				}
			}
			if r.Counts.Skipped[test.reason] == 0 {
				t.Errorf("skipped %v; want reason %d", r.Counts.Skipped, test.reason)
			}
		})
	}
}

// TestHeldMemory prepares more statements than can be kept: they are counted and followed, not captured.
func TestHeldMemory(t *testing.T) {
	t.Parallel()
	s := newScript()
	for _, name := range []string{"a", "b"} {
		s.parse(name, "SET x.y = '"+long(150)+"'").sync().parsed().ready('I')
	}
	for _, name := range []string{"a", "b"} {
		s.bind("", name).execute("").sync().bound("SET").ready('I')
	}
	s.run1("SELECT 1", "SELECT 1", 'I')
	var r result
	cfg := s.config(&r)
	cfg.MaxHeldBytes = 1600
	tr := tracker.New(cfg)
	for i := range max(len(s.client), len(s.server)) {
		var client, server []byte
		if i < len(s.client) {
			client = s.client[i]
		}
		if i < len(s.server) {
			server = s.server[i]
		}
		tr.Feed(client, server)
	}
	if got, want := len(r.Queries), 2; got != want {
		t.Fatalf("captured %d queries, want %d", got, want)
	}
	last := r.Queries[1]
	if r.Counts.Skipped[tracker.NotCopied] != 1 || !last.Doubt.None() || last.Settings["x.y"] == "" {
		t.Errorf("skipped %v, last query %+v", r.Counts.Skipped, last)
	}
}

// TestPortalAndSettings: the server resolves a portal's names at Bind. If another statement changed the settings before
// its Execute, the captured settings are uncertain.
func TestPortalAndSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		between   string
		uncertain bool
	}{
		"nothing changed": {"SELECT 1", false},
		"same again":      {"SET dp.start = 1", false},
		"search_path":     {"SET search_path = x", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript().parse("q", "SELECT * FROM t").front('B', bindBody("p", "q", nil, nil, nil)).
				parse("", c.between).front('B', bindBody("", "", nil, nil, nil)).execute("").execute("p").sync()
			r := s.parsed().back('2', "").parsed().bound("X").complete("SELECT 1").ready('I').run(t)
			if n := len(r.Queries); n == 0 || r.Queries[n-1].SQL != "SELECT * FROM t" || r.Queries[n-1].Doubt.Has("search_path") != c.uncertain {
				t.Errorf("%+v; want the portal's query last, uncertain %t", r.Queries, c.uncertain)
			}
		})
	}
}
