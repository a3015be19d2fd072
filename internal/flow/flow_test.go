package flow_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/dpwatch/dpwatch/"

// allowed says which packages of this module each package may import (tests apart). A new package must be added.
var allowed = map[string][]string{
	"analysis":                           {"analysis/diagnosis", "analysis/internal/bins", "analysis/internal/book", "analysis/internal/code", "analysis/internal/dependence", "analysis/internal/eprocess", "analysis/internal/event", "analysis/internal/results", "analysis/internal/score", "analysis/internal/state", "internal/outcome", "internal/withheld"},
	"analysis/buckets":                   {"analysis", "internal/outcome", "internal/withheld"},
	"analysis/diagnosis":                 {"analysis/noise", "analysis/response", "internal/withheld"},
	"analysis/internal/bins":             {"analysis/internal/code", "analysis/internal/state"},
	"analysis/internal/book":             {"analysis/internal/eprocess", "analysis/internal/event", "analysis/internal/state"},
	"analysis/internal/code":             {"analysis/internal/state"},
	"analysis/internal/dependence":       {"analysis/internal/bins", "analysis/internal/code", "analysis/internal/eprocess", "analysis/internal/state"},
	"analysis/internal/eprocess":         {},
	"analysis/internal/event":            {"analysis/internal/bins", "analysis/internal/code", "analysis/internal/eprocess", "analysis/internal/fit", "analysis/internal/state"},
	"analysis/internal/fit":              {},
	"analysis/internal/lawfit":           {"analysis/internal/bins", "analysis/internal/code", "analysis/internal/event", "analysis/internal/fit"},
	"analysis/internal/results":          {"analysis/internal/code", "analysis/internal/state", "internal/outcome", "internal/textnumber", "internal/withheld"},
	"analysis/internal/score":            {"analysis/internal/bins", "analysis/internal/book", "analysis/internal/code", "analysis/internal/dependence", "analysis/internal/eprocess", "analysis/internal/event", "analysis/internal/fit", "analysis/internal/lawfit", "analysis/internal/results", "analysis/internal/state", "internal/outcome", "internal/withheld"},
	"analysis/internal/state":            {"internal/withheld"},
	"analysis/multiplicity":              {},
	"analysis/noise":                     {},
	"analysis/response":                  {},
	"analysis/response/survey":           {"analysis", "analysis/response", "internal/withheld"},
	"cmd/dpwatch":                        {"analysis", "analysis/response/survey", "config", "internal/app/auditor", "internal/app/check", "internal/app/findings", "internal/app/oneoff", "internal/app/querypage", "internal/app/records", "internal/app/relay", "internal/app/reports", "internal/app/setup", "internal/app/stages", "internal/app/status", "internal/calibrate", "internal/capture", "internal/demo", "internal/draft", "internal/generate", "internal/generate/store", "internal/pages", "internal/pg/connect", "internal/pgtemp", "internal/preflight", "internal/read", "internal/recorded", "internal/showcase", "internal/spelling", "internal/supervise", "internal/terminal", "internal/withheld", "proxy", "replay/neighbours", "rewrite"},
	"config":                             {"internal/finding", "internal/odometer", "internal/pg/ident", "internal/spelling"},
	"deploy/compose":                     {},
	"deploy/image":                       {},
	"deploy/package":                     {},
	"docs":                               {},
	"examples/gateway":                   {},
	"examples/hostile":                   {},
	"internal/alert":                     {"internal/finding", "internal/withheld"},
	"internal/alert/alerttest":           {"internal/eventually"},
	"internal/alert/deliver":             {"internal/alert", "internal/finding", "internal/ledger"},
	"internal/app/admin":                 {"config", "internal/web"},
	"internal/app/auditor":               {"analysis", "config", "internal/alert", "internal/alert/deliver", "internal/app/admin", "internal/app/setup", "internal/app/show", "internal/app/stages", "internal/audit", "internal/audit/budget", "internal/audit/trial", "internal/audit/view", "internal/capture", "internal/finding", "internal/ledger", "internal/link", "internal/pg/ident", "internal/read", "internal/sqltext", "internal/withheld", "replay", "replay/throttle", "rewrite"},
	"internal/app/check":                 {"config", "internal/app/admin", "internal/app/records", "internal/app/relay", "internal/app/setup", "internal/app/stages", "internal/app/status", "internal/audit/recognize", "internal/capture", "internal/ledger", "internal/pg/connect", "internal/pg/engine", "internal/preflight", "internal/sqlstate", "internal/withheld", "proxy", "replay", "replay/neighbours", "rewrite"},
	"internal/app/findings":              {"analysis", "config", "internal/app/oneoff", "internal/app/querypage", "internal/app/records", "internal/app/setup", "internal/app/show", "internal/app/stages", "internal/app/status", "internal/audit/saved", "internal/capture", "internal/ledger", "internal/read", "internal/withheld", "replay", "replay/neighbours"},
	"internal/app/oneoff":                {"analysis", "analysis/buckets", "analysis/response/survey", "config", "internal/app/setup", "internal/app/show", "internal/app/stages", "internal/audit/evidence", "internal/audit/timing", "internal/audit/trial", "internal/capture", "internal/outcome", "internal/pg/catalog/read", "internal/plot", "internal/read", "internal/recorded", "internal/withheld", "replay", "rewrite", "rewrite/reasons"},
	"internal/app/querypage":             {"internal/read"},
	"internal/app/records":               {"analysis", "config", "internal/alert/deliver", "internal/app/setup", "internal/app/show", "internal/app/status", "internal/audit/keep", "internal/audit/saved", "internal/audit/schedule", "internal/ledger", "internal/odometer", "internal/read", "rewrite/reasons"},
	"internal/app/relay":                 {"analysis", "config", "internal/app/admin", "internal/app/querypage", "internal/app/records", "internal/app/setup", "internal/app/show", "internal/app/status", "internal/capture", "internal/ledger", "internal/read", "internal/supervise", "internal/web", "proxy"},
	"internal/app/reports":               {"analysis", "config", "internal/app/findings", "internal/app/oneoff", "internal/app/records", "internal/app/setup", "internal/app/show", "internal/audit/saved", "internal/chart", "internal/ledger", "internal/pg/connect", "internal/plot", "internal/read", "internal/report", "internal/withheld"},
	"internal/app/setup":                 {"config", "internal/alert", "internal/alert/deliver", "internal/capture", "internal/finding", "internal/ledger", "internal/odometer", "internal/pg/ident", "internal/web"},
	"internal/app/show":                  {"analysis"},
	"internal/app/stages":                {"config", "internal/audit", "internal/audit/budget", "internal/audit/recognize", "internal/pg/body", "internal/pg/catalog", "internal/pg/catalog/read", "internal/pg/engine", "internal/pg/ident", "internal/sqlstate", "replay", "replay/neighbours", "replay/throttle", "rewrite"},
	"internal/app/status":                {"analysis", "config", "internal/app/show", "internal/audit/view", "internal/capture", "internal/read", "internal/supervise", "internal/web", "internal/withheld", "proxy"},
	"internal/audit":                     {"analysis", "analysis/multiplicity", "internal/alert", "internal/audit/budget", "internal/audit/environment", "internal/audit/evidence", "internal/audit/inbox", "internal/audit/keep", "internal/audit/recent", "internal/audit/recognize", "internal/audit/saved", "internal/audit/schedule", "internal/audit/sequence", "internal/audit/trial", "internal/audit/turn", "internal/audit/view", "internal/capture", "internal/finding", "internal/ledger", "internal/outcome", "internal/pg/engine", "internal/pg/ident", "internal/read", "internal/withheld", "replay", "replay/hoisting", "replay/throttle", "rewrite", "rewrite/reasons"},
	"internal/audit/budget":              {"internal/ledger", "replay"},
	"internal/audit/environment":         {"internal/pg/engine", "rewrite"},
	"internal/audit/evidence":            {"analysis", "analysis/multiplicity", "internal/outcome", "internal/withheld"},
	"internal/audit/inbox":               {"internal/audit/schedule", "internal/capture"},
	"internal/audit/keep":                {"internal/audit/view", "internal/capture", "internal/ledger", "internal/read"},
	"internal/audit/recent":              {},
	"internal/audit/recognize":           {"internal/audit/inbox", "internal/audit/recent", "internal/capture", "internal/ledger", "internal/pg/ident", "internal/read", "rewrite", "rewrite/reasons"},
	"internal/audit/saved":               {"analysis", "internal/audit/evidence", "internal/audit/timing", "internal/audit/view", "internal/ledger", "replay/hoisting"},
	"internal/audit/schedule":            {},
	"internal/audit/sequence":            {},
	"internal/audit/timing":              {},
	"internal/audit/trial":               {"analysis", "internal/audit/evidence", "internal/audit/timing", "replay"},
	"internal/audit/turn":                {"analysis", "internal/audit/budget", "internal/audit/environment", "internal/audit/evidence", "internal/audit/trial", "internal/audit/view", "internal/capture", "internal/pg/engine", "replay", "replay/hoisting", "rewrite"},
	"internal/audit/view":                {"internal/ledger", "internal/read", "replay/throttle"},
	"internal/browser":                   {"internal/clienttest"},
	"internal/calibrate":                 {"analysis", "analysis/noise", "internal/audit/trial", "internal/chart", "internal/pg/connect", "internal/pg/ident", "internal/report", "internal/showcase", "internal/zoo", "replay"},
	"internal/capture":                   {"internal/pg/ident", "internal/sqltext"},
	"internal/chaos":                     {},
	"internal/chart":                     {},
	"internal/clienttest":                {},
	"internal/demo":                      {"analysis", "config", "internal/app/relay", "internal/app/setup", "internal/app/show", "internal/audit/view", "internal/pages", "internal/pgtemp", "internal/read", "internal/showcase", "internal/terminal", "internal/zoo"},
	"internal/draft":                     {"internal/pg/connect", "internal/pg/ident", "internal/sqlstate"},
	"internal/eventually":                {},
	"internal/finding":                   {},
	"internal/flow":                      {},
	"internal/generate":                  {"internal/pg/ident"},
	"internal/generate/store":            {"internal/generate", "internal/pg/ident"},
	"internal/golden":                    {},
	"internal/leaktest":                  {},
	"internal/ledger":                    {"internal/finding", "internal/odometer", "internal/pg/connect", "internal/pg/ident", "internal/read", "internal/sqlstate"},
	"internal/link":                      {},
	"internal/longtest":                  {},
	"internal/odometer":                  {},
	"internal/outcome":                   {},
	"internal/pages":                     {"analysis", "docs", "internal/app/records", "internal/app/relay", "internal/app/setup", "internal/app/show", "internal/app/status", "internal/chart", "internal/ledger", "internal/plot", "internal/read", "internal/web"},
	"internal/pg/body":                   {"internal/pg/ident", "internal/pgparse"},
	"internal/pg/builtin":                {},
	"internal/pg/catalog":                {"internal/pg/ident"},
	"internal/pg/catalog/read":           {"internal/pg/builtin", "internal/pg/catalog", "internal/pg/connect", "internal/sqlstate"},
	"internal/pg/connect":                {"internal/pg/ident"},
	"internal/pg/engine":                 {"internal/pg/body", "internal/pg/connect", "internal/pg/ident", "internal/sqlstate"},
	"internal/pg/ident":                  {},
	"internal/pgparse":                   {"internal/sqltext"},
	"internal/pgtemp":                    {"internal/pg/ident"},
	"internal/pgtemp/pgtest":             {"internal/pgtemp"},
	"internal/plot":                      {"analysis", "analysis/buckets", "internal/chart"},
	"internal/preflight":                 {"internal/pg/catalog", "internal/pg/catalog/read", "internal/pg/connect", "internal/pg/ident", "internal/spelling"},
	"internal/program":                   {},
	"internal/read":                      {"analysis", "internal/app/show", "internal/audit/timing", "internal/finding", "internal/recorded", "replay/hoisting"},
	"internal/recorded":                  {"internal/outcome"},
	"internal/reload":                    {},
	"internal/report":                    {"internal/chart"},
	"internal/showcase":                  {"internal/generate", "internal/pg/ident", "internal/zoo"},
	"internal/spelling":                  {},
	"internal/sqlstate":                  {},
	"internal/sqltext":                   {},
	"internal/supervise":                 {"internal/capture", "internal/link", "internal/sqltext"},
	"internal/terminal":                  {},
	"internal/textnumber":                {},
	"internal/web":                       {"internal/reload"},
	"internal/withheld":                  {},
	"internal/zoo":                       {"internal/pg/ident"},
	"proxy":                              {"proxy/internal/relay", "proxy/internal/startup", "proxy/internal/tap", "proxy/internal/tracker", "proxy/internal/wire"},
	"proxy/internal/relay":               {"proxy/internal/tap", "proxy/internal/wire"},
	"proxy/internal/startup":             {"internal/reload", "proxy/internal/wire"},
	"proxy/internal/tap":                 {"internal/capture", "internal/sqltext", "proxy/internal/tracker", "proxy/internal/wire"},
	"proxy/internal/tracker":             {"internal/capture", "internal/sqltext"},
	"proxy/internal/wire":                {},
	"replay":                             {"internal/capture", "internal/outcome", "internal/pg/builtin", "internal/pg/connect", "internal/pg/ident", "internal/sqlstate", "internal/withheld", "replay/hoist", "replay/hoisting"},
	"replay/hoist":                       {"internal/pg/ident", "internal/pgparse"},
	"replay/hoisting":                    {},
	"replay/neighbours":                  {"internal/pg/ident", "replay/neighbours/internal/build", "replay/neighbours/internal/session", "replay/neighbours/internal/shadow", "replay/neighbours/internal/spec", "replay/neighbours/internal/verify"},
	"replay/neighbours/internal/build":   {"internal/pg/catalog", "internal/pg/catalog/read", "internal/pg/connect", "internal/pg/ident", "replay/neighbours/internal/ddl", "replay/neighbours/internal/session", "replay/neighbours/internal/shadow", "replay/neighbours/internal/source", "replay/neighbours/internal/spec", "replay/neighbours/internal/units"},
	"replay/neighbours/internal/ddl":     {"internal/pg/body", "internal/pg/catalog", "internal/pg/ident", "internal/pgparse", "replay/neighbours/internal/source", "replay/neighbours/internal/spec"},
	"replay/neighbours/internal/session": {"internal/pg/connect"},
	"replay/neighbours/internal/shadow":  {"internal/pg/catalog/read", "internal/pg/connect", "internal/pg/ident", "replay/neighbours/internal/session", "replay/neighbours/internal/source", "replay/neighbours/internal/spec"},
	"replay/neighbours/internal/source":  {"internal/pg/catalog", "internal/pg/connect", "internal/pg/ident", "replay/neighbours/internal/session", "replay/neighbours/internal/spec"},
	"replay/neighbours/internal/spec":    {"internal/pg/body", "internal/pg/ident"},
	"replay/neighbours/internal/units":   {"internal/pg/connect", "internal/pg/ident", "replay/neighbours/internal/source", "replay/neighbours/internal/spec"},
	"replay/neighbours/internal/verify":  {"internal/pg/catalog", "internal/pg/connect", "internal/pg/ident", "replay/neighbours/internal/build", "replay/neighbours/internal/ddl", "replay/neighbours/internal/shadow", "replay/neighbours/internal/source", "replay/neighbours/internal/spec", "replay/neighbours/internal/units"},
	"replay/throttle":                    {"internal/pg/connect", "internal/sqlstate"},
	"rewrite":                            {"internal/capture", "internal/pg/body", "internal/pg/catalog", "internal/pg/ident", "internal/pgparse", "rewrite/internal/claim", "rewrite/internal/judge", "rewrite/internal/resolve", "rewrite/reasons"},
	"rewrite/internal/claim":             {"internal/capture", "internal/pg/catalog", "internal/pg/ident", "internal/pgparse"},
	"rewrite/internal/judge":             {"internal/capture", "internal/pg/body", "internal/pg/builtin", "internal/pg/catalog", "internal/pg/ident", "internal/pgparse", "internal/sqltext", "rewrite/internal/claim", "rewrite/internal/resolve", "rewrite/reasons"},
	"rewrite/internal/resolve":           {"internal/capture", "internal/pg/catalog", "internal/pg/ident", "internal/pgparse"},
	"rewrite/reasons":                    {},
}

// pure packages do no I/O, ask no clock, log nothing.
var pure = []string{"internal/finding", "internal/pages/chart", "internal/report", "internal/pg/body", "internal/pg/builtin", "internal/pg/catalog", "internal/pg/ident", "internal/sqltext", "internal/pgparse", "internal/audit/evidence", "internal/audit/schedule", "internal/audit/sequence", "internal/audit/timing", "internal/audit/inbox", "internal/odometer", "rewrite", "rewrite/internal/claim", "rewrite/internal/judge", "rewrite/internal/resolve", "replay/hoist", "replay/neighbours/internal/spec", "analysis", "analysis/internal/bins", "analysis/internal/book", "analysis/internal/code", "analysis/internal/dependence", "analysis/internal/eprocess", "analysis/internal/event", "analysis/internal/fit", "analysis/internal/lawfit", "analysis/internal/results", "analysis/internal/score", "analysis/internal/state", "internal/textnumber", "internal/generate", "analysis/response/survey", "analysis/buckets", "analysis/multiplicity", "analysis/noise", "analysis/response", "analysis/diagnosis"}

// impure is what a pure package must not import.
var impure = []string{"os", "net", "io/ioutil", "os/exec", "log", "log/slog", "math/rand", "go.uber.org/zap", "github.com/jackc/pgx/v5"}

type pkg struct {
	ImportPath string
	Imports    []string
	CgoFiles   []string
}

// list returns packages as they are built for releases: without the C resolver and user database.
func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	lookAtSources(t)
	cmd := exec.Command("go", append([]string{"list", "-tags", "netgo,osusergo", "-json=ImportPath,Imports,CgoFiles"}, args...)...)
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=1") // without it, no package has cgo files
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var pkgs []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// lookAtSources reads the status of every source file, so that go test runs this test again when one has changed: it does
// not know what go list reads.
func lookAtSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go"):
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestImportsFollowTheFlow(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range list(t, "./...") {
		name := strings.TrimPrefix(p.ImportPath, module)
		seen[name] = true
		may, known := allowed[name]
		if !known {
			t.Errorf("%s is new: say in this test what it may import", name)
			continue
		}
		for _, imp := range p.Imports {
			rest, ours := strings.CutPrefix(imp, module)
			if ours && !slices.Contains(may, rest) {
				t.Errorf("%s imports %s against the flow", name, rest)
			}
			if slices.Contains(pure, name) && slices.Contains(impure, imp) {
				t.Errorf("%s is pure and imports %s", name, imp)
			}
		}
	}
	for name := range allowed {
		if !seen[name] {
			t.Errorf("%s is in this test but not in the module", name)
		}
	}
}

// relayPackages returns what the relay process calls: what the file of the command run imports.
func relayPackages(t *testing.T) (paths []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../cmd/dpwatch/run.go", nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(path, module) {
			paths = append(paths, path)
		}
	}
	for _, name := range []string{"internal/app/relay", "internal/pages", "proxy"} {
		if !slices.Contains(paths, module+name) {
			t.Errorf("cmd/dpwatch/run.go does not import %s: is this test about the relay still?", name)
		}
	}
	return paths
}

// The packages of the relay process never reach cgo: hostile SQL can kill libpg_query's process.
func TestRelayNeverReachesCgo(t *testing.T) {
	t.Parallel()
	relay := relayPackages(t)
	all := list(t, append([]string{"-deps"}, relay...)...)
	for _, p := range all {
		if p.ImportPath != "runtime/cgo" && len(p.CgoFiles) > 0 || strings.Contains(p.ImportPath, "pg_query") { // whoever has cgo files depends on runtime/cgo
			t.Errorf("the relay depends on cgo: %s", strings.Join(chain(all, relay, p.ImportPath), " -> "))
		}
	}
	if parsers := list(t, "-deps", "./rewrite"); !slices.ContainsFunc(parsers, func(p pkg) bool { return len(p.CgoFiles) > 0 }) {
		t.Error("rewrite has no cgo package: this test finds none")
	}
}

// chain returns a shortest chain of imports from one of several packages to another.
func chain(all []pkg, from []string, to string) []string {
	imports := map[string][]string{}
	for _, p := range all {
		imports[p.ImportPath] = p.Imports
	}
	before := map[string]string{}
	next := slices.Clone(from)
	for _, path := range from {
		before[path] = ""
	}
	for len(next) > 0 {
		path := next[0]
		next = next[1:]
		if path == to {
			var way []string
			for ; path != ""; path = before[path] {
				way = append(way, path)
			}
			slices.Reverse(way)
			return way
		}
		for _, imported := range imports[path] {
			if _, seen := before[imported]; !seen {
				before[imported] = path
				next = append(next, imported)
			}
		}
	}
	return []string{to}
}
