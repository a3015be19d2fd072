// Package package_test checks that what the configuration of releases packs exists.
package package_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/dpwatch/dpwatch/internal/longtest"
)

// release is the part of .goreleaser.yaml that names files.
type release struct {
	Archives []struct {
		Files []struct{ Src string }
	}
	NFPMs []struct {
		Contents []struct{ Src, Dst, Type string }
		Scripts  map[string]string
	} `yaml:"nfpms"`
}

// TestFiles generates what packages contain, and looks for each file of the configuration. What is generated lies
// elsewhere here.
func TestFiles(t *testing.T) {
	longtest.Skip(t)
	generated := filepath.Join(t.TempDir(), "package")
	if out, err := exec.Command("sh", "generate.sh", generated).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var r release
	if err := yaml.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, a := range r.Archives {
		for _, f := range a.Files {
			named = append(named, f.Src)
		}
	}
	packaged := map[string]bool{}
	for _, p := range r.NFPMs {
		for _, c := range p.Contents {
			packaged[c.Dst] = true
			if c.Type != "dir" {
				named = append(named, c.Src)
			}
		}
		for _, script := range p.Scripts {
			named = append(named, script)
		}
	}
	if len(named) < 15 {
		t.Errorf("only %d files are named", len(named))
	}
	for _, name := range named {
		path := filepath.Join("../..", name)
		if rest, ok := strings.CutPrefix(name, "bin/package/"); ok {
			path = filepath.Join(generated, rest)
		}
		found, err := filepath.Glob(path)
		if err != nil || len(found) == 0 {
			t.Errorf("%s does not exist: %v", name, err)
		}
		for _, f := range found {
			if info, err := os.Stat(f); err != nil || info.Mode()&fs.ModeType == 0 && info.Size() == 0 {
				t.Errorf("%s is empty: %v", f, err)
			}
		}
	}
	for _, unit := range []string{"dpwatch.service", "dpwatch-worker.service"} {
		if !packaged["/usr/lib/systemd/system/"+unit] {
			t.Errorf("the packages do not contain %s", unit)
		}
	}
}
