package rewrite_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// TestHostile analyses statements that could harm the parser or this package: for each, Analyze returns a plan or a
// refusal.
func TestHostile(t *testing.T) {
	t.Parallel()
	repeat := strings.Repeat
	for name, c := range map[string]struct {
		sql  string
		want rewrite.Reason // "" = analysed
	}{
		"NUL":                      {"SELECT 1\x00 FROM users", reasons.InvalidEncoding},
		"not UTF-8":                {"SELECT '\xc3\x28' FROM users", reasons.InvalidEncoding},
		"too long":                 {"SELECT 1 FROM users" + repeat(" ", 256<<10), reasons.TooLarge},
		"sum of 12,000":            {"SELECT 1" + repeat("+1", 12_000) + " FROM users", reasons.TooLarge},
		"sum of 6,000":             {"SELECT 1" + repeat("+1", 6_000) + " FROM users", reasons.TooDeep},
		"sum of 990":               {"SELECT 1" + repeat("+1", 990) + " FROM users", ""},
		"100,000 signs":            {"SELECT " + repeat("+", 100_000) + "1 FROM users", reasons.TooLarge},
		"9,000 signs":              {"SELECT " + repeat("+", 9_000) + "1 FROM users", reasons.TooDeep},
		"comments, 33,000 deep":    {"SELECT count(*) FROM users WHERE id<>1 " + repeat("/*", 33_000) + repeat("*/", 33_000), reasons.TooDeep},
		"comments, 50 deep":        {"SELECT count(*) FROM users " + repeat("/* ", 50) + repeat("*/ ", 50), ""},
		"parentheses, 9,000 deep":  {"SELECT " + repeat("(", 9_000) + "1" + repeat(")", 9_000) + " FROM users", reasons.TooDeep},
		"parentheses, 990 deep":    {"SELECT " + repeat("(", 990) + "1" + repeat(")", 990) + " FROM users", ""},
		"sub-selects, 990 deep":    {repeat("SELECT * FROM (", 990) + "SELECT 1 FROM users" + repeat(") x", 990), ""},
		"sub-selects, 4,900 deep":  {repeat("SELECT (", 4_900) + "SELECT 1" + repeat(")", 4_900), reasons.TooDeep},
		"nested WITH, 990 deep":    {repeat("WITH a AS (", 990) + "SELECT 1 FROM users" + repeat(") SELECT * FROM a", 990), ""},
		"900 terms of OR":          {"SELECT 1 FROM users WHERE id = 1" + repeat(" OR id BETWEEN 2 AND 3 + 4", 900), ""},
		"5,000 sibling CTEs":       {"WITH a AS (SELECT 1)" + repeat(", a AS (TABLE a)", 2_200) + " SELECT * FROM a, users", ""},
		"10,000 statements":        {repeat("SELECT 1;", 6_000), reasons.MultipleStatements},
		"IN list of 9,000":         {"SELECT 1 FROM users WHERE id IN (1" + repeat(",1", 9_000) + ")", ""},
		"7,000 unknown functions":  {"SELECT f()" + repeat(",f()", 4_000) + " FROM users", reasons.UnknownFunction},
		"nested allowed functions": {"SELECT " + repeat("clip(", 990) + "'users'" + repeat(")", 990) + " FROM transactions", reasons.NameInString},
		"open comment":             {"SELECT 1 FROM users /*" + repeat("/*", 5_000), reasons.TooDeep},
		"open quote":               {`SELECT 1 FROM "users`, reasons.Unparseable},
		"empty quoted name":        {`SELECT 1 FROM ""`, reasons.Unparseable},
		"huge parameter number":    {"SELECT $2147483647 FROM users", reasons.Parameter},
		"overflowing parameter":    {"SELECT $99999999999 FROM users", reasons.Parameter},
		"bad escaped name":         {`SELECT 1 FROM U&"\zzzz"`, reasons.Unparseable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan, err := newRewriter(t, options()).Analyze(capture.Query{SQL: c.sql, Database: "shop"})
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := plan.For("d0"); err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatalf("analysed, want %s", c.want)
			}
			if got := reasonOf(t, err); got != c.want {
				t.Errorf("refused as %s, want %s (%v)", got, c.want, err)
			}
		})
	}
}

// TestErrorsQuoteNoLiteral: a refusal may name tables and functions, but never quotes a constant of the query.
func TestErrorsQuoteNoLiteral(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	for _, sql := range []string{
		"SELECT '" + secret + "' FROM users WHERE",
		"SELECT '" + secret + " FROM users",
		"SELECT $x$" + secret + " FROM users",
		"SELECT 12" + secret + " FROM users",
		"SELECT E'\\u" + secret + "' FROM users",
		"SELECT leaky('" + secret + "') FROM users",
		"SELECT anon_count(id, '" + secret + "') FROM users",
		"SELECT '" + secret + "'::regclass FROM users",
		"SELECT count(*) FROM users /*dp_epsilon='" + secret + "'*/",
		"SELECT nextval('" + secret + "') FROM users",
	} {
		_, err := newRewriter(t, options()).Analyze(capture.Query{SQL: sql, Database: "shop"})
		if err == nil {
			t.Errorf("analysed: %s", sql)
			continue
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error quotes it: %v", sql, err)
		}
	}
}

// TestNewerGrammar: a statement that the parser's grammar lacks is not called faulty if the grammar is the reason.
func TestNewerGrammar(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ sql, tag, want string }{
		{"SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (a int PATH '$')), users", "SELECT 1", "JSON_TABLE is newer than PostgreSQL 16's grammar"},
		{"SELECT age, count(*) FROM users GROUP BY ALL", "", "GROUP BY ALL is newer than PostgreSQL 16's grammar"},
		{"SELECT age TO THE POWER 2 FROM users", "SELECT 1", "syntax error, but the server accepted the statement: its syntax is newer than PostgreSQL 16's grammar, or another dialect"},
		{"SELECT age TO THE POWER 2 FROM users", "", "syntax error"},
	} {
		_, err := newRewriter(t, options()).Analyze(capture.Query{SQL: c.sql, Tag: c.tag, Database: "shop"})
		var refused *rewrite.UnsupportedError
		if !errors.As(err, &refused) || refused.Reason != reasons.Unparseable || refused.Detail != c.want {
			t.Errorf("%s: %v, want %s", c.sql, err, c.want)
		}
	}
}

// TestReasonsAreListed: every reason that a refusal can carry is in Reasons, once.
func TestReasonsAreListed(t *testing.T) {
	t.Parallel()
	listed := map[rewrite.Reason]bool{}
	for _, r := range reasons.All() {
		if listed[r] {
			t.Errorf("%s is listed twice", r)
		}
		listed[r] = true
	}
	r := newRewriter(t, options())
	for _, file := range goldenFiles(t) {
		if _, err := r.Analyze(goldenQuery(t, file)); err != nil && !listed[reasonOf(t, err)] {
			t.Errorf("%s: reason %s is not listed", file, reasonOf(t, err))
		}
	}
}
