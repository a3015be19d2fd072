package proxy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/clienttest"
)

func runJDBC(t *testing.T, addr, database string) string {
	source := filepath.Join(t.TempDir(), "Client.java")
	if err := os.WriteFile(source, []byte(clienttest.Script(t, "Client.java", true)), 0o600); err != nil {
		t.Fatal(err)
	}
	return runTool(t, addr, database, "", "java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", clienttest.Java(t), source)
}

func runTokioPostgres(t *testing.T, addr, database string) string {
	return runTool(t, addr, database, "", filepath.Join(clienttest.Rust(t), "conformance"))
}

func runPsqlCommands(t *testing.T, addr, database string) string {
	return runTool(t, addr, database, clienttest.Script(t, "psql.sql", true), postgres.tool("psql"), "-X", "-A")
}

// runPgRestore dumps and restores a database over several concurrent connections, and compares the result with the
// original.
func runPgRestore(t *testing.T, addr, database string) string {
	runTool(t, addr, database, `
		SET client_min_messages = warning; DROP SCHEMA IF EXISTS moved CASCADE; CREATE SCHEMA moved;
		CREATE TABLE moved.a AS SELECT i, repeat('x', i % 50) AS x FROM generate_series(1, 3000) i;
		CREATE TABLE moved.b (i int PRIMARY KEY, t text DEFAULT 'é;\n'); INSERT INTO moved.b SELECT generate_series(1, 100);
		CREATE INDEX ON moved.a (i); CREATE VIEW moved.v AS SELECT count(*) FROM moved.a JOIN moved.b USING (i);
		SELECT lo_from_bytea(0, '\x0001ff') \gset
		SELECT lo_unlink(:lo_from_bytea);`, postgres.tool("psql"), "-X", "-q")
	dump := func() string {
		out := runTool(t, addr, database, "", postgres.tool("pg_dump"), "-n", "moved")
		return regexp.MustCompile(`(?m)^\\(un)?restrict .*$`).ReplaceAllString(out, "")
	}
	before := dump()
	for i, args := range [][]string{{"-Fd", "-j", "3"}, {"-Fc"}} {
		file := filepath.Join(t.TempDir(), "dump")
		runTool(t, addr, database, "", postgres.tool("pg_dump"), append(args, "-n", "moved", "-f", file)...)
		runTool(t, addr, database, "DROP SCHEMA moved CASCADE", postgres.tool("psql"), "-X", "-q")
		restore := [][]string{{"-j", "3"}, {"--single-transaction"}}[i]
		runTool(t, addr, database, "", postgres.tool("pg_restore"), append(restore, "-d", database, file)...)
		if after := dump(); after != before {
			t.Errorf("restored with %v: %d bytes of a dump, %d before", restore, len(after), len(before))
		}
	}
	return before
}

// runReceiveWAL uses the replication protocol with CopyBoth.
func runReceiveWAL(t *testing.T, addr, database string) string {
	lsn := runTool(t, addr, database, "SELECT pg_switch_wal() \\g /dev/null\nSELECT pg_logical_emit_message(false, 'x', repeat('y', 100000)) \\g /dev/null\nSELECT pg_current_wal_flush_lsn()",
		postgres.tool("psql"), "-X", "-A", "-t", "-q")
	dir := t.TempDir()
	runTool(t, addr, database, "", postgres.tool("pg_receivewal"), "-D", dir, "--no-loop", "--synchronous", "-E", strings.TrimSpace(lsn))
	files, err := filepath.Glob(filepath.Join(dir, "0*"))
	if err != nil || len(files) == 0 {
		t.Errorf("no segment was received: %v", err)
	}
	return "the log was received"
}

func runNode(name string) func(t *testing.T, addr, database string) string {
	return func(t *testing.T, addr, database string) string {
		script := filepath.Join(t.TempDir(), "client.js")
		if err := os.WriteFile(script, []byte(clienttest.Script(t, name, true)), 0o600); err != nil {
			t.Fatal(err)
		}
		return runTool(t, addr, database, "", "env", "NODE_PATH="+clienttest.Node(t), "node", "--no-deprecation", script)
	}
}

func runPython(name string) func(t *testing.T, addr, database string) string {
	return func(t *testing.T, addr, database string) string {
		return runTool(t, addr, database, clienttest.Script(t, name, true), clienttest.Python(t), "-")
	}
}
