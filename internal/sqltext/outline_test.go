package sqltext_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

func TestOutline(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ sql, want string }{
		{"SELECT 1", "SELECT ?"},
		{"SELECT  noisy(sum(x), 0.5)\n FROM  \"s\".people WHERE mrn = 'MRN777' -- 'note'", `SELECT noisy(sum(x), ?) FROM "s".people WHERE mrn = ?`},
		{"SELECT /* secret /* deep */ */ $1::int + 0x1F, E'it\\'s', $a$ body $a$, u&'x', B'01'", "SELECT $1::int + ?, ..."},
		{"x IN (1, 2, 3) AND y IN ('a')", "x IN (?, ...) AND y IN (?)"},
		{"f(1,'a',x, 2)", "f(?, ...,x, ?)"},
		{`SELECT "Smith, John", "MRN 777", "plain_1", U&"\0041"`, `SELECT "...", "...", "plain_1", U&"..."`},
		{"SELECT 'no end", "SELECT ?"},
		{"SELECT $$no end", "SELECT ?"},
		{"", ""},
		{"-- only a comment", ""},
	} {
		if got := sqltext.Outline(test.sql, 200); got != test.want {
			t.Errorf("%q: %q, want %q", test.sql, got, test.want)
		}
	}
	for _, test := range []struct{ sql, want string }{
		{"SELECT noisy(1) FROM t WHERE a = 'it\\'s MRN777' OR b = 'x'", "SELECT noisy(?) FROM t WHERE a = ..."},
		{"SELECT 1", "SELECT ?"},
		{"SELECT \xe9MRN", "SELECT ..."},
	} {
		if got := sqltext.OutlineUnread(test.sql, 200); got != test.want {
			t.Errorf("unread %q: %q, want %q", test.sql, got, test.want)
		}
	}
	if got := sqltext.Outline("SELECT "+strings.Repeat("a, ", 1000), 60); len(got) > 60 || !strings.HasSuffix(got, "...") {
		t.Errorf("a long text: %d bytes, %q", len(got), got)
	}
}

// FuzzOutline: the result is short, printable UTF-8 in one line, and holds no constant of the text.
func FuzzOutline(f *testing.F) {
	f.Add("SELECT a FROM t WHERE x = ", " AND y = 2")
	f.Add("SELECT E'\\'' || ", "")
	f.Add("SELECT \"a\" \xff", "--")
	f.Fuzz(func(t *testing.T, before, after string) {
		for _, outline := range []string{sqltext.Outline(before+"'MRN777QXZ'"+after, 100), sqltext.OutlineUnread(before+after, 100)} {
			if len(outline) > 100 || !utf8.ValidString(outline) || strings.ContainsAny(outline, "\n\x00") {
				t.Errorf("%q", outline)
			}
		}
	})
}
