package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSystemd lets systemd verify the units, and asks it how exposed they are.
func TestSystemd(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("SKIPPED: no systemd-analyze")
	}
	program, err := filepath.Abs("../../bin/dpwatch")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dpwatch.service", "dpwatch-worker.service"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("../systemd/" + name)
			if err != nil {
				t.Fatal(err)
			}
			unit := filepath.Join(t.TempDir(), name) // with a program and a user that exist here
			local := strings.NewReplacer("/usr/bin/dpwatch", program, "User=dpwatch", "User=daemon", "Group=dpwatch", "Group=daemon").Replace(string(text))
			if err := os.WriteFile(unit, []byte(local), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("systemd-analyze", "verify", "--man=no", unit).CombinedOutput(); err != nil || strings.Contains(string(out), unit) {
				t.Errorf("%v\n%s", err, out)
			}
			out, err := exec.Command("systemd-analyze", "security", "--no-pager", "--offline=yes", "--threshold=20", unit).CombinedOutput()
			if err != nil && strings.Contains(string(out), "unrecognized option") {
				t.Skip("SKIPPED: this systemd-analyze cannot judge a unit offline")
			}
			if err != nil {
				t.Errorf("the unit is more exposed than 2.0: %v\n%s", err, out)
			}
			stop := regexp.MustCompile(`TimeoutStopSec=(\d+)`).FindSubmatch(text)
			if stop == nil || name == "dpwatch.service" && string(stop[1]) != "45" {
				t.Errorf("TimeoutStopSec %s", stop)
			}
		})
	}
}
