package sqltext_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	r := strings.Repeat
	limits := sqltext.Limits{Tokens: 1000, Depth: 50, Comments: 10, Operators: 20}
	for name, c := range map[string]struct{ sql, want string }{
		"nothing":                           {"", ""},
		"a query":                           {"SELECT a, count(*) FROM t WHERE x BETWEEN 1 AND 2 AND y IS NOT NULL GROUP BY a ORDER BY 2 DESC", ""},
		"tokens":                            {r("a ", 1000), ""},
		"one token more":                    {r("a ", 1001), sqltext.ExcessTokens},
		"comments are no tokens":            {r("/* a */ -- b\n", 1000), ""},
		"a sum":                             {"SELECT 1" + r(" + 1", 49), ""},
		"a longer sum":                      {"SELECT 1" + r(" + 1", 50), sqltext.ExcessDepth},
		"a sum behind deep parentheses":     {"SELECT " + r("(", 30) + "1" + r(")", 30) + r(" + 1", 30), sqltext.ExcessDepth},
		"sums":                              {"SELECT 1" + r(" + 1", 40) + ", 1" + r(" + 1", 40), ""},
		"sums joined by AND":                {"SELECT 1" + r(" + 1", 40) + " = 1 AND 1" + r(" + 1", 40) + " = 1", ""},
		"column called and":                 {"SELECT 1" + r(" + a.and", 60), sqltext.ExcessDepth},
		"columns called by":                 {"SELECT 1" + r(" + by", 60), sqltext.ExcessDepth},
		"signs":                             {"SELECT " + r("- ", 60) + "1", sqltext.ExcessDepth},
		"casts":                             {"SELECT 1" + r("::int", 49), ""},
		"more casts":                        {"SELECT 1" + r("::int", 50), sqltext.ExcessDepth},
		"NOT":                               {"SELECT " + r("NOT ", 60) + "a", sqltext.ExcessDepth},
		"IS NULL":                           {"SELECT a" + r(" IS NULL", 60), sqltext.ExcessDepth},
		"IN":                                {"SELECT a" + r(" IN (1)", 60), sqltext.ExcessDepth},
		"OPERATOR":                          {"SELECT 1" + r(" OPERATOR(pg_catalog.+) 1", 60), sqltext.ExcessDepth},
		"COLLATE":                           {"SELECT 1" + r(" COLLATE c", 60), sqltext.ExcessDepth},
		"AT TIME ZONE":                      {"SELECT 1" + r(" AT TIME ZONE c", 60), sqltext.ExcessDepth},
		"BETWEEN":                           {"SELECT 1" + r(" BETWEEN 1 AND NOT 1", 60), sqltext.ExcessDepth},
		"AND":                               {"SELECT 1 WHERE a" + r(" AND a = 1 OR b = 2", 70), ""},
		"a list":                            {"SELECT 1 WHERE a IN (1" + r(", 1", 400) + ")", ""},
		"parentheses":                       {r("(", 60) + r(")", 60), sqltext.ExcessDepth},
		"open parentheses":                  {r("(", 60), sqltext.ExcessDepth},
		"brackets":                          {"SELECT ARRAY" + r("[", 60) + r("]", 60), sqltext.ExcessDepth},
		"subscripts":                        {"SELECT a" + r("[1]", 100), ""},
		"functions":                         {"SELECT " + r("f(", 60) + r(")", 60), sqltext.ExcessDepth},
		"CASE":                              {"SELECT " + r("CASE WHEN a THEN ", 60) + "1" + r(" END", 60), sqltext.ExcessDepth},
		"CASE without END":                  {"SELECT " + r("CASE WHEN a THEN ", 60), sqltext.ExcessDepth},
		"columns called end":                {"SELECT " + r("CASE WHEN t.end THEN ", 60) + "1" + r(" END", 60), sqltext.ExcessDepth},
		"labels":                            {"SELECT " + r("1 AS end, 1 AS case, ", 60) + "1", ""},
		"branches":                          {"SELECT CASE " + r("WHEN a = 1 THEN b + 1 ", 70) + "ELSE 1 END", ""},
		"JOIN":                              {"SELECT 1 FROM a" + r(" JOIN b ON x = y AND y = z", 60), sqltext.ExcessDepth},
		"UNION":                             {"SELECT 1, 2" + r(" UNION SELECT 1, 2", 60), sqltext.ExcessDepth},
		"statements":                        {r("SELECT 1 + 1 FROM a JOIN b ON true;", 60), ""},
		"routines in routines":              {r("CREATE FUNCTION f() RETURNS int BEGIN ATOMIC ", 60), sqltext.ExcessDepth},
		"in a string":                       {"SELECT '" + r("(", 200) + "', $$" + r("(", 200) + "$$, \"" + r("(", 200) + "\"", ""},
		"in a comment":                      {"SELECT /*" + r("(", 200) + "*/ 1 --" + r("(", 200), ""},
		"comments in comments":              {r("/* ", 10) + r("*/", 10), ""},
		"more comments in comments":         {r("/* ", 11) + r("*/", 11), sqltext.ExcessComments},
		"comments in comments, unclosed":    {r("/*x", 11), sqltext.ExcessComments},
		"comments one after the other":      {r("/**/ ", 100), ""},
		"comments without anything between": {r("/**/", 30), sqltext.ExcessOperators},
		"operators in a row":                {"SELECT 1 " + r("*", 21) + " 1", sqltext.ExcessOperators},
		"operators and comments in a row":   {"SELECT 1 " + r("+/**/", 11) + " 1", sqltext.ExcessOperators},
		"a line of a comment":               {"SELECT 1 " + r("-", 100) + "\n/" + r("*", 100) + "/", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := sqltext.Check(c.sql, limits)
			switch {
			case got == nil && c.want != "":
				t.Errorf("nothing, want %q", c.want)
			case got != nil && got.What != c.want:
				t.Errorf("%q at %d, want %q", got.What, got.Offset, c.want)
			case got != nil && (got.Offset < 0 || got.Offset > len(c.sql)):
				t.Errorf("offset %d of %d", got.Offset, len(c.sql))
			}
		})
	}
}

// TestCheckIsLinear: a megabyte of text that can occupy a parser for hours is scanned quickly. Otherwise the test would
// hit the time limit of all tests.
func TestCheckIsLinear(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"/*", "+", "(", "[", "CASE ", "/**/", "1+", "NOT ", "'a' ", "$a$", "$a", "--\n", "U&'", "--"} {
		sql := strings.Repeat(piece, (1<<20)/len(piece))
		sqltext.Check(sql, sqltext.Limits{Depth: 1 << 30})
		sqltext.Shape(sql)
	}
}

func TestShape(t *testing.T) {
	t.Parallel()
	same := [][]string{
		{"SELECT count(*) FROM users WHERE id<>1", "select COUNT(*) from users\nwhere id <> 17 /* x /* y */ */", "SELECT count(*) FROM users WHERE id<>'x' -- y", "SELECT count(*) FROM users WHERE id<>$1", "SELECT count(*) FROM users WHERE id<>U&'x'"},
		{"SELECT 1+1", "SELECT 1 + 2 + 3 + 4"},
		{"SELECT a IN (1, 2)", "SELECT a IN (3, 4, 5)"},
		{"SELECT ((1))", "SELECT (((2)))"},
		{"SELECT - - 1", "SELECT - - - 1"},
		{`SELECT "A" FROM t`, `SELECT  "A" FROM T`},
		{`SELECT "a" FROM t`},
		{"SELECT 1 - 1"},
		{"SELECT a FROM t"},
	}
	seen := map[[32]byte]int{}
	for i, class := range same {
		for _, sql := range class {
			hash := sqltext.Shape(sql)
			if j, ok := seen[hash]; ok && j != i {
				t.Errorf("%s has the shape of %s", sql, same[j][0])
			} else if !ok && sql != class[0] {
				t.Errorf("%s has not the shape of %s", sql, class[0])
			}
			seen[hash] = i
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("SELECT 1 + (2) /* /* */ */ -- x\n, CASE WHEN a.end THEN $a$ x $a$ END")
	f.Fuzz(func(t *testing.T, sql string) {
		if e := sqltext.Check(sql, sqltext.Limits{Tokens: 5, Depth: 3, Comments: 1, Operators: 3}); e != nil && (e.Offset < 0 || e.Offset > len(sql)) {
			t.Errorf("offset %d of %d", e.Offset, len(sql))
		}
		sqltext.Shape(sql)
	})
}
