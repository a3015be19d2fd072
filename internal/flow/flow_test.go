package flow_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/dpwatch/dpwatch/"

// allowed says which packages of this module each package may import (tests apart). A new package must be added.
var allowed = map[string][]string{
	"config":                   {"internal/finding", "internal/odometer", "internal/pg/ident", "internal/spelling"},
	"internal/spelling":        {},
	"internal/outcome":         {},
	"internal/preflight":       {"internal/spelling", "internal/pg/catalog", "internal/pg/catalog/read", "internal/pg/connect", "internal/pg/ident"},
	"internal/recorded":        {"internal/outcome"},
	"internal/calibrate":       {"analysis", "analysis/noise", "internal/audit/trial", "internal/chart", "internal/pg/connect", "internal/pg/ident", "internal/report", "internal/showcase", "internal/zoo", "replay"},
	"internal/capture":         {"internal/pg/ident", "internal/sqltext"},
	"internal/link":            {},
	"internal/withheld":        {},
	"internal/finding":         {},
	"internal/sqlstate":        {},
	"internal/alert":           {"internal/finding", "internal/withheld"},
	"internal/alert/alerttest": {"internal/eventually"},
	"internal/alert/deliver":   {"internal/alert", "internal/finding", "internal/ledger"},
	"internal/draft":           {"internal/pg/connect", "internal/pg/ident", "internal/sqlstate"},
	"internal/reload":          {},
	"internal/web":             {"internal/reload"},
	"internal/flow":            {},
	"internal/pgtemp":          {"internal/pg/ident"},
	"internal/pgtemp/pgtest":   {"internal/pgtemp"},
	"internal/zoo":             {"internal/pg/ident"},
	"internal/showcase":        {"internal/generate", "internal/pg/ident", "internal/zoo"},
	"internal/generate":        {"internal/pg/ident"},
	"internal/generate/store":  {"internal/generate", "internal/pg/ident"},
	"proxy":                    {"proxy/internal/relay", "proxy/internal/startup", "proxy/internal/tap", "proxy/internal/tracker", "proxy/internal/wire"},
	"proxy/internal/relay":     {"proxy/internal/tap", "proxy/internal/wire"},
	"proxy/internal/tap":       {"internal/capture", "internal/sqltext", "proxy/internal/tracker", "proxy/internal/wire"},
	"proxy/internal/startup":   {"internal/reload", "proxy/internal/wire"},
	"proxy/internal/wire":      {},
	"proxy/internal/tracker":   {"internal/capture", "internal/sqltext"},
	"internal/sqltext":         {},
	"internal/golden":          {},
	"internal/leaktest":        {},
	"internal/chaos":           {},
	"internal/program":         {}, // for tests and benchmarks alone
	"internal/longtest":        {},
	"analysis/multiplicity":    {},
	"analysis/noise":           {},
	"analysis/diagnosis":       {"analysis/noise", "analysis/response", "internal/withheld"},
	"analysis/response":        {},
	"analysis/buckets":         {"analysis", "internal/outcome", "internal/withheld"},
	"analysis/response/survey": {"analysis", "analysis/response", "internal/withheld"},
	"internal/plot":            {"analysis", "analysis/buckets", "internal/chart"},
	"internal/pgparse":         {"internal/sqltext"},
	"replay/hoist":             {"internal/pgparse", "internal/pg/ident"},
	"rewrite":                  {"internal/capture", "internal/pgparse", "internal/pg/body", "internal/pg/catalog", "internal/pg/ident", "rewrite/internal/claim", "rewrite/internal/judge", "rewrite/internal/resolve"},
	"rewrite/internal/judge":   {"internal/capture", "internal/pgparse", "internal/pg/body", "internal/pg/builtin", "internal/pg/catalog", "internal/pg/ident", "internal/sqltext", "rewrite/internal/claim", "rewrite/internal/resolve"},
	"rewrite/internal/claim":   {"internal/capture", "internal/pgparse", "internal/pg/catalog", "internal/pg/ident"},
	"rewrite/internal/resolve": {"internal/capture", "internal/pgparse", "internal/pg/catalog", "internal/pg/ident"},
	"replay":                   {"internal/capture", "internal/outcome", "internal/sqlstate", "internal/withheld", "replay/hoist", "internal/pg/builtin", "internal/pg/connect", "internal/pg/ident"},
	"replay/throttle":          {"internal/sqlstate", "internal/pg/connect"},
	"replay/neighbours":        {"replay/neighbours/internal/build", "replay/neighbours/internal/session", "replay/neighbours/internal/shadow", "replay/neighbours/internal/spec", "replay/neighbours/internal/verify", "internal/pg/ident"},
	"internal/textnumber":      {},
	"analysis":                 {"analysis/diagnosis", "analysis/internal/bins", "analysis/internal/book", "analysis/internal/code", "analysis/internal/dependence", "analysis/internal/eprocess", "analysis/internal/event", "analysis/internal/results", "analysis/internal/score", "analysis/internal/state", "internal/outcome", "internal/withheld"},
	"internal/supervise":       {"internal/capture", "internal/link", "internal/sqltext"},
	"internal/audit/schedule":  {},
	"internal/audit/sequence":  {},
	"deploy/compose":           {}, // tests alone
	"deploy/image":             {},
	"deploy/package":           {},
	"internal/audit/timing":    {},
	"internal/audit/evidence":  {"analysis", "analysis/multiplicity", "internal/outcome", "internal/withheld"},
	"internal/pg/ident":        {},
	"internal/pg/builtin":      {},
	"internal/pg/body":         {"internal/pg/ident", "internal/pgparse"},
	"internal/pg/catalog":      {"internal/pg/ident"},
	"internal/pg/catalog/read": {"internal/pg/builtin", "internal/pg/catalog", "internal/pg/connect", "internal/sqlstate"},
	"internal/pg/connect":      {"internal/pg/ident"},
	"internal/pg/engine":       {"internal/pg/body", "internal/pg/connect", "internal/pg/ident", "internal/sqlstate"},
	"internal/eventually":      {},
	"internal/terminal":        {},
	"internal/demo":            {"analysis", "config", "internal/app/relay", "internal/app/setup", "internal/app/show", "internal/audit/view", "internal/pages", "internal/pgtemp", "internal/showcase", "internal/terminal", "internal/zoo"},
	"cmd/dpwatch":              {"analysis", "analysis/response/survey", "config", "internal/app/auditor", "internal/app/check", "internal/app/findings", "internal/app/oneoff", "internal/app/records", "internal/app/relay", "internal/app/reports", "internal/app/setup", "internal/app/status", "internal/calibrate", "internal/capture", "internal/demo", "internal/draft", "internal/generate", "internal/generate/store", "internal/pages", "internal/pg/connect", "internal/pgtemp", "internal/preflight", "internal/recorded", "internal/showcase", "internal/spelling", "internal/supervise", "internal/terminal", "internal/withheld", "proxy", "replay/neighbours", "rewrite"},
	"internal/audit":           {"analysis", "analysis/multiplicity", "internal/alert", "internal/audit/budget", "internal/audit/environment", "internal/audit/evidence", "internal/audit/inbox", "internal/audit/keep", "internal/audit/recent", "internal/audit/recognize", "internal/audit/saved", "internal/audit/schedule", "internal/audit/sequence", "internal/audit/trial", "internal/audit/turn", "internal/audit/view", "internal/capture", "internal/finding", "internal/ledger", "internal/odometer", "internal/outcome", "internal/pg/engine", "internal/pg/ident", "internal/withheld", "replay", "replay/throttle", "rewrite"},
	"internal/odometer":        {},
	"internal/report":          {"internal/chart"},
	"docs":                     {},
	"internal/pages":           {"analysis", "docs", "internal/app/findings", "internal/app/records", "internal/app/relay", "internal/app/setup", "internal/app/show", "internal/app/status", "internal/chart", "internal/ledger", "internal/plot", "internal/web"},
	"internal/chart":           {},
	"internal/clienttest":      {}, // for tests alone
	"internal/ledger":          {"internal/finding", "internal/odometer", "internal/pg/connect", "internal/pg/ident", "internal/sqlstate"},
	"examples/gateway":         {},
	"examples/hostile":         {},

	"internal/app/admin":    {"config", "internal/web"},
	"internal/app/auditor":  {"analysis", "config", "internal/alert", "internal/alert/deliver", "internal/app/admin", "internal/app/setup", "internal/app/show", "internal/audit", "internal/audit/budget", "internal/audit/trial", "internal/audit/view", "internal/capture", "internal/finding", "internal/ledger", "internal/link", "internal/pg/ident", "internal/sqltext", "internal/withheld", "replay", "replay/throttle", "rewrite"},
	"internal/app/check":    {"config", "internal/app/admin", "internal/app/relay", "internal/app/setup", "internal/app/status", "internal/audit/recognize", "internal/capture", "internal/ledger", "internal/pg/connect", "internal/pg/engine", "internal/preflight", "internal/sqlstate", "internal/withheld", "proxy", "replay", "replay/neighbours", "rewrite"},
	"internal/app/findings": {"analysis", "config", "internal/app/oneoff", "internal/app/records", "internal/app/setup", "internal/app/show", "internal/app/status", "internal/audit/saved", "internal/audit/view", "internal/capture", "internal/ledger", "internal/withheld", "replay", "replay/neighbours"},
	"internal/app/oneoff":   {"analysis", "analysis/buckets", "analysis/response/survey", "config", "internal/app/setup", "internal/app/show", "internal/audit/evidence", "internal/audit/timing", "internal/audit/trial", "internal/audit/view", "internal/capture", "internal/outcome", "internal/pg/catalog/read", "internal/plot", "internal/recorded", "internal/withheld", "replay", "rewrite"},
	"internal/app/records":  {"analysis", "config", "internal/alert/deliver", "internal/app/setup", "internal/app/show", "internal/app/status", "internal/audit", "internal/audit/keep", "internal/audit/saved", "internal/audit/schedule", "internal/audit/view", "internal/ledger", "internal/odometer", "internal/withheld", "rewrite"},
	"internal/app/relay":    {"analysis", "config", "internal/app/admin", "internal/app/findings", "internal/app/oneoff", "internal/app/records", "internal/app/setup", "internal/app/show", "internal/app/status", "internal/capture", "internal/ledger", "internal/supervise", "internal/web", "internal/withheld", "proxy"},
	"internal/app/reports":  {"analysis", "config", "internal/app/findings", "internal/app/oneoff", "internal/app/records", "internal/app/setup", "internal/app/show", "internal/app/status", "internal/audit/saved", "internal/chart", "internal/ledger", "internal/pg/connect", "internal/plot", "internal/report", "internal/withheld"},
	"internal/app/setup":    {"config", "internal/alert", "internal/alert/deliver", "internal/audit", "internal/audit/budget", "internal/audit/recognize", "internal/capture", "internal/finding", "internal/ledger", "internal/odometer", "internal/pg/body", "internal/pg/catalog", "internal/pg/catalog/read", "internal/pg/engine", "internal/pg/ident", "internal/sqlstate", "internal/web", "replay", "replay/neighbours", "replay/throttle", "rewrite"},
	"internal/app/show":     {"analysis"},
	"internal/app/status":   {"analysis", "config", "internal/app/oneoff", "internal/app/show", "internal/audit/view", "internal/capture", "internal/finding", "internal/ledger", "internal/supervise", "internal/web", "internal/withheld", "proxy"},

	"internal/audit/budget":        {"internal/ledger", "replay"},
	"internal/audit/inbox":         {"internal/audit/schedule", "internal/capture"},
	"internal/audit/saved":         {"analysis", "internal/audit/evidence", "internal/audit/timing", "internal/audit/view", "internal/ledger", "replay", "rewrite"},
	"internal/audit/environment":   {"internal/pg/engine", "rewrite"},
	"internal/audit/turn":          {"analysis", "internal/audit/budget", "internal/audit/environment", "internal/audit/evidence", "internal/audit/trial", "internal/audit/view", "internal/capture", "internal/pg/engine", "replay", "rewrite"},
	"internal/audit/trial":         {"analysis", "internal/audit/evidence", "internal/audit/timing", "replay"},
	"internal/audit/view":          {"analysis", "internal/audit/timing", "internal/finding", "internal/ledger", "replay", "replay/throttle"},
	"internal/audit/keep":          {"internal/audit/view", "internal/capture", "internal/ledger"},
	"internal/audit/recent":        {},
	"internal/audit/recognize":     {"internal/audit/inbox", "internal/audit/recent", "internal/audit/saved", "internal/capture", "internal/ledger", "internal/pg/ident", "rewrite"},
	"analysis/internal/eprocess":   {},
	"analysis/internal/fit":        {},
	"analysis/internal/state":      {"internal/withheld"},
	"analysis/internal/code":       {"analysis/internal/state"},
	"analysis/internal/results":    {"analysis/internal/code", "analysis/internal/state", "internal/outcome", "internal/textnumber", "internal/withheld"},
	"analysis/internal/bins":       {"analysis/internal/code", "analysis/internal/state"},
	"analysis/internal/event":      {"analysis/internal/bins", "analysis/internal/code", "analysis/internal/eprocess", "analysis/internal/fit", "analysis/internal/state"},
	"analysis/internal/book":       {"analysis/internal/eprocess", "analysis/internal/event", "analysis/internal/state"},
	"analysis/internal/lawfit":     {"analysis/internal/bins", "analysis/internal/code", "analysis/internal/event", "analysis/internal/fit"},
	"analysis/internal/score":      {"analysis/internal/bins", "analysis/internal/book", "analysis/internal/code", "analysis/internal/dependence", "analysis/internal/eprocess", "analysis/internal/event", "analysis/internal/fit", "analysis/internal/lawfit", "analysis/internal/results", "analysis/internal/state", "internal/outcome", "internal/withheld"},
	"analysis/internal/dependence": {"analysis/internal/bins", "analysis/internal/code", "analysis/internal/eprocess", "analysis/internal/state"},

	"replay/neighbours/internal/spec":    {"internal/pg/body", "internal/pg/ident"},
	"replay/neighbours/internal/session": {"internal/pg/connect"},
	"replay/neighbours/internal/source":  {"replay/neighbours/internal/session", "replay/neighbours/internal/spec", "internal/pg/catalog", "internal/pg/ident", "internal/pg/connect"},
	"replay/neighbours/internal/ddl":     {"replay/neighbours/internal/source", "replay/neighbours/internal/spec", "internal/pg/body", "internal/pgparse", "internal/pg/catalog", "internal/pg/ident"},
	"replay/neighbours/internal/shadow":  {"replay/neighbours/internal/session", "replay/neighbours/internal/source", "replay/neighbours/internal/spec", "internal/pg/catalog/read", "internal/pg/ident", "internal/pg/connect"},
	"replay/neighbours/internal/units":   {"replay/neighbours/internal/source", "replay/neighbours/internal/spec", "internal/pg/ident", "internal/pg/connect"},
	"replay/neighbours/internal/build":   {"replay/neighbours/internal/ddl", "replay/neighbours/internal/session", "replay/neighbours/internal/shadow", "replay/neighbours/internal/source", "replay/neighbours/internal/spec", "replay/neighbours/internal/units", "internal/pg/catalog", "internal/pg/catalog/read", "internal/pg/ident", "internal/pg/connect"},
	"replay/neighbours/internal/verify":  {"replay/neighbours/internal/build", "replay/neighbours/internal/ddl", "replay/neighbours/internal/session", "replay/neighbours/internal/shadow", "replay/neighbours/internal/source", "replay/neighbours/internal/spec", "replay/neighbours/internal/units", "internal/pg/catalog", "internal/pg/ident", "internal/pg/connect"},
}

// pure packages do no I/O, ask no clock, log nothing.
var pure = []string{"internal/finding", "internal/chart", "internal/report", "internal/pg/body", "internal/pg/builtin", "internal/pg/catalog", "internal/pg/ident", "internal/sqltext", "internal/pgparse", "internal/audit/evidence", "internal/audit/schedule", "internal/audit/sequence", "internal/audit/timing", "internal/audit/inbox", "internal/odometer", "rewrite", "rewrite/internal/claim", "rewrite/internal/judge", "rewrite/internal/resolve", "replay/hoist", "replay/neighbours/internal/spec", "analysis", "analysis/internal/bins", "analysis/internal/book", "analysis/internal/code", "analysis/internal/dependence", "analysis/internal/eprocess", "analysis/internal/event", "analysis/internal/fit", "analysis/internal/lawfit", "analysis/internal/results", "analysis/internal/score", "analysis/internal/state", "internal/textnumber", "internal/generate", "analysis/response/survey", "analysis/buckets", "analysis/multiplicity", "analysis/noise", "analysis/response", "analysis/diagnosis"}

// impure is what a pure package must not import.
var impure = []string{"os", "net", "io/ioutil", "os/exec", "log", "log/slog", "math/rand", "go.uber.org/zap", "github.com/jackc/pgx/v5"}

type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
	CgoFiles   []string
}

func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,Deps,CgoFiles"}, args...)...)
	cmd.Dir = "../.."
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

// The relay's packages never reach cgo: hostile SQL can kill libpg_query's process.
func TestRelayNeverReachesCgo(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "./proxy", "./internal/web", "./internal/supervise", "./internal/capture", "./internal/link", "./internal/sqltext", "./config") {
		for _, dep := range p.Deps {
			if strings.Contains(dep, "pg_query") {
				t.Errorf("%s depends on %s", p.ImportPath, dep)
			}
		}
	}
}
