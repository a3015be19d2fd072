package proxy_test

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgproto3/v2"

	"github.com/dpwatch/dpwatch/internal/clienttest"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/proxy"
)

// TestBindingFlag: a client without TLS that announces channel binding (SCRAM flag y) cannot authenticate if the engine
// leg uses TLS: the engine refuses the flag, and the client's proof covers it. The client gets an error that says what
// to do. In all other combinations of TLS such clients connect.
func TestBindingFlag(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	for name, binDir := range map[string]string{"default server": "", "PostgreSQL 18": postgres18.binDir} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "default server" {
				needs18(t)
			}
			c := startSecure(t, binDir)
			t.Run("raw", func(t *testing.T) { testRawFlag(t, c) })
			t.Run("node-postgres", func(t *testing.T) { testNodeBinding(t, c) })
		})
	}
}

// initialResponse returns a SASLInitialResponse of SCRAM-SHA-256 with a GS2 flag.
func initialResponse(flag string) []byte {
	first := flag + ",,n=,r=0123456789abcdefghijklmn"
	return message('p', "SCRAM-SHA-256\x00\x00\x00\x00"+string(rune(len(first)))+first)
}

// testRawFlag sends the flags without TLS. The engine answers an accepted flag with AuthenticationSASLContinue.
func testRawFlag(t *testing.T, c *secureCluster) {
	login := packet(version30, "user\x00postgres\x00database\x00postgres\x00\x00")
	for name, test := range map[string]struct {
		upstream proxy.UpstreamTLSMode
		flag     string
		refused  bool
	}{
		"TLS to the engine, y":   {proxy.UpstreamRequire, "y", true},
		"TLS to the engine, n":   {proxy.UpstreamRequire, "n", false},
		"plain to the engine, y": {proxy.UpstreamDisable, "y", false},
	} {
		for _, pieces := range []bool{false, true} {
			p := start(t, c.upstream(), legs(proxy.TLSDisable, nil, test.upstream))
			conn := p.dial(t)
			send(t, conn, login)
			if typ, body, err := readMessage(conn); err != nil || typ != 'R' || !strings.HasPrefix(body, "\x00\x00\x00\x0aSCRAM-SHA-256\x00") {
				t.Fatalf("%s: message %c %q, %v; want AuthenticationSASL", name, typ, body, err)
			}
			if answer := initialResponse(test.flag); pieces {
				for i := range answer {
					send(t, conn, answer[i:i+1])
				}
			} else {
				send(t, conn, answer)
			}
			typ, body, err := readMessage(conn)
			if err != nil || (typ == 'E') != test.refused || !test.refused && !strings.HasPrefix(body, "\x00\x00\x00\x0b") {
				t.Errorf("%s: message %c %q, %v; want an error: %v", name, typ, body, err, test.refused)
			}
			if !test.refused {
				_ = conn.Close()
				continue
			}
			var e pgproto3.ErrorResponse
			if err := e.Decode([]byte(body)); err != nil || e.Severity != "FATAL" || e.Code != "28000" || !strings.Contains(e.Detail, "flag y") || !strings.Contains(e.Hint, "enableChannelBinding: false") {
				t.Errorf("%s: %+v, %v; want an error that says what to do", name, e, err)
			}
			if _, _, err := readMessage(conn); err == nil {
				t.Errorf("%s: the session goes on", name)
			}
		}
	}
}

// bindingScript connects with each setting of channel binding and TLS and prints whether the server sees TLS, or the
// error.
const bindingScript = `
const { Client } = require('pg');
(async () => {
  const out = {};
  for (const tls of [false, true]) for (const enableChannelBinding of [false, true]) {
    const c = new Client({ user: 'postgres', password: process.env.PGPASSWORD, host: process.env.PGHOST, port: +process.env.PGPORT, database: 'postgres',
      ssl: tls && { rejectUnauthorized: false }, enableChannelBinding });
    c.on('error', () => {});
    const name = (tls ? 'tls' : 'plain') + (enableChannelBinding ? ' binding' : '');
    try { await c.connect(); out[name] = String((await c.query('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')).rows[0].ssl); await c.end(); }
    catch (e) { out[name] = 'fails: ' + e.message + ' ' + (e.hint || ''); }
  }
  console.log(JSON.stringify(out));
})();
`

// testNodeBinding runs node-postgres, which sends the flag y also without TLS.
func testNodeBinding(t *testing.T, c *secureCluster) {
	path := clienttest.Node(t)
	const fails = "fails"
	for name, test := range map[string]struct {
		change                              func(*proxy.Options)
		plain, plainBound, secured, secureB string
	}{
		"no TLS":              {legs(proxy.TLSDisable, nil, proxy.UpstreamDisable), "false", "false", fails, fails},
		"plain to the engine": {legs(proxy.TLSAllow, c.other, proxy.UpstreamDisable), "false", "false", "false", "false"},
		"TLS on both legs":    {legs(proxy.TLSAllow, c.id, proxy.UpstreamRequire), "true", fails, "true", "true"},
		"plain to clients":    {legs(proxy.TLSDisable, nil, proxy.UpstreamRequire), "true", fails, fails, fails},
		"passed through":      {legs(proxy.TLSPassthrough, nil, proxy.UpstreamDisable), "false", "false", "true", "true"},
	} {
		p := start(t, c.upstream(), test.change)
		host, port, err := net.SplitHostPort(p.addr)
		if err != nil {
			t.Fatal(err)
		}
		script := filepath.Join(t.TempDir(), "client.js")
		write(t, script, []byte(bindingScript))
		cmd := exec.CommandContext(t.Context(), "node", "--no-deprecation", script)
		cmd.Env = append(os.Environ(), "NODE_PATH="+path, "PGHOST="+host, "PGPORT="+port, "PGPASSWORD="+c.Password())
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, text)
		}
		got := map[string]string{}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v: %s", name, err, text)
		}
		for client, want := range map[string]string{"plain": test.plain, "plain binding": test.plainBound, "tls": test.secured, "tls binding": test.secureB} {
			if failed := strings.HasPrefix(got[client], fails); failed != (want == fails) || !failed && got[client] != want {
				t.Errorf("%s: %s: %q, want %q", name, client, got[client], want)
			}
		}
		if strings.HasPrefix(test.plain, "true") && !strings.Contains(got["plain binding"], "Turn channel binding off") {
			t.Errorf("%s: the client reports %q, want what to do", name, got["plain binding"])
		}
	}
}
