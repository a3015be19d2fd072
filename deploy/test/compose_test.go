package deploy_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// TestCompose reads compose.yaml strictly, as the engine's client does, and checks that everything it refers to exists.
func TestCompose(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{"../compose/compose.yaml"}, cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	start := readFile(t, "../compose/start.sh")
	for name, secret := range project.Secrets {
		if word := strings.TrimSuffix(name, "_password"); filepath.Base(secret.File) != name || !regexp.MustCompile(`for name in [a-z ]*\b`+word+`\b`).MatchString(start) {
			t.Errorf("start.sh does not create the secret %s, %s", name, secret.File)
		}
	}
	pinned := regexp.MustCompile(`^[a-z.]+/[a-z/]+:v?\d+\.\d+[a-z0-9.-]*(@sha256:[0-9a-f]{64})?$`)
	for name, service := range project.Services {
		if service.Build == nil && !pinned.MatchString(service.Image) {
			t.Errorf("service %s: the image %s has no version", name, service.Image)
		}
		for _, v := range service.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
				t.Errorf("service %s: %s: read-only %t, %v", name, v.Source, v.ReadOnly, err)
			}
		}
		for _, p := range service.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("service %s: other machines can reach port %s", name, p.Published)
			}
		}
	}
	s := project.Services["dpwatch"]
	if !s.ReadOnly || len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" || len(s.SecurityOpt) != 1 || s.StopGracePeriod == nil || s.Build == nil {
		t.Errorf("the container of dpwatch has more rights than it needs: %+v", s)
	}
	if _, err := os.Stat(filepath.Join(s.Build.Context, "Dockerfile")); err != nil {
		t.Error(err)
	}
	if _, both := project.Services["client"].Networks["engine"]; both {
		t.Error("the client can reach the engine without dpwatch")
	}
}

// TestComposeConfigurations lets each program check its file.
func TestComposeConfigurations(t *testing.T) {
	checkConfig(t, readFile(t, "../compose/dpwatch.yaml"))
	dir := t.TempDir() // as in the container: beside rules.yml
	for from, to := range map[string]string{"../compose/prometheus.yml": "prometheus.yml", "../prometheus/rules.yml": "rules.yml"} {
		if err := os.WriteFile(filepath.Join(dir, to), []byte(readFile(t, from)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range [][]string{
		{"promtool", "check", "config", filepath.Join(dir, "prometheus.yml")},
		{"amtool", "check-config", "../compose/alertmanager.yml"},
		{"sh", "-n", "../compose/start.sh"},
	} {
		t.Run(command[0], func(t *testing.T) {
			if _, err := exec.LookPath(command[0]); err != nil {
				t.Skip("SKIPPED: no " + command[0])
			}
			if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
