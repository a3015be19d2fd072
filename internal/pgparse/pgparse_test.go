package pgparse_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// shapes are texts that grow with n in every construct on which libpg_query recurses, or which it reads repeatedly.
func shapes() map[string]func(n int) string {
	r := strings.Repeat
	around := func(before, middle, after string) func(int) string {
		return func(n int) string { return "SELECT " + r(before, n) + middle + r(after, n) }
	}
	return map[string]func(n int) string{
		"nested comments": around("/*", "", "*/"), "nested comments with text": around("/* x ", "", "*/"), "empty comments": around("/**/", "1", ""),
		"signs": around("+", "1", ""), "separate signs": around("- ", "1", ""), "own operators": around("@ ", "1", ""),
		"sum": around("1+", "1", ""), "concatenation": around("'a' || ", "'a'", ""), "casts": around("", "1", "::int"),
		"IS NULL": around("", "1", " IS NULL"), "IS DISTINCT FROM": around("", "1", " IS DISTINCT FROM NOT 1"), "IN": around("", "1", " IN (1)"),
		"IN deep": around("1 IN (", "1", ")"), "LIKE": around("", "1", " LIKE NOT 1"), "BETWEEN": around("", "1", " BETWEEN 1 AND NOT 1"),
		"OPERATOR": around("", "1", " OPERATOR(pg_catalog.+) 1"), "COLLATE": around("", "a", " COLLATE c"), "AT TIME ZONE": around("", "a", " AT TIME ZONE b"),
		"ANY": around("1 = ANY (", "1", ")"), "NOT": around("NOT ", "a", ""), "AND in OR": around("a OR (b AND ", "c", ")"), "parentheses": around("(", "1", ")"),
		"arrays": around("ARRAY[", "1", "]"), "brackets": func(n int) string { return "SELECT ARRAY" + r("[", n) + "1" + r("]", n) },
		"functions": around("f(", "1", ")"), "filters": around("f(1) FILTER (WHERE ", "true", ")"), "windows": around("f(", "1", ") OVER (ORDER BY 1)"),
		"partitions": around("f(1) OVER (PARTITION BY ", "1", ")"), "aggregate order": around("f(1 ORDER BY ", "1", ")"), "within": around("f(1) WITHIN GROUP (ORDER BY ", "1", ")"),
		"rows": around("ROW(1, ", "1", ")"), "CASE": around("CASE WHEN a THEN ", "1", " END"), "CASE conditions": around("CASE WHEN ", "a", " THEN 1 END"),
		"CASE arguments": around("CASE ", "a", " WHEN 1 THEN 1 END"), "CASE defaults": around("CASE WHEN a THEN 1 ELSE ", "1", " END"),
		"columns called end": around("CASE WHEN t.end THEN ", "1", " END"), "columns called and": around("", "1", " + t.and"), "columns called by": around("", "1", " + by"),
		"subscripts": func(n int) string { return "SELECT " + r("a[", n) + "1" + r("]", n) }, "sub-queries": around("(SELECT ", "1", ")"),
		"EXISTS": around("EXISTS (SELECT 1 WHERE ", "true", ")"), "sub-selects": func(n int) string { return r("SELECT * FROM (", n) + "SELECT 1" + r(") x", n) },
		"WITH": func(n int) string { return r("WITH a AS (", n) + "SELECT 1" + r(") SELECT 1 FROM a", n) },
		"JOIN": func(n int) string { return "SELECT 1 FROM a" + r(" JOIN b ON true", n) }, "CROSS JOIN": func(n int) string { return "SELECT 1 FROM a" + r(" CROSS JOIN b", n) },
		"JOIN to the right": func(n int) string { return "SELECT 1 FROM a" + r(" JOIN b", n) + r(" ON true", n) },
		"UNION":             func(n int) string { return "SELECT 1, 2" + r(" UNION ALL SELECT 1, 2", n) }, "EXCEPT": func(n int) string { return r("(SELECT 1 EXCEPT ", n) + "SELECT 1" + r(")", n) },
		"grouping sets":   func(n int) string { return "SELECT 1 GROUP BY " + r("GROUPING SETS (", n) + "a" + r(")", n) },
		"LIMIT":           func(n int) string { return "SELECT 1 LIMIT " + r("(SELECT 1 LIMIT ", n) + "1" + r(")", n) },
		"LATERAL":         func(n int) string { return r("SELECT * FROM a, LATERAL (", n) + "SELECT 1" + r(") x", n) },
		"table functions": func(n int) string { return "SELECT * FROM ROWS FROM (" + r("f(", n) + "1" + r(")", n) + ")" },
		"COALESCE":        around("coalesce(1, ", "1", ")"), "GREATEST": around("greatest(1, ", "1", ")"), "NULLIF": around("nullif(1, ", "1", ")"), "EXTRACT": around("extract(day FROM ", "a", ")"),
		"XML": around("xmlconcat(", "a", ")"), "CAST": around("CAST(", "a", " AS int)"), "named arguments": around("f(a => ", "1", ")"),
		"routines": func(n int) string {
			return r("CREATE FUNCTION f() RETURNS int BEGIN ATOMIC ", n) + "SELECT 1;" + r(" END;", n)
		},
		"deep operand of a sum": func(n int) string { return "SELECT " + r("f(", n/2) + "1" + r(")", n/2) + r("+1", n/2) },
	}
}

// depth returns the nesting depth of the messages of a tree.
func depth(m protoreflect.Message) int {
	deepest := 0
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Kind() != protoreflect.MessageKind:
		case fd.IsList():
			for i := range v.List().Len() {
				deepest = max(deepest, depth(v.List().Get(i).Message()))
			}
		default:
			deepest = max(deepest, depth(v.Message()))
		}
		return true
	})
	return deepest + 1
}

// TestEstimate: sqltext.Check estimates at least an eighth of a tree's depth, not counting the statement itself.
func TestEstimate(t *testing.T) {
	t.Parallel()
	const n = 100
	for name, shape := range shapes() {
		tree, err := pgparse.Parse(shape(n))
		var limit *pgparse.LimitError
		if errors.As(err, &limit) {
			continue // comments and consecutive operator characters
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		estimate := 1
		for sqltext.Check(shape(n), sqltext.Limits{Depth: estimate}) != nil {
			estimate++
		}
		if d := depth(tree.ProtoReflect()); d > 8*estimate+10 {
			t.Errorf("%s: the tree has %d levels, the estimate is %d", name, d, estimate)
		}
	}
}

// TestLimits: of growing texts, none that libpg_query must not see reaches it, and all others are parsed. A text that
// is not rejected in time would crash the process, or exceed the time limit of all tests.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, shape := range shapes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused := false
			for _, n := range []int{30, 800, 3_000, 33_000, 100_000} {
				sql := shape(n)
				_, scanned := pgparse.Scan(sql)
				tree, parsed := pgparse.Parse(sql)
				_, fingerprinted := pgparse.Fingerprint(sql)
				var limit *pgparse.LimitError
				if isLimit := errors.As(parsed, &limit); isLimit != errors.As(scanned, &limit) || isLimit != errors.As(fingerprinted, &limit) {
					t.Fatalf("%d: scan %v, parse %v, fingerprint %v", n, scanned, parsed, fingerprinted)
				}
				refused = errors.As(parsed, &limit)
				if !refused && parsed != nil {
					t.Errorf("%d: %v", n, parsed)
				}
				if parsed == nil {
					if _, err := pgparse.Deparse(tree); err != nil && !strings.HasPrefix(name, "routines") {
						t.Errorf("%d: deparse: %v", n, err)
					}
				}
			}
			if !refused {
				t.Error("100,000 levels are not refused")
			}
		})
	}
}

// TestNewer: syntax of later versions is named; faulty text is not taken for it.
func TestNewer(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"SELECT * FROM json_table('[1]', '$[*]' COLUMNS (a int PATH '$'))":                       "JSON_TABLE",
		"SELECT JSON_VALUE('{}', '$.a' RETURNING int)":                                           "JSON_VALUE",
		"SELECT JSON_EXISTS (jsonb '{}', '$' PASSING 1 AS x)":                                    "JSON_EXISTS",
		"SELECT JSON_SERIALIZE('{}' RETURNING bytea)":                                            "JSON_SERIALIZE with RETURNING",
		"MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE RETURNING t.a":               "MERGE ... RETURNING",
		"WITH m AS (MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE RETURNING *) SELECT 1": "MERGE ... RETURNING",
		"MERGE INTO t USING s ON t.a = s.a WHEN NOT MATCHED BY SOURCE THEN DELETE":               "MERGE ... WHEN NOT MATCHED BY",
		"SELECT 'ä', count(*) FROM t GROUP /* x */ BY\nALL":                                      "GROUP BY ALL",
		"SELECT lag(a) IGNORE NULLS OVER (ORDER BY b) FROM t":                                    "IGNORE NULLS",
		"UPDATE t SET a = 1 RETURNING WITH (OLD AS o) o.a":                                       "RETURNING WITH",
		"SELECT now() AT LOCAL":                                                    "AT LOCAL",
		"CREATE TABLE t (a int, b int GENERATED ALWAYS AS (a))":                    "a virtual generated column",
		"CREATE TABLE t (a int, p tstzrange, PRIMARY KEY (a, p WITHOUT OVERLAPS))": "WITHOUT OVERLAPS",
		"DELETE FROM t FOR PORTION OF p FROM 1 TO 2":                               "FOR PORTION OF",
		"INSERT INTO t VALUES (1) ON CONFLICT (a) DO SELECT RETURNING a":           "ON CONFLICT DO SELECT",
		"SELECT * FROM GRAPH_TABLE (g MATCH (a) COLUMNS (a.x))":                    "GRAPH_TABLE",
		"SELEC * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (a int PATH '$'))":          "",
		"SELECT 'GROUP BY ALL' FROM":                                               "",
		"SELECT 1 FROM t GROUP BY":                                                 "",
		`SELECT "GROUP BY ALL" FROM ,`:                                             "",
	} {
		_, err := pgparse.Parse(sql)
		var newer *pgparse.NewerError
		if errors.As(err, &newer); err == nil || newer == nil && want != "" || newer != nil && newer.Syntax != want {
			t.Errorf("%s: %v; want %q", sql, err, want)
		}
		if want != "" && pgparse.Because(err) != ": "+want+" is newer than PostgreSQL 16's grammar" {
			t.Errorf("%s: %q", sql, pgparse.Because(err))
		}
	}
}

// TestOnlyWay: no other package of this module calls libpg_query, except tests, and the examples, which are separate
// programs.
func TestOnlyWay(t *testing.T) {
	t.Parallel()
	calls := map[string]bool{
		"Parse": true, "ParseToJSON": true, "ParseToProtobuf": true, "Scan": true, "ScanToProtobuf": true, "Deparse": true,
		"DeparseFromProtobuf": true, "Fingerprint": true, "FingerprintToUInt64": true, "HashXXH3_64": true, "Normalize": true, "ParsePlPgSqlToJSON": true,
		"FingerprintToHexStr": true, "SplitWithScanner": true, "SplitWithParser": true,
	}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "examples" || d.Name() == "pgparse" || d.Name() == "vendor" || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		packages := map[string]bool{}
		for _, i := range file.Imports {
			if p := strings.Trim(i.Path.Value, `"`); strings.HasPrefix(p, "github.com/pganalyze/pg_query_go/") {
				packages["pg_query"], packages["parser"] = true, true
				if i.Name != nil {
					packages[i.Name.Name] = true
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if x, isName := exprName(s, ok); isName && packages[x] && calls[s.Sel.Name] {
				t.Errorf("%s calls %s.%s: use internal/pgparse, which refuses what libpg_query must not see", path, x, s.Sel.Name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func exprName(s *ast.SelectorExpr, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return "", false
	}
	return x.Name, true
}
