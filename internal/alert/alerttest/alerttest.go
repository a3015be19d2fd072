// Package alerttest runs an Alertmanager and a Prometheus for tests.
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
	binary := find(t, "prometheus-alertmanager")
	dir := t.TempDir()
	file := write(t, dir, "alertmanager.yml", "route: {receiver: none}\nreceivers: [{name: none}]\n")
	return serve(t, func(address string) *exec.Cmd {
		return exec.Command(binary, "--config.file="+file, "--storage.path="+dir, "--web.listen-address="+address, "--cluster.listen-address=")
	})
}

// Prometheus starts Debian's Prometheus with a configuration and returns its address. Without one it skips the test.
func Prometheus(t testing.TB, config string) string {
	t.Helper()
	binary := find(t, "prometheus")
	dir := t.TempDir()
	file := write(t, dir, "prometheus.yml", config)
	return serve(t, func(address string) *exec.Cmd {
		return exec.Command(binary, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	})
}

// find returns the path of a program, or skips the test.
func find(t testing.TB, name string) string {
	t.Helper()
	binary, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s: deploy/prometheus/ensure.sh installs it", name)
	}
	return binary
}

func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// serve starts a server that has the path /-/ready on a free port. It ends with the test.
func serve(t testing.TB, command func(address string) *exec.Cmd) string {
	t.Helper()
	var address string
	eventually.True(t, "a server is ready", func() bool { // another process may take the port first
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address = l.Addr().String()
		_ = l.Close()
		cmd := command(address)
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

// Alert is an alert as Alertmanager or Prometheus shows it.
type Alert struct {
	Labels, Annotations map[string]string
	GeneratorURL        string
	State               string // of Prometheus: pending or firing
}

// Alerts returns the alerts that fire in the Alertmanager at an address and match a filter, such as kind="violation".
func Alerts(t testing.TB, address, filter string) (all []Alert) {
	t.Helper()
	get(t, address+"/api/v2/alerts?"+url.Values{"filter": {filter}}.Encode(), &all)
	return all
}

// RuleAlerts returns the alerts of the rules in the Prometheus at an address.
func RuleAlerts(t testing.TB, address string) []Alert {
	t.Helper()
	var answer struct{ Data struct{ Alerts []Alert } }
	get(t, address+"/api/v1/alerts", &answer)
	return answer.Data.Alerts
}

func get(t testing.TB, address string, into any) {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it is read completely
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}
