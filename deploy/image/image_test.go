// Package image_test assembles the root file system of the image, and runs dpwatch in it, without a container engine.
package image_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
)

// buildArguments are those of go build in the Dockerfile.
var buildArguments = []string{"-buildvcs=false", "-trimpath", "-tags", "netgo,osusergo", "-ldflags", "-s -w -linkmode external -extldflags -static -X main.version=test"}

func TestRootFileSystem(t *testing.T) {
	longtest.Skip(t)
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("SKIPPED: a chroot needs Linux and root")
	}
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no mount namespaces: %v %s", err, out)
	}
	dir := t.TempDir()
	program, root := filepath.Join(dir, "dpwatch"), filepath.Join(dir, "root")
	run(t, "go", append(append([]string{"build"}, buildArguments...), "-o", program, "../../cmd/dpwatch")...)
	run(t, "sh", "rootfs.sh", program, root)
	out := run(t, "sh", "rootfs.sh", "--check", root)
	for _, want := range []string{"dpwatch test ", "alive\n", "running since"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in the output:\n%s", want, out)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(root, "etc/dpwatch")); err != nil || len(entries) > 0 {
		t.Errorf("the check left %v in etc/dpwatch, %v", entries, err)
	}
}

// TestDockerfile requires that the image has nothing but what rootfs.sh assembles, from the program of the test above,
// for the same user.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(text), "\nFROM scratch\n")
	if copies := regexp.MustCompile(`(?m)^(?:COPY|ADD) .*$`).FindAllString(last, -1); len(copies) != 1 || copies[0] != "COPY --from=build /out/rootfs/ /" {
		t.Errorf("the image copies %q", copies)
	}
	line := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "\\\n", " ")), " ")
	want := `go build -buildvcs=false -trimpath -tags netgo,osusergo -ldflags "` + strings.Replace(buildArguments[5], "=test", "=${VERSION}", 1) +
		`" -o /out/dpwatch ./cmd/dpwatch && sh deploy/image/rootfs.sh /out/dpwatch /out/rootfs`
	if !strings.Contains(line, want) {
		t.Errorf("the Dockerfile does not contain %s", want)
	}
	script, err := os.ReadFile("rootfs.sh")
	if err != nil {
		t.Fatal(err)
	}
	for pattern, in := range map[string]string{`(?m)^user=65532$`: string(script), `(?m)^USER 65532:65532$`: last} {
		if !regexp.MustCompile(pattern).MatchString(in) {
			t.Errorf("no %s", pattern)
		}
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.Command(name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", name, err, out, stderr.String())
	}
	return string(out)
}
