//go:build linux

package chaos_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dpwatch/dpwatch/internal/eventually"
)

// inside is set in the process that runs in a network namespace of its own.
const inside = "DPWATCH_CHAOS_INSIDE"

// inNamespace runs the test again in a process with a network namespace of its own, and reports whether this is that
// process. The test is skipped where none can be made.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		command(t, "ip", "link", "set", "lo", "up")
		return true
	}
	if out, err := exec.Command("unshare", "--net", "ip", "link", "add", "hub9", "type", "veth", "peer", "name", "host9").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no network namespaces here (they need root and iproute2): %v %s", err, out)
	}
	again := exec.Command("unshare", "--net", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=0")
	again.Env = append(os.Environ(), inside+"=1")
	again.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	out, err := again.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	return false
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// host is a network namespace: a machine with its own addresses.
type host struct{ pid string }

// newHost makes a namespace, which ends with this process.
func newHost(t *testing.T) *host {
	t.Helper()
	cmd := exec.Command("unshare", "--net", "sleep", "infinity")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	h := &host{strconv.Itoa(cmd.Process.Pid)}
	mine, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a network namespace", func() bool {
		its, err := os.Readlink("/proc/" + h.pid + "/ns/net")
		return err == nil && its != mine
	})
	command(t, "nsenter", h.on("ip", "link", "set", "lo", "up")...)
	return h
}

// on returns the arguments of nsenter that run a command on the host.
func (h *host) on(args ...string) []string {
	return append([]string{"--target", h.pid, "--net", "--"}, args...)
}

// link is a cable between this namespace and a host.
type link struct{ here, address string }

// connect lays a cable with the nth network; the address is that of this end.
func (h *host) connect(t *testing.T, n int) *link {
	t.Helper()
	l := &link{here: fmt.Sprintf("hub%d", n), address: fmt.Sprintf("10.77.%d.1", n)}
	there := fmt.Sprintf("host%d", n)
	command(t, "ip", "link", "add", l.here, "type", "veth", "peer", "name", there, "netns", h.pid)
	command(t, "ip", "address", "add", l.address+"/24", "dev", l.here)
	command(t, "nsenter", h.on("ip", "address", "add", fmt.Sprintf("10.77.%d.2/24", n), "dev", there)...)
	command(t, "nsenter", h.on("ip", "link", "set", there, "up")...)
	l.fix(t)
	return l
}

// cut makes packets get lost; no one is told.
func (l *link) cut(t *testing.T) { command(t, "ip", "link", "set", l.here, "down") }

func (l *link) fix(t *testing.T) { command(t, "ip", "link", "set", l.here, "up") }

// slow limits the bandwidth, and reports whether this kernel can.
func (l *link) slow(t *testing.T) bool {
	t.Helper()
	out, err := exec.Command("tc", "qdisc", "replace", "dev", l.here, "root", "tbf", "rate", "256kbit", "burst", "8kb", "latency", "400ms").CombinedOutput()
	if err != nil {
		t.Logf("no slow link: this kernel has no token bucket filter: %s", out)
	}
	return err == nil
}
