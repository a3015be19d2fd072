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

// lookAtSources reads the status of every source file, so that go test runs this test again when one has changed: it
// does not know what go list reads.
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

// TestImportsFollowTheLayers finds these kinds of faults in the imports of packages (tests apart):
//   - a package imports one of a higher layer: a stage the auditor, the ledger the application, anything the command;
//   - a package imports another room of its layer: rewrite imports replay, or the pages import the findings;
//   - a package is in no layer, or layers_test.go has a place for a package that is not there any more;
//   - a pure package imports one that does I/O, directly or through a package of this module;
//   - an exception that no import needs any more.
//
// TestRelayNeverReachesCgo finds the others. None finds an import of a lower layer that is not needed.
func TestImportsFollowTheLayers(t *testing.T) {
	t.Parallel()
	for _, fault := range faults(list(t, "./...")) {
		t.Error(fault)
	}
}

// TestWrongImports: each kind of fault is found.
func TestWrongImports(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, imports, want string }{
		{"proxy", module + "internal/audit", "proxy of the layer"},
		{"internal/ledger", module + "config", "internal/ledger of the layer"},
		{"internal/app/relay", module + "internal/app/stages", "internal/app/relay of the layer"},
		{"internal/app/show", module + "cmd/dpwatch", "internal/app/show of the layer"},
		{"rewrite", module + "replay", "both are in the layer"},
		{"analysis", module + "replay/throttle", "both are in the layer"},
		{"internal/alert", module + "internal/ledger", "both are in the layer"},
		{"internal/pg/ident", module + "internal/sqltext", "both are in the layer"},
		{"replay", module + "internal/chaos", "replay of the layer"},
		{"internal/brandnew", "fmt", "internal/brandnew is in no layer"},
		{"rewrite", "os", "rewrite is pure and imports os"},
		{"analysis/internal/score", "math/rand", "analysis/internal/score is pure and imports math/rand"},
		{"rewrite/internal/judge", module + "internal/pg/connect", "is pure and imports internal/pg/connect, which is not"},
	} {
		all := faults([]pkg{{ImportPath: module + tc.name, Imports: []string{tc.imports}}})
		if !slices.ContainsFunc(all, func(fault string) bool { return strings.Contains(fault, tc.want) }) {
			t.Errorf("%s imports %s: no fault with %q", tc.name, tc.imports, tc.want)
		}
	}
	if !slices.Contains(faults(nil), "cmd/dpwatch is in layers_test.go, and no package belongs there") {
		t.Error("a package that is gone is not reported")
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
