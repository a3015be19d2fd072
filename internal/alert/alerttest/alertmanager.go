// Package alerttest runs an Alertmanager for tests.
package alerttest

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/eventually"
)

// Alertmanager starts Debian's Alertmanager for a test and returns its address. Without one it skips the test.
func Alertmanager(t testing.TB) string {
	t.Helper()
	binary, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		t.Skip("no prometheus-alertmanager: deploy/prometheus/ensure.sh installs it")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(file, []byte("route: {receiver: none}\nreceivers: [{name: none}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := ""
	eventually.True(t, "an Alertmanager answers", func() bool { // another process may take the port first
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address = l.Addr().String()
		_ = l.Close()
		cmd := exec.Command(binary, "--config.file="+file, "--storage.path="+dir, "--web.listen-address="+address, "--cluster.listen-address=")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); _ = cmd.Wait() }()
		t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
		for {
			select {
			case <-ended:
				return false
			case <-time.After(50 * time.Millisecond):
			}
			if response, err := http.Get("http://" + address + "/-/ready"); err == nil {
				_ = response.Body.Close()
				if response.StatusCode == http.StatusOK {
					return true
				}
			}
		}
	})
	return "http://" + address
}

// Alert is an alert as Alertmanager shows it.
type Alert struct {
	Labels, Annotations map[string]string
	GeneratorURL        string
}

// Alerts returns the alerts that fire in the Alertmanager at an address and match a filter, such as kind="violation".
func Alerts(t testing.TB, address, filter string) (all []Alert) {
	t.Helper()
	response, err := http.Get(address + "/api/v2/alerts?" + url.Values{"filter": {filter}}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it is read completely
	if err := json.NewDecoder(response.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}
