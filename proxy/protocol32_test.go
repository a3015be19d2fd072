package proxy_test

import (
	"context"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/eventually"
)

// TestProtocol32: PostgreSQL 18 uses protocol 3.2 through the proxy; cancel requests work with its longer key.
func TestProtocol32(t *testing.T) {
	t.Parallel()
	c := needs18(t)
	o := observe(t, c.upstream(t), 0, nil)
	conn := connect(t, o.outer.addr, "min_protocol_version=3.2 max_protocol_version=3.2")
	if n := len(conn.PgConn().SecretKey()); n <= 4 {
		t.Errorf("the key has %d bytes: not 3.2", n)
	}
	watch := connect(t, c.upstream(t).Address, "")
	failed := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "SELECT pg_sleep(601)")
		failed <- err
	}()
	eventually.True(t, "the statement runs", func() bool { return backends(t, watch, "SELECT pg_sleep(601)%") == 1 })
	if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; sqlState(err) != "57014" {
		t.Errorf("got %v, want 57014", err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT 'after 3.2'"); err != nil {
		t.Fatal(err)
	}
	o.sink.find(t, "SELECT 'after 3.2'")
	_ = conn.Close(t.Context())
	o.same(t)
}

// TestProtocolIsNegotiated: a server that does not support a version or an option answers so, and the session
// continues.
func TestProtocolIsNegotiated(t *testing.T) {
	t.Parallel()
	for _, server := range []struct {
		name    string
		need    func(testing.TB) *cluster
		version uint32
	}{
		{"a later version", func(testing.TB) *cluster { return &postgres }, 3<<16 | 9998},
		{"18, a later version", needs18, 3<<16 | 9998},
		{"18, 3.2", needs18, 3<<16 | 2},
	} {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			o := observe(t, server.need(t).upstream(t), 1, nil)
			conn := dial(t, o.outer.addr)
			send(t, conn, packet(server.version, "user\x00ann\x00database\x00bank\x00_pq_.unheard_of\x001\x00\x00"))
			if got := until(t, conn, 'Z'); got[0] != 'v' && got[1] != 'v' {
				t.Errorf("messages %q, want v among the first two", got)
			}
			send(t, conn, message('Q', "SELECT 'negotiated'\x00"))
			until(t, conn, 'Z')
			o.sink.find(t, "SELECT 'negotiated'")
			send(t, conn, message('X', ""))
			_ = conn.Close()
			o.same(t)
		})
	}
}

// TestDuplicateNegotiation: a second NegotiateProtocolVersion during authentication goes through unchanged; handling it
// is left to the client.
func TestDuplicateNegotiation(t *testing.T) {
	t.Parallel()
	v := message('v', "\x00\x00\x00\x00\x00\x00\x00\x00")
	engine := backend(t, func(conn net.Conn) {
		readPacket(t, conn)
		send(t, conn, v, message('R', "\x00\x00\x00\x03"), v)
		if typ, body, err := readMessage(conn); err != nil || typ != 'p' || body != "secret\x00" {
			t.Errorf("got %q %q, %v", typ, body, err)
		}
		send(t, conn, v, greeting())
		if _, _, err := readMessage(conn); err == nil {
			send(t, conn, message('C', "SELECT 1\x00"), message('Z', "I"))
		}
		_, _, _ = readMessage(conn)
	})
	o := observe(t, engine, 1, nil)
	conn := dial(t, o.outer.addr)
	send(t, conn, packet(3<<16|2, "user\x00ann\x00\x00"))
	var types string
	for range 3 {
		typ, _, err := readMessage(conn)
		if err != nil {
			t.Fatal(err)
		}
		types += string(typ)
	}
	send(t, conn, message('p', "secret\x00"))
	types += until(t, conn, 'Z')
	if diff := cmp.Diff("vRvvRSSKZ", types); diff != "" {
		t.Error(diff)
	}
	send(t, conn, message('Q', "SELECT 1\x00"))
	until(t, conn, 'Z')
	o.sink.find(t, "SELECT 1")
	_ = conn.Close()
	o.same(t)
}
