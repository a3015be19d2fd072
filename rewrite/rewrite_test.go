package rewrite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/golden"
	"github.com/dpwatch/dpwatch/rewrite"
)

// options returns the options of all golden cases.
func options() rewrite.Options {
	return rewrite.Options{
		Protected: []rewrite.Table{{Schema: "public", Name: "users"}, {Schema: "public", Name: "transactions"}, {Schema: "app", Name: "Order Lines"}},
		Public:    []rewrite.Table{{Schema: "public", Name: "stores"}, {Schema: "ref", Name: "users"}},
		Others:    []rewrite.Table{{Schema: "public", Name: "user_view"}},
		Database:  "shop",
		Claims: rewrite.ClaimRules{Signatures: []rewrite.Signature{
			{Function: "anon_count", Epsilon: -1},
			{Function: "anon_sum", Epsilon: -1},
			{Function: "dp.noisy", Epsilon: 2, Delta: 3, EpsilonName: "epsilon", DeltaName: "delta"},
		}},
		AllowFunctions: []string{"clip", "util.bucket"},
	}
}

func newRewriter(tb testing.TB, o rewrite.Options) *rewrite.Rewriter {
	tb.Helper()
	r, err := rewrite.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// goldenQuery reads a case. Lines at its start give the session and are part of the SQL, as comments:
//
//	-- set name = value
//	-- user name
//	-- param oid text
//	-- uncertain
func goldenQuery(tb testing.TB, file string) capture.Query {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	q := capture.Query{SQL: strings.TrimSuffix(string(text), "\n"), User: "alice", Database: "shop", Settings: map[string]string{}}
	for line := range strings.Lines(q.SQL) {
		directive, ok := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		if !ok {
			break
		}
		word, rest, _ := strings.Cut(directive, " ")
		switch word {
		case "set":
			name, value, _ := strings.Cut(rest, " = ")
			q.Settings[name] = value
		case "user":
			q.User = rest
		case "uncertain":
			q.Doubt = capture.AnySetting()
		case "param":
			var p capture.Param
			var text string
			if _, err := fmt.Sscanf(rest, "%d %s", &p.OID, &text); err != nil {
				tb.Fatalf("%s: %q: %v", file, line, err)
			}
			p.Value = []byte(text)
			q.Params = append(q.Params, p)
		default:
			tb.Fatalf("%s: unknown directive %q", file, line)
		}
	}
	return q
}

func goldenFiles(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob("testdata/*.sql")
	if err != nil || len(files) < 120 {
		tb.Fatalf("%d golden cases, want 120 or more (%v)", len(files), err)
	}
	return files
}

// TestGolden compares every rewrite or refusal with a reviewed one.
func TestGolden(t *testing.T) {
	t.Parallel()
	r := newRewriter(t, options())
	for _, file := range goldenFiles(t) {
		base := strings.TrimSuffix(file, ".sql")
		t.Run(filepath.Base(base), func(t *testing.T) {
			t.Parallel()
			plan, err := r.Analyze(goldenQuery(t, file))
			if err != nil {
				golden.Check(t, base+".err.golden", describe(t, err))
				absent(t, base+".d0.golden", base+".d1.golden")
				return
			}
			for _, schema := range []string{"d0", "d1"} {
				sql, err := plan.For(schema)
				if err != nil {
					t.Fatal(err)
				}
				golden.Check(t, base+"."+schema+".golden", sql+"\n")
			}
			absent(t, base+".err.golden")
		})
	}
}

// awkwardSchemas are names that a splice, a scanner or a server could misread: quotes, keywords, comments, escapes, the
// prefixes of other kinds of tokens, the longest name with one byte and with several bytes per character.
var awkwardSchemas = []string{
	`a "quoted" one`, `"`, `""""`, "U&", `U&"d"`, "select", "from users", "größe", `\\0061`, "--", "/*", "*/", "$1", "$$", "$x$", "E'", "'", ";", ".", "d0.users",
	" ", "\n", "\t-- x\n", "\u00a0", "\u202e", "日本語", strings.Repeat("d", 63), strings.Repeat("日", 21), strings.Repeat(`"`, 63), "0", "UESCAPE",
}

// TestEverySchemaIsParsed: on every schema, however awkward its name, the text of every golden case parses, contains
// only the original's words and that name, and names the schema as often as on d0.
func TestEverySchemaIsParsed(t *testing.T) {
	t.Parallel()
	r := newRewriter(t, options())
	schemasOf := func(sql string) map[string]int {
		tree, err := pg_query.Parse(sql)
		if err != nil {
			t.Fatalf("%v\n%s", err, sql)
		}
		count := map[string]int{}
		everyMessage(tree.ProtoReflect(), func(m protoreflect.Message) {
			switch n := m.Interface().(type) {
			case *pg_query.RangeVar:
				count[n.GetSchemaname()]++
			case *pg_query.ColumnRef:
				if len(n.GetFields()) > 2 {
					count[n.GetFields()[0].GetString_().GetSval()]++
				}
			}
		})
		return count
	}
	n := 0
	for _, file := range goldenFiles(t) {
		plan, err := r.Analyze(goldenQuery(t, file))
		if err != nil {
			continue
		}
		plain, err := plan.For("neighbour_0")
		if err != nil {
			t.Fatal(err)
		}
		want := schemasOf(plain)
		for _, schema := range awkwardSchemas {
			got, err := plan.For(schema)
			if err != nil {
				t.Fatalf("%s on %q: %v", file, schema, err)
			}
			quoted := `"` + strings.ReplaceAll(schema, `"`, `""`) + `"`
			if strings.ReplaceAll(plain, `"neighbour_0"`, quoted) != got {
				t.Errorf("%s on %q: %s", file, schema, got)
			}
			count := schemasOf(got)
			count["neighbour_0"] = count[schema]
			delete(count, schema)
			if diff := cmp.Diff(want, count); diff != "" {
				t.Errorf("%s on %q (-plain +awkward):\n%s", file, schema, diff)
			}
			n++
		}
	}
	if n < 2000 {
		t.Errorf("only %d rewrites compared", n)
	}
}

// describe formats a refusal field by field.
func describe(t *testing.T, err error) string {
	t.Helper()
	var refusal *rewrite.UnsupportedError
	if !errors.As(err, &refusal) {
		t.Fatalf("error of type %T: %v", err, err)
	}
	return fmt.Sprintf("reason: %s\nnode: %s\noffset: %d\ndetail: %s\nhint: %s\n",
		refusal.Reason, refusal.Node, refusal.Offset, refusal.Detail, refusal.Hint)
}

// absent fails if a golden file is left over from another outcome.
func absent(t *testing.T, files ...string) {
	t.Helper()
	for _, file := range files {
		if _, err := os.Stat(file); err == nil {
			if golden.Updating() {
				os.Remove(file)
				continue
			}
			t.Errorf("%s exists, but the case has another outcome", file)
		}
	}
}
