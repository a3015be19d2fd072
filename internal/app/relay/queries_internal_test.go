package relay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/config"
)

// TestDetailsDoNotWait: the page of a query does not wait for the privacy profile of another one, nor does what people
// do; and after that it is read again.
func TestDetailsDoNotWait(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	counted, program := filepath.Join(dir, "counted"), filepath.Join(dir, "page")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ncat >/dev/null\necho x >>"+counted+"\necho '{\"details\":{}}'\n"), 0o700); err != nil { // #nosec G306 -- a program
		t.Fatal(err)
	}
	conf := &Configuration{}
	c, none := parseConfig(t, reloadFile), json.RawMessage("{}")
	c.Ledger.DSN = config.Secret("host=x")
	conf.current.Store(&c)
	conf.resolved.Store(&none)
	qs := newQueries(conf, nil, reader{configuration: conf, binary: program, log: zap.NewNop()}, zap.NewNop())
	qs.slow.reading <- struct{}{} // a profile is computed
	read := func(want int) {
		t.Helper()
		if _, err := qs.Details(t.Context(), "id", false); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(counted); err != nil || len(text) != 2*want {
			t.Errorf("%v: read %d times, want %d", err, len(text)/2, want)
		}
	}
	qs.quick.age = profileAge // however slow this machine is
	read(1)
	read(1)
	qs.forget()
	read(2)
}
