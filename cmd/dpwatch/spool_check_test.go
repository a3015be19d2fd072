package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/dpwatch/dpwatch/internal/preflight"
)

// TestCheckConnectSpool: doctor reports a spool directory that cannot be used, and makes none.
func TestCheckConnectSpool(t *testing.T) {
	t.Parallel()
	open := t.TempDir()
	if err := os.Chmod(open, 0o755); err != nil { //nolint:gosec // what the check refuses
		t.Fatal(err)
	}
	taken, missing := file(t, "taken", ""), filepath.Join(t.TempDir(), "a", "spool")
	for dir, want := range map[string]preflight.Check{
		missing:                          {Status: preflight.OK, Message: "does not exist: run makes it"},
		open:                             {Status: preflight.Fault, Message: "run chmod 700 on it"},
		taken:                            {Status: preflight.Fault, Message: taken + " is not a directory"},
		filepath.Join(taken, "a", "dir"): {Status: preflight.Fault, Message: "not a directory"},
	} {
		path := file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: 127.0.0.1:1}
shadow: {dsn: "postgres://replay@127.0.0.1:1/shadow"}
privacy: {protected: [public.people]}
ledger: {dsn: memory, spool: {dir: %q}}
`, dir))
		got := find(checksOf(t, exitFailure, path), "ledger.spool.dir", want.Message) // nothing listens at the other addresses
		if got.Object != dir || got.Status != want.Status || (got.Fix == "") != (want.Status == preflight.OK) {
			t.Errorf("%s: %+v; want %+v", dir, got, want)
		}
	}
	if _, err := os.Stat(filepath.Dir(missing)); !os.IsNotExist(err) {
		t.Errorf("the check made a directory: %v", err)
	}
}
