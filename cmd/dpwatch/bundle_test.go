package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// readBundle returns the files of a bundle.
func readBundle(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "dpwatch-bundle/")] = string(content)
	}
}

// checkBundle checks a bundle of a running dpwatch that found a violation: every part is there, and nothing that must
// not be.
func (s *sidecar) checkBundle(t *testing.T, secrets ...string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	text, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	configured := file(t, "dpwatch.yaml", strings.Replace(string(text), "admin: {listen: 127.0.0.1:0", "admin: {listen: \""+s.admin+"\"", 1))
	call(t, "", "doctor", "--config", configured, "--bundle", path).want(t, exitDone, "review it")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	call(t, "", "doctor", "--config", configured, "--bundle", path).want(t, exitFailure, "exists and is not replaced")
	files := readBundle(t, path)
	for name, want := range map[string]string{
		"version.txt": "dpwatch", "configuration.yaml": "max_trials: 500", "doctor.json": `"name": "replay rate"`, "status.txt": "violation", "coverage.txt": "audited",
		"audits.txt": "noisy(count(*), ?)", "alerts.txt": "no alerts", "metrics.txt": "dpwatch_open_violations 1", "manifest.json": `"files"`,
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s has no %q:\n%s", name, want, files[name])
		}
	}
	var manifest struct{ Files []bundleFile }
	if err := json.Unmarshal([]byte(files["manifest.json"]), &manifest); err != nil || len(manifest.Files) != len(files)-1 {
		t.Errorf("%d files in the manifest, %d in the archive, %v", len(manifest.Files), len(files), err)
	}
	for name, text := range files {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %q:\n%s", name, secret, text)
			}
		}
	}
}

// TestBundleWithoutAnything: a configuration with faults, and no dpwatch that runs, are described.
func TestBundleWithoutAnything(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	call(t, "", "doctor", "--config", file(t, "dpwatch.yaml", "proxy: {lisen: 1}\n"), "--bundle", path).want(t, exitDone)
	files := readBundle(t, path)
	if len(files) != 7 || !strings.Contains(files["configuration.yaml"], "proxy.lisen: unknown key") || files["audits.txt"] != "" {
		t.Errorf("%q", files)
	}
}
