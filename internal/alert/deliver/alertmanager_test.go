package deliver_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/alert/deliver"
	"github.com/dpwatch/dpwatch/internal/eventually"
)

// alertmanager starts Debian's Alertmanager and returns its address. The test is skipped without one.
func alertmanager(t *testing.T) string {
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

// TestAlertmanager: a violation fires in Alertmanager, is repeated so that it stays, and is resolved there.
func TestAlertmanager(t *testing.T) {
	t.Parallel()
	address := alertmanager(t)
	d, _ := start(t, deliver.Options{
		Receivers: []deliver.Receiver{{Name: "am", Type: "alertmanager", URL: address + "/", SendResolved: true, Labels: []alert.Label{{Name: "team", Value: "privacy"}}}},
		Resend:    time.Minute,
	})
	type shown struct {
		Labels, Annotations map[string]string
		EndsAt, UpdatedAt   time.Time
		GeneratorURL        string
	}
	firing := func() (all []shown) {
		response, err := http.Get(address + "/api/v2/alerts?filter=" + `kind="violation"`)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close() //nolint:errcheck // read below
		if err := json.NewDecoder(response.Body).Decode(&all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	d.Notify(violation())
	var all []shown
	eventually.True(t, "the alert fires in Alertmanager", func() bool { all = firing(); return len(all) == 1 })
	l := all[0].Labels
	if got := fmt.Sprint(l["alertname"], l["severity"], l["query_id"], l["database"], l["engine"], l["team"]); got != "DPWatchViolationwarning3f9c00000000appshopprivacy" {
		t.Errorf("labels %v", l)
	}
	if all[0].Annotations["users"] != "ann" || all[0].GeneratorURL == "" {
		t.Errorf("alert %+v", all[0])
	}
	over := violation()
	over.Kind = alert.Resolved
	d.Notify(over)
	eventually.True(t, "the alert is resolved in Alertmanager", func() bool { return len(firing()) == 0 })
}
