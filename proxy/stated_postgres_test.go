package proxy_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/proxy"
)

// saying are functions that raise messages, of the level INFO, which every client gets, and of the level NOTICE.
const saying = `CREATE FUNCTION say(message text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE INFO '%', message; RETURN 1; END $$;
	CREATE FUNCTION say_notice(message text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', message; RETURN 1; END $$;
	CREATE FUNCTION say_early(message text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RAISE INFO '%', message; RETURN 1; END $$`

// TestStatedClaims: a claim in a notice belongs to the statement during which a real server sends it, in a pipeline, too.
// What the client causes otherwise is none, and a claim that cannot be read is counted, and logged once, without its
// text.
func TestStatedClaims(t *testing.T) {
	t.Parallel()
	postgres.ensure(t)
	if err := postgres.CreateDatabase(t.Context(), "stated"); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, postgres.SocketDSN("stated"), saying)
	core, logs := observer.New(zap.InfoLevel)
	p := start(t, postgres.upstream(t), func(o *proxy.Options) { o.ClaimPrefix, o.Logger = "dp", zap.New(core) })
	run := func(t *testing.T, conn *pgx.Conn, sql string, fails bool) {
		t.Helper()
		var one pgx.Batch // a single Exec without parameters is always a simple query
		one.Queue(sql)
		if err := conn.SendBatch(t.Context(), &one).Close(); (err != nil) != fails {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	want := func(t *testing.T, sql string, stated capture.Stated) {
		t.Helper()
		if got := p.sink.find(t, sql).Stated; got != stated {
			t.Errorf("%s: %+v, want %+v", sql, got, stated)
		}
	}
	none, unclear := capture.Stated{}, capture.Stated{Unclear: true}
	for _, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			conn := connect(t, p.addr, "dbname=stated default_query_exec_mode="+mode)
			text := func(i int, call string) string { return fmt.Sprintf("SELECT '%s %d', %s", mode, i, call) }
			var batch pgx.Batch
			for i, call := range []string{"say('dp.epsilon=1')", "1", "say('dp.epsilon=3 dp.delta=1e-6') + say('dp.epsilon=2')", "say('dp.rho=0.5')"} {
				batch.Queue(text(i, call))
			}
			if err := conn.SendBatch(t.Context(), &batch).Close(); err != nil {
				t.Fatal(err)
			}
			expected := []capture.Stated{{Epsilon: 1}, none, {Epsilon: 3, Delta: 1e-6}, {Rho: 0.5}}
			if mode == "simple_protocol" { // pgx sends one message with four statements
				expected = []capture.Stated{unclear, unclear, unclear, unclear}
			}
			for i, q := range batch.QueuedQueries {
				want(t, q.SQL, expected[i])
			}
			run(t, conn, "DO $$ BEGIN PERFORM say('dp.epsilon=9'); END $$", false)
			run(t, conn, "SET client_min_messages = error", false)
			for i, c := range []struct {
				call   string
				fails  bool
				stated capture.Stated
			}{
				{call: "say('dp.epsilon=2')", stated: capture.Stated{Epsilon: 2}},
				{call: "say_notice('dp.epsilon=9')"}, // the client suppresses it
				{call: "set_config('dp.epsilon', '9', false)"},
				{call: "set_config('client_min_messages', 'notice', false)"},
				{call: `1 AS "dp.epsilon=9 ` + strings.Repeat("x", 70) + `"`}, // a notice about the long name
				{call: "say('secret: dp.epsilon=9')"},
				{call: "say('dp.epsilon=9, secret') + say('dp.epsilon=2')", stated: capture.Stated{Epsilon: 2}},
				{call: "1 / (say('dp.epsilon=2') - 1)", fails: true, stated: capture.Stated{Epsilon: 2}},
				{call: "1 / (length(version()) * 0)", fails: true, stated: unclear},
			} {
				sql := text(10+i, c.call)
				run(t, conn, sql, c.fails)
				want(t, sql, c.stated)
			}
			if mode != "simple_protocol" { // the server calls the function while it plans the statement, at Bind
				run(t, conn, text(4, "say_early('dp.epsilon=9')"), false)
				want(t, text(4, "say_early('dp.epsilon=9')"), none)
			}
		})
	}
	eventually.True(t, "the claims that could not be read are counted", func() bool { return p.Stats().ClaimsUnread == 3 })
	warnings := logs.FilterLevelExact(zap.WarnLevel).All()
	if len(warnings) != 1 || !strings.Contains(warnings[0].Message, "claims.answer") {
		t.Errorf("warnings: %v", warnings)
	}
	for _, e := range logs.All() {
		if strings.Contains(fmt.Sprint(e.Message, e.ContextMap()), "secret") {
			t.Errorf("the log has the text of a notice: %v", e)
		}
	}
}

// TestStatedStatus: a gateway states the claim of each answer in ParameterStatus messages. One at the beginning of the
// session, or behind CommandComplete, is no claim of an answer.
func TestStatedStatus(t *testing.T) {
	t.Parallel()
	status := func(name, value string) []byte { return message('S', name+"\x00"+value+"\x00") }
	upstream := backend(t, func(conn net.Conn) {
		readPacket(t, conn)
		send(t, conn, status("dp.epsilon", "9"), greeting())
		for n := 0; ; n++ {
			if typ, _, err := readMessage(conn); err != nil || typ != 'Q' {
				return
			}
			parts := [][]byte{message('T', "\x00\x00"), message('C', "SELECT 1\x00"), status("dp.epsilon", "9"), message('Z', "I")}
			if n == 1 {
				parts = append([][]byte{parts[0], status("dp.epsilon", "2"), status("dp.delta", "1e-6")}, parts[1:]...)
			}
			send(t, conn, parts...)
		}
	})
	p := start(t, upstream, func(o *proxy.Options) { o.ClaimPrefix = "dp" })
	conn := p.dial(t)
	send(t, conn, hello())
	until(t, conn, 'Z')
	for n, stated := range []capture.Stated{{}, {Epsilon: 2, Delta: 1e-6}, {}} {
		sql := fmt.Sprint("SELECT ", n)
		send(t, conn, message('Q', sql+"\x00"))
		until(t, conn, 'Z')
		if got := p.sink.find(t, sql).Stated; got != stated {
			t.Errorf("%s: %+v, want %+v", sql, got, stated)
		}
	}
}
