package deploy_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
)

// The release tool reads its configuration, which has no key that it does not know.
func TestReleaseConfiguration(t *testing.T) {
	t.Parallel()
	p, err := config.Load("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Builds) == 0 || len(p.Archives) == 0 || len(p.NFPMs) == 0 {
		t.Errorf("%d builds, %d archives, %d packages", len(p.Builds), len(p.Archives), len(p.NFPMs))
	}
	text, err := os.ReadFile("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(wrong, append(text, "\nbuildz: []\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(wrong); err == nil {
		t.Error("a key that the release tool does not know is no error")
	}
}
