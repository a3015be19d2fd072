package flow_test

import (
	"fmt"
	"slices"
	"strings"
)

// layer is a set of rooms. A package may import its own room and the rooms of the layers below, and nothing else of
// this module. Packages belong to the room with the longest pattern that matches: "a/b" is one package, "a/..." is a
// and everything below it.
type layer struct {
	name  string
	rooms [][]string
}

// layers are all layers, the lowest first. A package belongs as high as its importers allow: what only the application
// uses cannot be imported by a stage then.
var layers = []layer{
	{"words: values and texts, of which each is on its own", alone(
		"docs", "internal/chart", "internal/curve", "internal/finding", "internal/link", "internal/odometer", "internal/outcome", "internal/pg/builtin", "internal/pg/ident", "internal/reload", "internal/sarif", "internal/sarif/sariftest",
		"internal/spelling", "internal/sqlstate", "internal/sqltext", "internal/terminal", "internal/textnumber", "internal/withheld",
		"internal/audit/timing", "internal/eventually", "internal/clienttest", "replay/hoisting", "rewrite/reasons",
	)},
	{"what a stage takes and gives, and PostgreSQL", [][]string{{"internal/capture"}, {"internal/recorded"}, {"internal/pg/...", "internal/pgparse"}}},
	{"stages: no stage imports another", [][]string{{"proxy/..."}, {"rewrite/..."}, {"replay/..."}, {"analysis/..."}, {"internal/supervise"}}},
	{"the read model", [][]string{{"internal/read", "internal/app/show"}}},
	{"what is kept, and what is reported", [][]string{{"internal/ledger"}, {"internal/alert", "internal/alert/alerttest"}}},
	{"the auditor, which alone sees all stages", [][]string{{"internal/audit/..."}, {"internal/alert/deliver"}}},
	{"parts of the application", [][]string{
		{"config"},
		{"internal/web"},
		{"internal/plot"},
		{"internal/report"},
		{"internal/preflight"},
		{"internal/draft"},
		{"internal/pgtemp/..."},
		{"internal/zoo", "internal/showcase", "internal/generate/..."},
	}},
	{"the application of the relay, without a SQL parser", [][]string{{
		"internal/app/admin", "internal/app/querypage", "internal/app/records", "internal/app/relay", "internal/app/setup", "internal/app/status", "internal/pages",
	}}},
	{"the application that parses and replays", [][]string{{
		"internal/app/auditor", "internal/app/check", "internal/app/findings", "internal/app/oneoff", "internal/app/reports", "internal/app/stages", "internal/calibrate",
	}}},
	{"programs", [][]string{{"internal/demo"}}},
	{"the command", [][]string{{"cmd/dpwatch"}}},
	{"tests alone, which nothing imports", alone(
		"deploy/compose", "deploy/image", "deploy/package", "examples/engines", "examples/gateway", "examples/gateway/noisy", "examples/hostile", "internal/chaos", "internal/flow",
		"internal/golden", "internal/leaktest", "internal/longtest", "internal/planted", "internal/program",
	)},
}

// exceptions are imports that no rule allows, each with its reason.
var exceptions = map[[2]string]string{}

// pure packages do no I/O and log nothing: they import no package of impure, and of this module only pure packages.
var pure = []string{
	"analysis/...", "rewrite/...", "internal/audit/evidence", "internal/audit/inbox", "internal/audit/schedule", "internal/audit/sequence", "internal/audit/timing",
	"internal/capture", "internal/chart", "internal/curve", "internal/finding", "internal/generate", "internal/odometer", "internal/outcome", "internal/pg/body",
	"internal/pg/builtin", "internal/pg/catalog", "internal/pg/ident", "internal/pgparse", "internal/report", "internal/sqltext", "internal/textnumber",
	"internal/withheld", "replay/hoist", "replay/hoisting", "replay/neighbours/internal/spec",
}

// impure is what a pure package must not import.
var impure = []string{"os", "net", "io/ioutil", "os/exec", "log", "log/slog", "math/rand", "go.uber.org/zap", "github.com/jackc/pgx/v5"}

// alone returns a room for each package.
func alone(names ...string) (rooms [][]string) {
	for _, name := range names {
		rooms = append(rooms, []string{name})
	}
	return rooms
}

// place is where a package belongs.
type place struct{ layer, room int }

// matches reports whether a pattern matches a package.
func matches(pattern, name string) bool {
	tree, is := strings.CutSuffix(pattern, "/...")
	return pattern == name || is && (name == tree || strings.HasPrefix(name, tree+"/"))
}

// placeOf returns where a package belongs, and the pattern that says so; "" = nowhere.
func placeOf(name string) (at place, by string) {
	for i, l := range layers {
		for j, room := range l.rooms {
			for _, pattern := range room {
				if matches(pattern, name) && len(pattern) > len(by) {
					at, by = place{i, j}, pattern
				}
			}
		}
	}
	return at, by
}

func isPure(name string) bool {
	return slices.ContainsFunc(pure, func(pattern string) bool { return matches(pattern, name) })
}

// faults returns what is wrong with the imports of packages.
func faults(packages []pkg) (found []string) {
	used, patterns := map[[2]string]bool{}, map[string]bool{}
	for _, p := range packages {
		name := strings.TrimPrefix(p.ImportPath, module)
		at, by := placeOf(name)
		if by == "" {
			found = append(found, name+" is in no layer: add it to layers_test.go")
			continue
		}
		patterns[by] = true
		for _, path := range p.Imports {
			imported, ours := strings.CutPrefix(path, module)
			if !ours {
				if isPure(name) && slices.Contains(impure, path) {
					found = append(found, fmt.Sprintf("%s is pure and imports %s", name, path))
				}
				continue
			}
			if isPure(name) && !isPure(imported) {
				found = append(found, fmt.Sprintf("%s is pure and imports %s, which is not", name, imported))
			}
			if exceptions[[2]string{name, imported}] != "" {
				used[[2]string{name, imported}] = true
				continue
			}
			switch to, known := placeOf(imported); {
			case known == "" || to == at: // that it is in no layer is reported of the package itself
			case to.layer == at.layer:
				found = append(found, fmt.Sprintf("%s imports %s: both are in the layer %q, and in different rooms", name, imported, layers[at.layer].name))
			case to.layer > at.layer:
				found = append(found, fmt.Sprintf("%s of the layer %q imports %s of the higher layer %q", name, layers[at.layer].name, imported, layers[to.layer].name))
			}
		}
	}
	for _, l := range layers {
		for _, pattern := range slices.Concat(l.rooms...) {
			if !patterns[pattern] {
				found = append(found, pattern+" is in layers_test.go, and no package belongs there")
			}
		}
	}
	for pair := range exceptions {
		if !used[pair] {
			found = append(found, fmt.Sprintf("%s does not import %s any more: remove the exception", pair[0], pair[1]))
		}
	}
	return found
}
