package sqltext_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

func ExampleSplit() {
	for _, statement := range sqltext.Split("SET dp.epsilon = '0.5'; SELECT ';' /* ; */; -- done") {
		fmt.Println(statement)
	}
	// Output:
	// SET dp.epsilon = '0.5'
	// SELECT ';' /* ; */
}

func TestSplit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     []string
	}{
		{"empty", "", nil},
		{"only space and comments", " ;; /* a /* b */ ; */ -- c\n ; ", nil},
		{"no semicolon", "SELECT 1", []string{"SELECT 1"}},
		{"semicolon and space", " SELECT 1 ; ", []string{"SELECT 1"}},
		{"empty between", "SELECT 1;;SELECT 2", []string{"SELECT 1", "SELECT 2"}},
		{"string", "SELECT 'a;''b;'; SELECT 2", []string{"SELECT 'a;''b;'", "SELECT 2"}},
		{"backslash in plain string", `SELECT 'a\'; SELECT 2`, []string{`SELECT 'a\'`, "SELECT 2"}},
		{"escape string", `SELECT e'a\';b', 1; SELECT 2`, []string{`SELECT e'a\';b', 1`, "SELECT 2"}},
		{"escape string continued", "SELECT E'a' \n 'b\\';c'; SELECT 2", []string{"SELECT E'a' \n 'b\\';c'", "SELECT 2"}},
		{"escape string continued behind a comment", "SELECT E'a' -- x\n 'b\\';c'; SELECT 2", []string{"SELECT E'a' -- x\n 'b\\';c'", "SELECT 2"}},
		{"string not continued on one line", `SELECT E'a' 'b\'; SELECT 2`, []string{`SELECT E'a' 'b\'`, "SELECT 2"}},
		{"unicode string", `SELECT U&'a\'; SELECT 2`, []string{`SELECT U&'a\'`, "SELECT 2"}},
		{"bit string", `SELECT b'1'; SELECT X'f'; SELECT n'\'`, []string{"SELECT b'1'", "SELECT X'f'", `SELECT n'\'`}},
		{"identifier ending in e", `SELECT name'a\'; SELECT 2`, []string{`SELECT name'a\'`, "SELECT 2"}},
		{"quoted identifier", `SELECT "a;""b;"; SELECT 2`, []string{`SELECT "a;""b;"`, "SELECT 2"}},
		{"unicode identifier", `SELECT U&"a;"; SELECT 2`, []string{`SELECT U&"a;"`, "SELECT 2"}},
		{"dollar", "SELECT $$a;'$$; SELECT 2", []string{"SELECT $$a;'$$", "SELECT 2"}},
		{"dollar with tag", "SELECT $x$;$$;$y$;$x$; SELECT 2", []string{"SELECT $x$;$$;$y$;$x$", "SELECT 2"}},
		{"dollar in identifier", "SELECT a$$ ; SELECT b$$", []string{"SELECT a$$", "SELECT b$$"}},
		{"dollar tag with a digit first", "SELECT $1$;$1$; SELECT 2", []string{"SELECT $1$", "$1$", "SELECT 2"}},
		{"dollar behind a number", "SELECT 1$$;$$; SELECT 2", []string{"SELECT 1$$;$$", "SELECT 2"}},
		{"parameter", "SELECT $1;SELECT $2", []string{"SELECT $1", "SELECT $2"}},
		{"nested comment", "SELECT /* ; /* ; */ ; */ 1; SELECT 2", []string{"SELECT /* ; /* ; */ ; */ 1", "SELECT 2"}},
		{"comment ended by a carriage return", "SELECT 1 -- ;\r; SELECT 2", []string{"SELECT 1 -- ;", "SELECT 2"}},
		{"comment behind an operator", "SELECT 1 +/* ; */ 2; SELECT 3--;", []string{"SELECT 1 +/* ; */ 2", "SELECT 3--;"}},
		{"sqlcommenter", "SELECT 1 /*dp_epsilon='0.5'*/;", []string{"SELECT 1 /*dp_epsilon='0.5'*/"}},
		{"comment first", "/* a */ SELECT 1; /* b */ SELECT 2", []string{"/* a */ SELECT 1", "/* b */ SELECT 2"}},
		{"rule", "CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2); SELECT 3", []string{"CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2)", "SELECT 3"}},
		{
			"begin atomic", "CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; END; SELECT 3",
			[]string{"CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; END", "SELECT 3"},
		},
		{"begin is a statement too", "BEGIN; SELECT 1; END", []string{"BEGIN", "SELECT 1", "END"}},
		{"unterminated string", "SELECT 'a; SELECT 2", []string{"SELECT 'a; SELECT 2"}},
		{"unterminated comment", "SELECT 1; /* SELECT 2;", []string{"SELECT 1"}},
		{"unterminated escape", `SELECT E'\`, []string{`SELECT E'\`}},
		{"closing parenthesis too many", "SELECT 1); SELECT 2", []string{"SELECT 1)", "SELECT 2"}},
		{"no-break space is part of a name", "SELECT 1 a\u00a0;", []string{"SELECT 1 a\u00a0"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, sqltext.Split(test.in)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzSplit: the statements occur in the text in order, none is empty, and a single, terminated statement splits into
// itself.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{
		"SELECT 1; SELECT 'a;b'", "E'\\';' ; $x$;$x$; /* /* */ ; */", "create function f begin; end; 1", `U&"`, "1e+5;.5e-3;0xe-1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		rest := sql
		for _, statement := range sqltext.Split(sql) {
			if statement == "" {
				t.Fatal("an empty statement")
			}
			i := strings.Index(rest, statement)
			if i < 0 {
				t.Fatalf("statement %q does not follow in %q", statement, rest)
			}
			rest = rest[i+len(statement):]
			if again := sqltext.Split(statement); len(again) != 1 || again[0] != statement {
				t.Fatalf("%q splits again into %q", statement, again)
			}
			sqltext.Analyze(statement)
		}
		sqltext.Analyze(sql)
	})
}
