package tracker_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

func TestSimple(t *testing.T) {
	t.Parallel()
	s := newScript().query(" SELECT 1 /*dp_epsilon='0.5'*/; ")
	s.back('T', "")
	s.server = append(s.server, tracker.AppendTime(nil, at(5)))
	got := s.complete("SELECT 1").ready('I').run(t)
	want := []capture.Query{{
		SessionID: 7, User: "ann", Database: "bank", ApplicationName: "app",
		SQL: "SELECT 1 /*dp_epsilon='0.5'*/", Tag: "SELECT 1", Completed: at(5),
		Settings: map[string]string{"dp.start": "1"},
	}}
	if diff := cmp.Diff(want, got.Queries); diff != "" {
		t.Error(diff)
	}
}

func TestSimplePairing(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		script *script
		want   []string
	}{
		{"one after the other", newScript().run1("SELECT 1", "SELECT 1", 'I').run1("SELECT 2", "SELECT 2", 'I'), []string{"SELECT 1 | SELECT 1", "SELECT 2 | SELECT 2"}},
		{"two statements", newScript().query("SELECT 1;;SELECT ';'").complete("SELECT 1").complete("SELECT 2").ready('I'), []string{"SELECT 1 | SELECT 1", "SELECT ';' | SELECT 2"}},
		{"first error stops", newScript().query("SELECT 1; SELECT 1/0; SELECT 3").complete("SELECT 1").fail().ready('I').run1("SELECT 4", "SELECT 1", 'I'), []string{"SELECT 1 | SELECT 1", "SELECT 1/0 | failed", "SELECT 4 | SELECT 1"}},
		{"syntax error", newScript().query("SELEC 1").failAt("42601").ready('I').run1("SELECT 4", "SELECT 1", 'I'), []string{"SELECT 4 | SELECT 1"}},
		{"empty", newScript().query(" ; -- nothing").back('I', "").ready('I').run1("SELECT 4", "SELECT 1", 'I'), []string{"SELECT 4 | SELECT 1"}},
		{"pipelined", newScript().query("SELECT 1").query("SELECT 2").complete("SELECT 1").ready('I').fail().ready('I').query("SELECT 3").complete("SELECT 3").ready('I'), []string{"SELECT 1 | SELECT 1", "SELECT 2 | failed", "SELECT 3 | SELECT 3"}},
		{"asynchronous status", newScript().query("SELECT 1").status("TimeZone", "UTC").complete("SELECT 1").status("TimeZone", "UTC").ready('I').status("TimeZone", "UTC").run1("SELECT 2", "SELECT 2", 'I'), []string{"SELECT 1 | SELECT 1", "SELECT 2 | SELECT 2"}},
		{"without an answer", newScript().query("SELECT 1").complete("SELECT 1").query("SELECT 2"), nil},
		{"copy in", newScript().query("COPY t FROM STDIN; SELECT 1").back('G', "").front('c', "").complete("COPY 2").complete("SELECT 1").ready('I'), []string{"COPY t FROM STDIN | COPY 2", "SELECT 1 | SELECT 1"}},
		{"copy in, syncs ignored", newScript().query("COPY t FROM STDIN").back('G', "").sync().front('c', "").complete("COPY 2").ready('I').run1("SELECT 1", "SELECT 1", 'I'), []string{"COPY t FROM STDIN | COPY 2", "SELECT 1 | SELECT 1"}},
		{"copy in, bad data", newScript().query("COPY t FROM STDIN").back('G', "").fail().ready('I').front('c', "").run1("SELECT 1", "SELECT 1", 'I'), []string{"COPY t FROM STDIN | failed", "SELECT 1 | SELECT 1"}},
		{"copy in, bad data, then again", newScript().query("COPY t FROM STDIN").back('G', "").fail().ready('I').front('c', "").query("COPY u FROM STDIN").back('G', "").front('c', "").complete("COPY 1").ready('I'), []string{"COPY t FROM STDIN | failed", "COPY u FROM STDIN | COPY 1"}},
		{"copy in, failed by the client", newScript().query("COPY t FROM STDIN").back('G', "").front('f', "").fail().ready('I').run1("SELECT 1", "SELECT 1", 'I'), []string{"COPY t FROM STDIN | failed", "SELECT 1 | SELECT 1"}},
		{"copy in, failed without CopyDone", newScript().query("COPY t FROM STDIN").back('G', "").fail().ready('I').run1("SELECT 1", "SELECT 1", 'I').sync().ready('I'), []string{"COPY t FROM STDIN | failed", "SELECT 1 | SELECT 1"}},
		{"function call", newScript().front('F', "").back('V', "").ready('I').run1("SELECT 1", "SELECT 1", 'I'), []string{"SELECT 1 | SELECT 1"}},
		{"failed function call", newScript().front('F', "").fail().ready('I').run1("SELECT 1", "SELECT 1", 'I'), []string{"SELECT 1 | SELECT 1"}},
		{"stray copy messages", newScript().front('c', "").front('f', "").run1("SELECT 1", "SELECT 1", 'I'), []string{"SELECT 1 | SELECT 1"}},
		{"before authentication ends", &script{client: newScript().query("SELECT 1").client, server: newScript().complete("SELECT 1").ready('I').server}, []string{"SELECT 1 | SELECT 1"}},
		{"error at login", (&script{}).fail(), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.script.wantSQL(t, test.want...)
		})
	}
}

func TestSkipped(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		script *script
		reason tracker.Reason
		n      uint64
	}{
		{"latin1 with other bytes", newScript().status("client_encoding", "LATIN1").run1("SELECT '\xe4'", "SELECT 1", 'I'), tracker.Encoding, 1},
		{"encoding not reported", (&script{}).status("standard_conforming_strings", "on").ready('I').run1("SELECT 1", "SELECT 1", 'I'), tracker.Encoding, 1},
		{"encoding report not copied", func() *script {
			s := newScript()
			s.server = append(s.server, tracker.AppendCut(nil, 'S', 0))
			return s.run1("SELECT 1", "SELECT 1", 'I')
		}(), tracker.Strings, 1},
		{"ascii with other bytes", newScript().status("client_encoding", "SQL_ASCII").run1("SELECT 'ä'", "SELECT 1", 'I'), tracker.Encoding, 1},
		{"ascii parameter with other bytes", newScript().status("client_encoding", "SQL_ASCII").
			parse("", "SELECT $1", 25).bind("", "", "\xff").execute("").sync().
			back('1', "").back('2', "").complete("SELECT 1").ready('I'), tracker.Encoding, 1},
		{"backslashes in strings", newScript().status("standard_conforming_strings", "off").run1(`SELECT '\''`, "SELECT 1", 'I'), tracker.Strings, 1},
		{"encoding may have changed in the pipeline", newScript().
			parse("", "SET client_encoding = sjis").bind("", "").execute("").parse("", "SELECT '\xe4'").bind("", "").execute("").sync().
			back('1', "").back('2', "").complete("SET").back('1', "").back('2', "").complete("SELECT 1").status("client_encoding", "SJIS").ready('I'), tracker.Encoding, 1},
		{"too long", newScript().run1("SELECT '"+long(200)+"'", "SELECT 1", 'I'), tracker.TooLong, 1},
		{"too many statements", newScript().run1(long2("SELECT 1;", 300), "SELECT 1", 'I'), tracker.TooLong, 1},
		{"not copied", newScript().frontCut('Q', "SELECT").complete("SELECT 1").complete("SELECT 1").ready('I'), tracker.NotCopied, 2},
		{"zero byte in the text", newScript().query("SELECT 1\x00 ").complete("SELECT 1").ready('I'), tracker.Unreadable, 1},
		{"no zero byte", newScript().front('Q', "SELECT 1").complete("SELECT 1").ready('I'), tracker.Unreadable, 1},
		{"empty body", newScript().front('Q', "").complete("SELECT 1").ready('I'), tracker.Unreadable, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := test.script.run(t)
			for _, q := range r.Queries {
				if q.Tag != "SET" {
					t.Errorf("captured %q", q.SQL)
				}
			}
			if r.Counts.Skipped[test.reason] != test.n || r.Off != tracker.On {
				t.Errorf("skipped %v, off %d; want reason %d %d times", r.Counts.Skipped, r.Off, test.reason, test.n)
			}
		})
	}
}

func long2(s string, n int) string {
	out := ""
	for range n {
		out += s
	}
	return out
}

// TestReadableAgain: text in another encoding is captured if it is ASCII, and followed if its syntax can be read. When
// UTF8 returns, only settings whose values could not be read are in doubt.
func TestReadableAgain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, encoding, sql string
		doubt               []string // of a.b and a.c
		captured            bool
	}{
		{"ascii", "LATIN1", "SET a.b = 1", nil, true},
		{"other bytes", "LATIN1", "SET a.b = '\xe4'", []string{"a.b"}, false},
		{"other bytes in set_config", "LATIN1", "SELECT set_config('a.b', '\xe4', false)", []string{"a.b"}, false},
		{"other bytes elsewhere", "EUC_JP", "SELECT '\xa4\xa2'", nil, false},
		{"ascii in an encoding with ASCII bytes in other characters", "SJIS", "SET a.b = 1", nil, true},
		{"other bytes in such an encoding", "SJIS", "SELECT '\x83\x5c'", []string{"a.b", "a.c"}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newScript().query("SET NAMES '"+test.encoding+"'").complete("SET").status("client_encoding", test.encoding).ready('I').
				run1(test.sql, "X", 'I').
				query("SET NAMES 'UTF8'").complete("SET").status("client_encoding", "UTF8").ready('I').
				run1("SELECT 1", "SELECT 1", 'I').run(t)
			last := r.Queries[len(r.Queries)-1]
			var doubt []string
			for _, name := range []string{"a.b", "a.c"} {
				if last.Doubt.Has(name) {
					doubt = append(doubt, name)
				}
			}
			if diff := cmp.Diff(test.doubt, doubt); diff != "" {
				t.Errorf("in doubt: %s", diff)
			}
			if captured := slices.Contains(r.sqls(), test.sql+" | X"); captured != test.captured {
				t.Errorf("captured: %v, want %v", captured, test.captured)
			}
			if test.captured && last.Settings["a.b"] != "1" {
				t.Errorf("settings are %v, want a.b = 1", last.Settings)
			}
		})
	}
}

func TestASCIIIsCaptured(t *testing.T) {
	t.Parallel()
	newScript().status("client_encoding", "SQL_ASCII").run1("SELECT 1", "SELECT 1", 'I').wantSQL(t, "SELECT 1 | SELECT 1")
}

// TestOutOfStep: when the answers do not match the messages, nothing is captured up to a gap, and everything behind it.
func TestOutOfStep(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		script *script
		want   []string
	}{
		{"answer of another kind", newScript().run1("SELECT 1", "SELECT 1", 'I').query("SELECT 2").back('1', ""), []string{"SELECT 1 | SELECT 1"}},
		{"fewer completions than statements", newScript().query("SELECT 1; SELECT 2").complete("SELECT 1").ready('I'), nil},
		{"more completions than statements", newScript().query("SELECT 1").complete("SELECT 1").complete("SELECT 1").ready('I'), nil},
		{"all completed and an error", newScript().query("SELECT 1").complete("SELECT 1").fail().ready('I'), nil},
		{"empty but it is not", newScript().query("SELECT 1").back('I', "").ready('I'), nil},
		{"bad status", newScript().query("SELECT 1").complete("SELECT 1").back('Z', "x"), []string{"SELECT 1 | SELECT 1"}},
		{"unknown message", newScript().front('!', ""), nil},
		{"query in the middle of copy in", newScript().query("COPY t FROM STDIN").back('G', "").query("SELECT 1").complete("COPY 1"), nil},
		{"message behind a copy that failed between syncs", newScript().
			parse("", "COPY t FROM STDIN").bind("", "").execute("").sync().front('c', "").parse("", "SELECT 1").sync().
			back('1', "").back('2', "").back('G', "").fail().ready('I'), []string{"COPY t FROM STDIN | failed"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.script.run1("SELECT 'lost'", "SELECT 1", 'I').gap().run1("SELECT 'found'", "SELECT 1", 'I')
			r := test.script.wantSQL(t, append(test.want, "SELECT 'found' | SELECT 1")...)
			if r.Counts.Off[tracker.OffPairing] != 1 || r.Counts.Off[tracker.OffOverflow] != 0 {
				t.Errorf("interruptions %v", r.Counts.Off)
			}
		})
	}
}

// TestSyncsOfFailedCopy: it is unknown which of the Sync messages the server read during a COPY that failed; what is
// behind them is paired either way.
func TestSyncsOfFailedCopy(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]int{"ignored": 1, "answered": 2} {
		for _, protocol := range []string{"extended", "simple"} {
			t.Run(protocol+" "+name, func(t *testing.T) {
				t.Parallel()
				s := newScript()
				if protocol == "simple" {
					s.query("COPY t FROM STDIN").sync().front('c', "").sync().back('G', "").fail().ready('I')
				} else {
					s.parse("", "COPY t FROM STDIN").bind("", "").execute("").sync().front('c', "").sync().parsed().back('2', "").back('G', "").fail()
				}
				for range answers {
					s.ready('I')
				}
				s.sync().ready('I').run1("SELECT 1", "SELECT 1", 'I').parse("", "SELECT 2").bind("", "").execute("").sync().
					parsed().bound("SELECT 2").ready('I').wantSQL(t, "COPY t FROM STDIN | failed", "SELECT 1 | SELECT 1", "SELECT 2 | SELECT 2")
			})
		}
	}
}
